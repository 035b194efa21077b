from __future__ import annotations

import pytest
import torch

from relwalk.experiment import make_task
from relwalk.graph.graph import Graph
from relwalk.models import build_model
from relwalk.training.settings import TrainingSettings


def by_triples(model, graph: Graph, smoothing: float = 0.0) -> torch.Tensor:
    """-log p(t | h, R) - log p(h | R, t) of every triple on its own, by autograd."""
    h, r, t = torch.tensor(graph.train.tolist()).unbind(1)
    at = torch.arange(len(h))
    total = torch.zeros(())
    for log_prob, truth in ((model.log_prob_tails(h, r), t), (model.log_prob_heads(r, t), h)):
        total = total - (1 - smoothing) * log_prob[at, truth].sum() - smoothing * log_prob.mean(1).sum()
    return total


@pytest.mark.parametrize("orthogonality", ["exact", "soft"])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize(("precision", "rounding"), [("float32", 1e-5), ("bfloat16", 1e-2)])
def test_grouped_questions_give_the_loss_and_gradient_of_single_triples(
    five: Graph, orthogonality: str, smoothing: float, precision: str, rounding: float
) -> None:
    options = (
        {"orthogonality": "exact"}
        if orthogonality == "exact"
        else {"orthogonality": "soft", "lambda1": 0.0, "lambda2": 0.0}
    )
    model = build_model("relwalk", 5, 2, 6, seed=0, options=options)
    settings = TrainingSettings(l2=0.0, label_smoothing=smoothing, batch_size=3, precision=precision)
    task = make_task(five, settings)
    gradients = {}
    for name in ("grouped", "single"):
        model.zero_grad()
        if name == "single":
            loss = by_triples(model, five, smoothing)
            loss.backward()
        else:
            loss = torch.zeros(())
            for batch in task.batches(torch.Generator().manual_seed(0)):
                part = task.loss(model, batch, torch.Generator())
                part.backward()
                loss += part.detach()
        gradients[name] = [loss.detach(), *(weights.grad.clone() for weights in model.parameters())]
    for found, expected in zip(gradients["grouped"], gradients["single"], strict=True):
        torch.testing.assert_close(found, expected, rtol=10 * rounding, atol=rounding)


def test_every_distinct_question_comes_once(world: Graph) -> None:
    task = make_task(world, TrainingSettings(batch_size=700))
    seen = []
    for batch in task.batches(torch.Generator().manual_seed(1)):
        for questions in batch:
            seen += [
                (questions.side, *pair)
                for pair in zip(questions.given.tolist(), questions.relations.tolist(), strict=True)
            ]
    h, r, t = world.train.T.tolist()
    expected = {("tail", *pair) for pair in zip(h, r, strict=True)} | {
        ("head", *pair) for pair in zip(t, r, strict=True)
    }
    assert len(seen) == len(set(seen))
    assert set(seen) == expected


def test_rows_of_the_benchmarks(benchmarks) -> None:
    from relwalk.graph.read import read_graph

    for name, rows in (("fb15k-237", 149_689), ("wn18rr", 103_509)):
        graph = read_graph(name, data_dir=benchmarks)
        assert sum(len(graph.known_in_train[side].keys) for side in ("head", "tail")) == rows


def test_weight_decay_counts_entities_by_their_answers(five: Graph) -> None:
    model = build_model("relwalk", 5, 2, 6, seed=0, options={})
    losses = []
    for l2 in (0.0, 3.0):
        task = make_task(five, TrainingSettings(l2=l2, batch_size=100))
        (batch,) = task.batches(torch.Generator().manual_seed(0))
        losses.append(float(task.loss(model, batch, torch.Generator()).detach()))
    norms = model.entity.weight.detach().square().sum(1)
    expected = 2 * 3.0 / 6 * sum(float(norms[h] + norms[t]) for h, _, t in five.train.tolist())
    assert losses[1] - losses[0] == pytest.approx(expected, rel=1e-4)
