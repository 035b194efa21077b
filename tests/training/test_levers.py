"""What users of likelihood training expect to be able to turn."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from relwalk import experiment
from relwalk.checks import MOST
from relwalk.errors import RelWalkError
from relwalk.evaluation.ranking import rank
from relwalk.experiment import _validation_triples, make_task, train
from relwalk.exports import weights as exported
from relwalk.graph.graph import Graph
from relwalk.models import build_model
from relwalk.models.base import as_product
from relwalk.models.orthogonal import defect
from relwalk.models.tables import Dropout, EntityTable
from relwalk.runs.run import Run, load_run
from relwalk.training.averaging import Average
from relwalk.training.checkpoint import restore_checkpoint, save_checkpoint
from relwalk.training.optim import SGD, Adagrad, Adam, Group, RowwiseAdagrad
from relwalk.training.schedule import decay_factor, rate_factor
from relwalk.training.settings import TrainingSettings
from relwalk.training.trainer import Trainer, _clip
from tests.conftest import WITH_RELATIONS

LEVERS = [
    {"n3": 0.05},
    {"dura": 0.05},
    {"decay_end": 0.01},
    {"entity_dropout": 0.2},
    {"query_dropout": 0.2},
    {"relation_weight": 0.5},
    {"label_smoothing": 0.1},
    {"optimizer": "rowwise-adagrad"},
    {"schedule": "cosine", "warmup": 0.5},
    {"schedule": "plateau", "plateau_factor": 0.3, "plateau_patience": 2},
    {"average_from": 3},
    {"clip": 1.0},
]


SHORT = {"dim": 16, "epochs": 4, "validate_every": 2, "seed": 1, "batch_size": 250}


@pytest.fixture(scope="module")
def plain(small_world: Graph) -> Run:
    return train(small_world, **SHORT)


@pytest.mark.parametrize("lever", LEVERS, ids=lambda lever: "-".join(lever))
def test_every_lever_changes_the_weights_and_still_learns(small_world: Graph, plain: Run, lever: dict) -> None:
    turned = train(small_world, **SHORT, **lever)
    same = torch.equal(turned.model.entity.weight, plain.model.entity.weight)
    assert not same or lever.get("schedule") == "plateau"  # four epochs meet no plateau
    untrained = build_model("relwalk", len(small_world.entities), len(small_world.relations), 16, seed=1, options={})
    assert rank(turned.model, small_world, "valid").mrr > 5 * rank(untrained, small_world, "valid").mrr


@pytest.mark.parametrize("lever", [*LEVERS, {"candidates_per_step": 300}], ids=lambda lever: "-".join(lever))
def test_every_lever_survives_a_checkpoint(small_world: Graph, tmp_path: Path, lever: dict) -> None:
    def fresh() -> Trainer:
        settings = TrainingSettings(epochs=4, batch_size=500, threads=2, validate_every=1, **lever)
        model = build_model("relwalk", len(small_world.entities), len(small_world.relations), 8, seed=1, options={})
        return Trainer(
            model, make_task(small_world, settings), settings, validate=lambda m: -float(m.entity.weight[0, 0].detach())
        )

    whole, first, second = fresh(), fresh(), fresh()
    whole.run()
    while first.progress.epoch < 3:
        first._one_epoch()
    save_checkpoint(first, tmp_path / "checkpoint.safetensors", {})
    restore_checkpoint(second, tmp_path / "checkpoint.safetensors")
    second.run()
    assert torch.equal(whole.model.entity.weight, second.model.entity.weight)
    assert torch.equal(whole.model.R2, second.model.R2)
    assert whole.progress.rate_drops == second.progress.rate_drops


def test_n3_counts_every_triple_by_hand(five: Graph) -> None:
    for name, relation in (("relwalk", False), ("distmult", True)):
        model = build_model(name, 5, 2, 6, seed=0, options={})
        losses = []
        for n3 in (0.0, 2.0):
            task = make_task(five, TrainingSettings(l2=0.0, n3=n3, batch_size=100))
            (batch,) = task.batches(torch.Generator().manual_seed(0))
            losses.append(float(task.loss(model, batch, torch.Generator()).detach()))
        cubes = model.entity.weight.detach().abs().pow(3).sum(1)
        expected = sum(float(cubes[h] + cubes[t]) for h, _, t in five.train.tolist())
        if relation:
            own = model.relation.detach().abs().pow(3).sum(1)
            expected += sum(float(own[r]) for _, r, _ in five.train.tolist())
        assert losses[1] - losses[0] == pytest.approx(2 * 2.0 * (2 * model.scale) ** 1.5 * expected, rel=1e-4)


def test_n3_of_complex_numbers_is_of_their_moduli() -> None:
    model = build_model("complex", 2, 1, 2, seed=0, options={})
    with torch.no_grad():
        model.entity.weight.copy_(torch.tensor([[3.0, 4.0], [0.0, 2.0]]))
        model.relation.copy_(torch.tensor([[1.0, 0.0]]))
    zero, one = torch.tensor([0]), torch.tensor([1])
    assert float(model.n3_norm(zero, zero, one).detach()) == pytest.approx(125 + 8 + 1, rel=1e-5)


def test_dropout_keeps_the_mean_and_leaves_the_share() -> None:
    x = torch.ones(400, 500)
    dropout = Dropout()
    dropout.rate, dropout.generator = 0.3, torch.Generator().manual_seed(0)
    dropped = dropout(x)
    assert torch.equal(dropout.eval()(x), x)
    assert float((dropped == 0).float().mean()) == pytest.approx(0.3, abs=0.01)
    assert float(dropped.mean()) == pytest.approx(1, abs=0.01)


def test_relation_prediction_adds_its_cross_entropy(five: Graph) -> None:
    model = build_model("relwalk", 5, 2, 6, seed=0, options={})
    losses = []
    for weight in (0.0, 0.7):
        task = make_task(five, TrainingSettings(relation_weight=weight, batch_size=100))
        (batch,) = task.batches(torch.Generator().manual_seed(0))
        losses.append(float(task.loss(model, batch, torch.Generator().manual_seed(1)).detach()))
    h, r, t = torch.tensor(five.train.tolist()).unbind(1)
    prior = torch.bincount(r, minlength=2) / len(r)  # p(R | h, t) is p(h, t | R) p(R), up to a factor
    told = model.log_prob_relations(h, t, prior).gather(1, r.unsqueeze(1)).sum()
    assert losses[1] - losses[0] == pytest.approx(-2 * 0.7 * float(told.detach()), rel=1e-4)


def test_schedules_by_hand() -> None:
    def factor(done: float, drops: int = 0, **settings: object) -> float:
        training = TrainingSettings(epochs=10, **settings)
        return rate_factor(training.schedule, training, done, drops)

    assert factor(7.0) == 1
    assert factor(1.0, warmup=4) == 0.25
    assert factor(6.0, warmup=2, schedule="linear") == 0.5
    assert factor(10.0, schedule="linear") == 0
    assert factor(5.0, schedule="cosine") == pytest.approx(0.5)
    assert factor(2.5, schedule="cosine") == pytest.approx((1 + math.cos(math.pi / 4)) / 2)
    assert factor(5.0, 3, schedule="plateau", plateau_factor=0.1) == pytest.approx(0.001)


def test_a_falling_decay_by_hand(five: Graph) -> None:
    def factor(done: float, seconds: float = 0.0, **settings: object) -> float:
        return decay_factor(TrainingSettings(epochs=10, **settings), done, seconds)

    assert factor(7.0) == 1
    assert factor(0.0, decay_end=0.01) == 1 and factor(10.0, decay_end=0.01) == pytest.approx(0.01)
    assert factor(5.0, decay_end=0.01) == pytest.approx(0.1)  # geometric: half the way is the root
    assert factor(1.0, 30.0, decay_end=0.01, budget=60) == pytest.approx(0.1)  # by time, which ends first
    model = build_model("relwalk", 5, 2, 6, seed=0, options={})
    task = make_task(five, TrainingSettings(l2=0.2, n3=0.1, dura=0.3, batch_size=100))
    (batch,) = task.batches(torch.Generator().manual_seed(0))
    none, half, whole = (
        float(task.loss(model, batch, torch.Generator(), decay=decay).detach()) for decay in (0.0, 0.5, 1.0)
    )
    assert whole - none == pytest.approx(2 * (half - none), rel=1e-3) and whole > none


def test_a_path_of_decay_is_walked_to_its_end(small_world: Graph) -> None:
    """Validation that gets worse does not end a path before its weakest decay; a patience that is said does."""
    short = {"dim": 8, "epochs": 6, "validate_every": 1, "batch_size": 1000, "l2": 2.0, "decay_end": 0.001}
    walked = train(small_world, **short).record
    assert walked.metrics["epochs"] == 6 and walked.training.patience == MOST
    stopped = train(small_world, **short | {"epochs": 40}, patience=1, lr=30.0, seed=1)
    assert stopped.record.training.patience == 1 and stopped.record.metrics["epochs"] < 40
    assert train(small_world, **short | {"decay_end": 1.0}).record.training.patience == 5


def test_a_plateau_lowers_every_rate(world: Graph) -> None:
    figures = iter([0.5, 0.4, 0.3, 0.2, 0.1, 0.05])
    settings = TrainingSettings(
        epochs=6, batch_size=5000, validate_every=1, patience=10, schedule="plateau", plateau_patience=2, lr=0.8
    )
    model = build_model("relwalk", len(world.entities), len(world.relations), 8, seed=1, options={})
    trainer = Trainer(model, make_task(world, settings), settings, validate=lambda _: next(figures))
    trainer.run()
    assert trainer.progress.rate_drops == 2
    assert trainer.optimizers[0].groups[0].lr == pytest.approx(0.8 * 0.5**2)
    assert trainer.optimizers[1].groups[0].lr == pytest.approx(0.3 * 0.5**2)


def test_an_average_is_the_mean_of_epochs_and_stays_orthogonal(world: Graph) -> None:
    settings = TrainingSettings(epochs=4, batch_size=2000, average_from=2, threads=2)
    model = build_model("relwalk", len(world.entities), len(world.relations), 8, seed=1, options={})
    seen = []

    class Watch:
        def step(self, *_: object) -> None:
            pass

        def epoch(self, *_: object) -> None:
            seen.append({name: w.detach().clone() for name, w in model.named_parameters()})

    Trainer(model, make_task(world, settings), settings, observer=Watch()).run()
    expected = torch.stack([w["entity.weight"] for w in seen[1:]]).mean(0)
    torch.testing.assert_close(model.entity.weight.detach(), expected)
    assert float(defect(model.R2.detach()).abs().max()) < 1e-5


def test_averaging_leaves_the_training_itself_alone(five: Graph) -> None:
    model = build_model("relwalk", 5, 2, 6, seed=0, options={})
    average = Average()
    average.add(model)
    before = model.entity.weight.detach().clone()
    with torch.no_grad():
        model.entity.weight.add_(1.0)
    average.add(model)
    with average.within(model):
        torch.testing.assert_close(model.entity.weight.detach(), before + 0.5)
    torch.testing.assert_close(model.entity.weight.detach(), before + 1.0)


def test_clipping_shortens_dense_and_sparse_together() -> None:
    dense = torch.tensor([3.0, 0.0])
    sparse = torch.tensor([[0.0, 0.0], [0.0, 4.0], [0.0, 0.0]]).to_sparse(1)
    _clip([dense, None, sparse], 1.0)
    torch.testing.assert_close(dense, torch.tensor([0.6, 0.0]))
    torch.testing.assert_close(sparse.to_dense()[1], torch.tensor([0.0, 0.8]))
    _clip([dense], 10.0)
    torch.testing.assert_close(dense, torch.tensor([0.6, 0.0]))


def test_rowwise_adagrad_by_hand_dense_and_sparse() -> None:
    start = torch.zeros(3, 2)
    for sparse in (False, True):
        weights = torch.nn.Parameter(start.clone())
        optimizer = RowwiseAdagrad([Group([weights], 0.5)])
        for gradient in ([3.0, 1.0], [1.0, 1.0]):
            dense = torch.zeros(3, 2)
            dense[1] = torch.tensor(gradient)
            weights.grad = dense.to_sparse(1) if sparse else dense
            optimizer.step()
        first, second = 0.5 / math.sqrt(5.0), 0.5 / math.sqrt(5.0 + 1.0)
        expected = torch.tensor([-3 * first - second, -first - second])
        torch.testing.assert_close(weights.detach()[1], expected)
        assert float(weights.detach()[[0, 2]].abs().max()) == 0


@pytest.mark.parametrize(
    ("ours", "theirs"), [(SGD, torch.optim.SGD), (Adagrad, torch.optim.Adagrad), (Adam, torch.optim.Adam)]
)
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("cached", [1, 6, 1000])  # a row at a time, two of them, all at once
def test_optimizers_step_as_torchs_do(
    ours: type, theirs: type, sparse: bool, cached: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("relwalk.training.optim.CACHED", cached)
    if sparse and ours is Adam:
        pytest.skip("Adam moves every row, and is refused where gradients are sparse")
    generator = torch.Generator().manual_seed(0)
    one, other = (torch.nn.Parameter(torch.ones(4, 3)) for _ in range(2))
    optimizers = ours([Group([one], 0.2)]), theirs([other], lr=0.2)
    for _ in range(5):
        gradient = torch.zeros(4, 3)
        gradient[torch.randperm(4, generator=generator)[:2]] = torch.randn(2, 3, generator=generator)
        one.grad, other.grad = gradient.to_sparse(1) if sparse else gradient, gradient
        for optimizer in optimizers:
            optimizer.step()
    torch.testing.assert_close(one, other)


def test_a_number_alone_is_stepped_too() -> None:
    weight = torch.nn.Parameter(torch.tensor(1.0))
    weight.grad = torch.tensor(3.0)
    Adagrad([Group([weight], 0.5)]).step()
    assert float(weight.detach()) == pytest.approx(0.5)


@pytest.mark.parametrize("name", WITH_RELATIONS)
def test_reciprocal_relations_answer_heads_by_the_inverse(small_world: Graph, name: str, tmp_path: Path) -> None:
    count = len(small_world.relations)
    untrained = build_model(name, len(small_world.entities), count, 16, seed=0, options={"reciprocal": True})
    h, r, t = (torch.tensor([i, i + 1]) for i in (5, 2, 9))
    torch.testing.assert_close(untrained.score_heads(r, t), untrained.base.score_tails(t, r + count))
    torch.testing.assert_close(untrained.score_tails(h, r), untrained.base.score_tails(h, r))
    both = (untrained.score_tails(h, r)[[0, 1], t] + untrained.score_heads(r, t)[[0, 1], h]) / 2
    torch.testing.assert_close(untrained.score(h, r, t), both, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(untrained.score_relations(h, t)[[0, 1], r], both, rtol=1e-4, atol=1e-4)
    few = {} if as_product(untrained) is not None else {"candidates_per_step": 300}  # slow with all
    run = train(small_world, model=name, dim=16, epochs=5, reciprocal=True, batch_size=250, out=tmp_path / "run", **few)
    assert rank(run.model, small_world, "valid").mrr > 3 * rank(untrained, small_world, "valid").mrr
    again = load_run(tmp_path / "run")
    assert torch.equal(again.model.vectors(), run.model.vectors())
    arrays = exported(again)
    base = again.model.base
    for key, array in arrays.items():
        if key.split(".")[0] not in base.shared:
            assert len(array) == (
                len(small_world.entities) if isinstance(getattr(base, key, None), EntityTable) else count
            )
    assert any(key.endswith("_inverse") for key in arrays)


@pytest.mark.parametrize(
    ("options", "training", "words"),
    [
        ({"reciprocal": True}, {"objective": "softmax"}, "reciprocal relations need"),
        ({}, {"objective": "softmax", "eta": 3}, "eta means nothing to the objective softmax, which has sampler"),
        ({}, {"sampler": "uniform"}, "Say --objective margin or hardest or mean or softmax"),
        ({"model": "transe", "lambda1": 1.0}, {}, "lambda1 means nothing to the model TransE"),
        ({"model": "unstructured", "reciprocal": True}, {}, "no weights of relations"),
        ({"model": "transe"}, {"dura": 0.1}, "dura means nothing to TransE: its score is no bilinear form"),
        ({}, {"objective": "logistic", "temperature": 1.0}, "Say --objective self-adversarial"),
        ({}, {"objective": "margin", "candidates_per_step": 10}, "candidates_per_step means nothing"),
        ({}, {"plateau_factor": 0.1}, "--schedule plateau"),
        ({}, {"average_from": 9, "epochs": 3}, "after the last of 3 epochs"),
    ],
)
def test_what_would_do_nothing_is_refused(world: Graph, options: dict, training: dict, words: str) -> None:
    with pytest.raises(RelWalkError, match=words):
        train(world, dim=8, **options, **{"epochs": 1, **training})


def test_validation_of_a_large_graph_takes_a_part_and_always_the_same(
    world: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    def part(**settings: int) -> np.ndarray:
        training = TrainingSettings(**settings)
        return _validation_triples(world, training, make_task(world, training))

    assert len(part(validate_every=10, epochs=10, candidates_per_step=0)) == len(world.valid)
    assert len(part(validate_every=1, candidates_per_step=2)) == len(world.valid)  # a thousand are never too many
    monkeypatch.setattr(experiment, "VALIDATION_LEAST", 2)
    assert len(part(validate_every=1, candidates_per_step=2)) == 2
    some = part(validate_every=10, epochs=10, candidates_per_step=100)
    assert np.array_equal(some, part(validate_every=10, epochs=10, candidates_per_step=100))
    assert 20 < len(some) < len(world.valid) and set(map(tuple, some)) <= set(map(tuple, world.valid))
    once = part(validate_every=10, epochs=1, candidates_per_step=100)  # only one epoch will have been trained
    assert len(once) == pytest.approx(len(some) / 10, abs=1)


def test_soft_orthogonality_learns_from_samples_and_with_dropout(small_world: Graph) -> None:
    """Keys of its own for every relation: the fused sum, sampling and dropout work there too."""
    settings = {"dim": 8, "epochs": 6, "candidates_per_step": 300, "query_dropout": 0.1, "l2": 0.01, "batch_size": 250}
    run = train(small_world, orthogonality="soft", **settings)
    untrained = build_model("relwalk", len(small_world.entities), len(small_world.relations), 8, seed=0, options={})
    assert rank(run.model, small_world, "valid").mrr > 3 * rank(untrained, small_world, "valid").mrr
