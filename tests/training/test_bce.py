"""Binary cross-entropy over all entities: the fused loss against its definition, and what a training makes of it."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from relwalk.evaluation.ranking import rank
from relwalk.experiment import make_task, train
from relwalk.graph.graph import Graph
from relwalk.models import Scorer, build_model
from relwalk.training import sigmoid
from relwalk.training.settings import TrainingSettings
from relwalk.training.sigmoid import bce_loss
from relwalk.training.softmax import Targets, Workspace
from tests.conftest import part_of


def problem(rows: int, entities: int, dim: int, pairs: int, size: float, seed: int):
    generator = torch.Generator().manual_seed(seed)
    q, k = (size * torch.randn(n, dim, generator=generator, dtype=torch.float64) for n in (rows, entities))
    places = torch.randperm(rows * entities, generator=generator)[:pairs].sort().values
    labels = torch.rand(len(places), generator=generator, dtype=torch.float64)
    return q, k, Targets(places // entities, places % entities, labels)


def reference(q, k, targets: Targets, spread: float = 0.0, times=None) -> torch.Tensor:
    """The definition, with the whole matrix of scores; `times` is what each entity counts beside targets."""
    rows, columns, weights = targets
    labels = torch.full((len(q), len(k)), spread, dtype=q.dtype)
    labels[rows, columns] += weights
    counts = torch.ones_like(labels) if times is None else times.expand(labels.shape).clone()
    counts[rows, columns] = 1.0
    return F.binary_cross_entropy_with_logits(q @ k.T, labels, counts, reduction="sum")


@settings(max_examples=60, deadline=None)
@given(
    rows=st.integers(1, 9),
    entities=st.integers(1, 40),
    dim=st.integers(1, 8),
    pairs=st.integers(0, 20),
    size=st.sampled_from([0.01, 1.0, 5.0, 100.0]),
    tile=st.sampled_from([1, 3, 16, 1024]),
    spread=st.sampled_from([0.0, 0.01]),
    sampled=st.booleans(),
    seed=st.integers(0, 10_000),
)
def test_value_and_gradients_are_those_of_the_definition(
    rows, entities, dim, pairs, size, tile, spread, sampled, seed
) -> None:
    """In float64, to rounding: all tiles, all labels, and a sample of which each counts for several."""
    q, k, targets = problem(rows, entities, dim, pairs, size, seed)
    inputs = [x.requires_grad_() for x in (q, k)]
    log_weights = times = None
    if sampled:
        drawn = max(1, entities // 2)
        log_weights = torch.randn(drawn, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
        times = F.pad(log_weights.exp(), (0, entities - drawn))
    expected = reference(q, k, targets, spread, times)
    workspace = Workspace(dtype=torch.float64, tile=tile)
    found = bce_loss(q, k, targets, workspace, spread=spread, log_weights=log_weights)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)
    slopes = zip(torch.autograd.grad(3 * found, inputs), torch.autograd.grad(3 * expected, inputs), strict=True)
    for a, b in slopes:
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)


def test_blocks_of_rows_change_rounding_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    q, k, targets = problem(30, 50, 4, 90, 1.0, 0)
    whole = bce_loss(q, k, targets, Workspace(dtype=torch.float64), spread=0.1)
    monkeypatch.setattr(sigmoid, "ROWS", 7)
    torch.testing.assert_close(bce_loss(q, k, targets, Workspace(dtype=torch.float64, tile=8), spread=0.1), whole)


def test_a_target_far_above_zero_costs_next_to_nothing_also_in_bfloat16() -> None:
    """log(1 + exp(s)) - s of s = 40: in a tile of bfloat16 the difference would be off by a tenth."""
    q, k = torch.tensor([[1.0]]), torch.tensor([[40.3], [-40.0]])
    targets = Targets(torch.tensor([0]), torch.tensor([0]), torch.ones(1))
    assert float(bce_loss(q, k, targets, Workspace(dtype=torch.bfloat16))) < 1e-6


def test_bfloat16_is_close() -> None:
    q, k, targets = problem(20, 200, 16, 40, 0.5, 0)
    targets = targets._replace(weights=targets.weights.float())
    results = []
    for dtype in (torch.float32, torch.bfloat16):
        inputs = [x.float().requires_grad_() for x in (q, k)]
        loss = bce_loss(*inputs, targets, Workspace(dtype=dtype, tile=64))
        results.append((loss.detach(), *torch.autograd.grad(loss, inputs)))
    for a, b in zip(*results, strict=True):
        assert float((a - b).norm() / a.norm()) < 0.02


def by_definition(model, graph: Graph, smoothing: float) -> torch.Tensor:
    """Of every distinct question its scores of all entities against its labels, by autograd; a score of zero stands for
    the log-odds of the mean label."""
    triples, entities = graph.train.tolist(), len(graph.entities)
    total = torch.zeros(())
    sides = (("tail", 0, 2), ("head", 2, 0))
    asked = sum(len({(triple[given_at], triple[1]) for triple in triples}) for _, given_at, _ in sides)
    answered = sum(len({tuple(triple) for triple in triples}) for _ in sides)
    mean = torch.tensor(((1 - smoothing) * answered / asked + smoothing) / entities)
    for side, given_at, asked_at in sides:
        for given_id, relation in sorted({(triple[given_at], triple[1]) for triple in triples}):
            scores = model.score_candidates(side, torch.tensor([given_id]), torch.tensor([relation]))[0]
            answers = [triple[asked_at] for triple in triples if (triple[given_at], triple[1]) == (given_id, relation)]
            labels = torch.full((entities,), smoothing / entities)
            labels[answers] += 1 - smoothing
            logits = model.scale * scores + mean.logit()
            total = total + F.binary_cross_entropy_with_logits(logits, labels, reduction="sum")
    return total


MODELS = [("transe", {}), ("complex", {}), ("relwalk", {"orthogonality": "soft", "lambda1": 0.0, "lambda2": 0.0})]


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize(("name", "options"), MODELS)
def test_the_loss_is_that_of_the_scores_with_all_that_is_added_to_them(
    five: Graph, name: str, options: dict, smoothing: float
) -> None:
    """A softmax does not see what moves all scores of a question alike; here it counts."""
    model = build_model(name, 5, 2, 6, seed=0, options=options)
    training = TrainingSettings(objective="bce", l2=0.0, label_smoothing=smoothing, batch_size=3, precision="float32")
    task = make_task(five, training)
    batches = list(task.batches(torch.Generator().manual_seed(0)))
    fused = sum(task.loss(model, batch, torch.Generator()) for batch in batches)
    expected = by_definition(model, five, smoothing)
    torch.testing.assert_close(fused, expected, rtol=1e-5, atol=1e-5)
    weights = list(model.parameters())
    for a, b in zip(torch.autograd.grad(fused, weights), torch.autograd.grad(expected, weights), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_where_nothing_is_known_nothing_pulls_all_scores_one_way(world: Graph) -> None:
    """Over all questions the slopes of scores of zero add up to zero: their sigmoid is the mean label."""
    task = make_task(world, TrainingSettings(objective="bce", batch_size=1 << 20))
    (batch,) = task.batches(torch.Generator().manual_seed(0))
    pull = size = 0.0
    for questions in batch:
        scores = torch.zeros(len(questions.given), len(world.entities), requires_grad=True)
        (slopes,) = torch.autograd.grad(task.score_loss(scores, questions.targets, None), scores)
        pull, size = pull + float(slopes.double().sum()), size + float(slopes.double().abs().sum())
    assert abs(pull) < 1e-4 * size


class NoProduct(Scorer):
    """The scores of another model, not known to be a product."""

    def __init__(self, other: Scorer) -> None:
        super().__init__(other.entities, other.relations, other.dim)
        self.other = other

    def score(self, heads, relations, tails):
        return self.other.score(heads, relations, tails)

    def score_candidates(self, side, given, relations, candidates=None):
        return self.other.score_candidates(side, given, relations, candidates)


@pytest.mark.parametrize("drawn", [0, 40])
def test_a_model_that_is_no_product_has_the_same_loss(world: Graph, drawn: int) -> None:
    model = build_model("transe", len(world.entities), len(world.relations), 6, seed=0, options={})
    settings = TrainingSettings(objective="bce", batch_size=50, candidates_per_step=drawn, precision="float32")
    task = make_task(world, settings)
    batch = next(task.batches(torch.Generator().manual_seed(0)))
    fused, plain = (task.loss(kind, batch, torch.Generator().manual_seed(1)) for kind in (model, NoProduct(model)))
    torch.testing.assert_close(plain, fused, rtol=1e-5, atol=1e-3)
    gradients = (torch.autograd.grad(loss, list(model.parameters())) for loss in (fused, plain))
    for a, b in zip(*gradients, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-3)


def test_a_sample_estimates_the_loss_over_all_entities(five: Graph) -> None:
    """The mean over many samples of one or two entities is the whole loss, label smoothing and all."""
    model = build_model("distmult", 5, 2, 6, seed=0, options={})
    losses = {}
    for drawn, times in ((0, 1), (2, 1500)):
        task = make_task(five, TrainingSettings(objective="bce", l2=0.0, batch_size=100, candidates_per_step=drawn))
        (batch,) = task.batches(torch.Generator().manual_seed(0))
        generator = torch.Generator().manual_seed(1)
        with torch.no_grad():
            losses[drawn] = torch.stack([task.loss(model, batch, generator) for _ in range(times)])
    error = losses[2].std() / len(losses[2]) ** 0.5
    assert abs(losses[2].mean() - losses[0][0]) < 4 * error
    assert error < 0.01 * losses[0][0]


@pytest.mark.parametrize(("settings", "times"), [({"optimizer": "adam"}, 10), ({"candidates_per_step": 300}, 3)])
def test_it_learns(world: Graph, settings: dict, times: int) -> None:
    graph = part_of(world, 1000)
    run = train(graph, model="complex", objective="bce", dim=32, epochs=10, l2=0.0, batch_size=128, **settings)
    untrained = build_model("complex", len(graph.entities), len(graph.relations), 32, seed=0, options={})
    assert run.record.training.objective.label_smoothing == 0.1
    assert rank(run, split="valid").mrr > times * rank(untrained, graph, "valid").mrr
