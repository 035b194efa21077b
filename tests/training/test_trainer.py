from __future__ import annotations

from pathlib import Path

import pytest
import torch
from pydantic import ValidationError

from relwalk.errors import RunError, TrainingDiverged
from relwalk.evaluation.ranking import rank
from relwalk.experiment import make_task, train
from relwalk.graph.graph import Graph
from relwalk.models import MODELS, build_model
from relwalk.models.base import as_product
from relwalk.models.orthogonal import defect
from relwalk.runs.checkpoint import read_checkpoint
from relwalk.training.checkpoint import restore_checkpoint, save_checkpoint
from relwalk.training.objectives import OBJECTIVES
from relwalk.training.optimizers import OPTIMIZERS
from relwalk.training.settings import TrainingSettings, make_settings
from relwalk.training.trainer import Trainer


def make(graph: Graph, validate=None, options: dict | None = None, **settings) -> Trainer:
    defaults = {"epochs": 4, "negatives": 5, "batch_size": 150, "threads": 2, "objective": "softmax"}
    settings = make_settings(defaults, settings)
    model = build_model("relwalk", len(graph.entities), len(graph.relations), 8, seed=1, options=options or {})
    return Trainer(model, make_task(graph, settings), settings, validate=validate)


def weights(trainer: Trainer) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in trainer.model.state_dict().items()}


@pytest.mark.parametrize("orthogonality", ["exact", "soft"])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_objective_learns(small_world: Graph, objective: str, orthogonality: str) -> None:
    trainer = make(small_world, objective=objective, options={"orthogonality": orthogonality}, lr=0.1, relation_lr=0.01)
    history = trainer.run().history
    assert history[-1].loss < 0.99 * history[0].loss


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_every_optimizer_learns(small_world: Graph, optimizer: str) -> None:
    history = make(small_world, optimizer=optimizer, lr=0.01, relation_lr=0.001, epochs=3).run().history
    assert history[-1].loss < history[0].loss


def test_exact_is_orthogonal_after_every_step(small_world: Graph) -> None:
    steps = []

    class Watch:
        def step(self, *_: object) -> None:
            steps.append(float(defect(trainer.model.R2.detach()).abs().max()))

        def epoch(self, *_: object) -> None:
            pass

    trainer = make(small_world, relation_lr=1.0)
    trainer.observer = Watch()
    trainer.run()
    assert len(steps) == 4 * len(trainer.task)
    assert max(steps) < 1e-5


def test_the_papers_penalty_pulls_towards_orthogonality(small_world: Graph) -> None:
    def off(strength: float) -> float:
        options = {"orthogonality": "soft", "lambda1": strength, "lambda2": strength}
        trainer = make(
            small_world, options=options, optimizer="sgd", objective="hardest", lr=0.0005, relation_lr=None, l2=0.0
        )
        trainer.run()
        return float(defect(trainer.model.R2.detach()).abs().mean())

    assert off(100.0) < 0.5 * off(0.0)


def test_an_epoch_holds_every_triple_once_in_the_asked_number_of_batches(small_world: Graph) -> None:
    task = make_task(small_world, TrainingSettings(objective="softmax", batches=7, batch_size=None))
    batches = list(task.batches(torch.Generator().manual_seed(0)))
    assert len(batches) == len(task) == 7
    assert sorted(map(tuple, torch.cat(batches).tolist())) == sorted(map(tuple, small_world.train.tolist()))
    assert all((batch[1:, 1] >= batch[:-1, 1]).all() for batch in batches)


def test_the_same_seed_gives_the_same_bits(small_world: Graph) -> None:
    a, b, c = make(small_world, seed=3), make(small_world, seed=3), make(small_world, seed=4)
    for trainer in (a, b, c):
        trainer.run()
    assert torch.equal(a.model.entity.weight, b.model.entity.weight)
    assert not torch.equal(a.model.entity.weight, c.model.entity.weight)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_checkpoint_continues_to_the_same_bits(small_world: Graph, tmp_path: Path, optimizer: str) -> None:
    def fresh(epochs: int) -> Trainer:
        return make(
            small_world,
            lambda model: float(model.entity.weight[0, 0].detach()),
            optimizer=optimizer,
            lr=0.05,
            epochs=epochs,
        )

    whole, first, second = fresh(4), fresh(2), fresh(4)
    whole.run()
    first.settings = second.settings  # validates as if it were to go on
    while first.progress.epoch < 2:
        first._one_epoch()
    save_checkpoint(first, tmp_path / "checkpoint.safetensors", {})
    restore_checkpoint(second, tmp_path / "checkpoint.safetensors")
    assert second.progress == first.progress
    second.run()
    assert all(torch.equal(a, b) for a, b in zip(weights(whole).values(), weights(second).values(), strict=True))
    assert [e.loss for e in second.progress.history] == [e.loss for e in whole.progress.history]


def test_a_checkpoint_that_was_cut_or_changed_is_refused(small_world: Graph, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    save_checkpoint(make(small_world), path, {})
    good = path.read_bytes()
    for bad, words in (
        (good[:-100], "not a readable safetensors file"),
        (b"", "not a readable safetensors file"),
        (b"PK\x03\x04 something else", "not a readable safetensors file"),
        (good[:-4] + b"\x00\x00\x80\x3f", "was changed"),
    ):
        path.write_bytes(bad)
        with pytest.raises(RunError, match=words):
            read_checkpoint(path)


def test_early_stopping_keeps_the_best_weights(small_world: Graph) -> None:
    figures = iter([0.1, 0.5, 0.4, 0.3, 0.2, 0.9])
    seen = []

    def validate(model) -> float:
        seen.append(model.entity.weight.detach().clone())
        return next(figures)

    trainer = make(small_world, validate, validate_every=1, patience=2, epochs=50)
    progress = trainer.run()
    assert (progress.epoch, progress.best_epoch, progress.best_metric) == (4, 2, 0.5)
    assert torch.equal(trainer.model.entity.weight, seen[1])


def test_divergence_stops_with_the_step_and_the_cure(small_world: Graph) -> None:
    trainer = make(small_world, optimizer="sgd", lr=1e8, relation_lr=1e-9, objective="margin", l2=1.0)
    with pytest.raises(TrainingDiverged, match=r"epoch \d+.*Lower --lr"):
        trainer.run()


def test_weights_that_are_no_numbers_are_never_saved(small_world: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relwalk.training.trainer.CHECKPOINT_SHARE", float("inf"))
    saved = []

    class Breaks:
        def step(self, epoch: int, step: int, *_: object) -> None:
            if step == 2:
                trainer.model.entity.weight.data[0, 0] = float("inf")

    trainer = make(small_world, checkpoint_seconds=0)
    trainer.observer = Breaks()
    trainer.checkpoint = lambda t: saved.append(bool(t.model.entity.weight.isfinite().all()))
    with pytest.raises(TrainingDiverged, match="after step 2 of epoch 1"):
        trainer.run()
    assert saved == [True, True]  # before the first step, and after it


def test_divergence_names_the_last_good_checkpoint(small_world: Graph, tmp_path: Path) -> None:
    with pytest.raises(TrainingDiverged, match=r"last good checkpoint is .*checkpoint.safetensors"):
        train(small_world, dim=8, out=tmp_path / "run", optimizer="sgd", lr=1e8, objective="margin", epochs=3)
    tensors, _ = read_checkpoint(tmp_path / "run" / "checkpoint.safetensors")
    assert all(tensor.isfinite().all() for tensor in tensors.values())


@pytest.mark.parametrize(
    "wrong",
    [
        {"lr": 0},
        {"epochs": 0},
        {"objective": "margin", "eta": 1.0},
        {"batches": 5, "batch_size": 5},
        {"optimizer": "lbfgs"},
        {"nonsense": 1},
    ],
)
def test_wrong_settings_are_refused(wrong: dict) -> None:
    with pytest.raises(ValidationError):
        TrainingSettings(**wrong)


def test_batches_and_batch_size_replace_each_other() -> None:
    assert make_settings({"batch_size": 10}, {"batches": 5}).batch_size is None
    assert make_settings({"batches": 10, "batch_size": None}, {"batch_size": 5}).batches is None


@pytest.mark.parametrize("orthogonality", ["exact", "soft"])
@pytest.mark.parametrize("objective", [name for name, kind in OBJECTIVES.items() if getattr(kind, "sparse", False)])
def test_a_sparse_gradient_is_the_whole_gradient(small_world: Graph, objective: str, orthogonality: str) -> None:
    gradients = []
    for sparse in (True, False):
        trainer = make(small_world, objective=objective, options={"orthogonality": orthogonality})
        trainer.task.sparse = sparse
        batch = next(trainer.task.batches(torch.Generator().manual_seed(0)))
        loss = trainer.task.loss(trainer.model, batch, torch.Generator().manual_seed(0))
        loss.backward()
        gradients.append((loss.detach(), trainer.model.entity.weight.grad))
    for found, expected in zip(*gradients, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("objective", ["likelihood", "softmax"])
def test_every_model_learns_to_rank(small_world: Graph, name: str, objective: str) -> None:
    untrained = build_model(name, len(small_world.entities), len(small_world.relations), 16, seed=0, options={})
    sampling = {"negatives": 20} if objective == "softmax" else {}
    if objective == "likelihood" and as_product(untrained) is None:
        sampling = {"candidates_per_step": 300}  # slow with all
    run = train(small_world, model=name, dim=16, epochs=5, objective=objective, batch_size=250, **sampling)
    assert rank(run.model, small_world, "valid").mrr > 5 * rank(untrained, small_world, "valid").mrr
