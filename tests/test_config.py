"""Settings from a file, and settings that are decided once: what a run has been told can be told again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import relwalk
from relwalk.cli import training
from relwalk.errors import RelWalkError, RunError
from relwalk.experiment import resume, train
from relwalk.graph.graph import Graph
from relwalk.keywords import all_keywords
from relwalk.runs.record import read_record_file
from relwalk.runs.run import load_run
from relwalk.training import all_entities, candidates
from relwalk.training.trainer import Trainer
from tests.entry import relwalk as command

TOML = """
model = "transe"
dim = 6
objective = "margin"
margin = 5
negatives = 3
epochs = 2
batch_size = 4096
schedule = "plateau"
plateau_factor = 0.1
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "settings.toml"
    path.write_text(TOML)
    return path


def test_a_file_of_settings_says_what_flags_would(file: Path, tmp_path: Path) -> None:
    command("train", "world", "--config", file, "--negatives", 4, "--out", tmp_path / "run")
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert (record["model"]["name"], record["model"]["dim"]) == ("transe", 6)
    assert record["training"]["schedule"] == {"name": "plateau", "plateau_factor": 0.1, "plateau_patience": 1}
    objective = record["training"]["objective"]
    assert (objective["margin"], objective["negatives"]) == (5.0, 4)  # a flag comes before the file


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("epoch = 3", r"unknown setting in .*settings\.toml 'epoch'\. Did you mean 'epochs'"),
        ("[training]\nepochs = 3", "unknown setting in .* 'training'"),
        ("epochs = ", "is not readable TOML"),
        ("label_smoothing = 0.1\nobjective = 'margin'", "label_smoothing means nothing to the objective margin"),
        ("epochs = 'many'", r"epochs \(--epochs\) is 'many'"),
    ],
)
def test_a_wrong_file_of_settings_is_refused(file: Path, five: Graph, text: str, words: str) -> None:
    file.write_text(text)
    with pytest.raises(RelWalkError, match=words):
        train(five, config=file)


def test_a_run_is_repeated_by_its_record(world: Graph, tmp_path: Path) -> None:
    first = train(world, recipe="paper", dim=5, epochs=1, seed=3, lr=0.02, out=tmp_path / "a", threads=1)
    command("train", "world", "--config", tmp_path / "a" / "run.json", "--out", tmp_path / "b")
    again = load_run(tmp_path / "b")
    assert again.record.training == first.record.training
    assert again.record.model == first.record.model
    assert torch.equal(again.model.vectors(), first.model.vectors())
    changed = train(world, config=tmp_path / "a", objective="softmax", model="distmult", epochs=1)
    expected = {"name": "softmax", "sampler": "uniform", "negatives": 100, "avoid_known": False}
    assert changed.record.training.objective.model_dump() == expected
    assert changed.record.model.options == {}
    with pytest.raises(RunError, match="was not written by relwalk"):
        (tmp_path / "x.json").write_text("{}")
        train(world, config=tmp_path / "x.json")


def test_in_python_a_mapping_will_do(five: Graph) -> None:
    settings = {"dim": 3, "objective": "margin", "eta": 2, "epochs": 1, "orthogonality": "soft"}
    record = train(five, config=settings, epochs=2).record
    assert (record.model.dim, record.model.options) == (3, {"orthogonality": "soft"})
    assert (record.training.epochs, record.training.objective.eta) == (2, 2.0)


def test_every_setting_is_a_flag_with_help_in_a_panel() -> None:
    text = command("train", "--help").stdout
    panels = [line for line in text.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert panels == ["Arguments:", *(f"{name}:" for name in training.PANELS)]
    top = text[text.index(training.FIRST) : text.index("\nModel:")]
    assert sum(line.lstrip().startswith("--") for line in top.splitlines()) == 10
    words = text.split()
    for name, keyword in all_keywords().items():
        assert f"--{name.replace('_', '-')}" in " ".join(words).replace(",", ""), name
        assert keyword.words, name


def test_choices_are_made_once(world: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def counted(asked: int | None, entities: int) -> int:
        made.append(asked)
        return candidates.choose_candidates(asked, entities)

    monkeypatch.setattr(all_entities, "choose_candidates", counted)
    train(world, dim=4, epochs=1, out=tmp_path / "run")
    resume(tmp_path / "run", epochs=2)
    assert made == [None]
    objective = read_record_file(tmp_path / "run" / "run.json").training.objective
    assert objective.candidates_per_step == 0 and objective.precision != "auto"


@pytest.mark.parametrize(
    ("model", "rates"),
    [
        ("relwalk", {"adagrad": 1.0, "rowwise-adagrad": 1.0, "adam": 0.3, "sgd": 0.3}),
        ("transe", {"adagrad": 0.1, "rowwise-adagrad": 0.1, "adam": 0.03, "sgd": 0.003}),
    ],
)
def test_every_optimizer_has_a_rate_of_its_own(five: Graph, model: str, rates: dict[str, float]) -> None:
    for optimizer, lr in rates.items():
        run = train(five, model=model, dim=4, epochs=1, optimizer=optimizer)
        assert run.record.training.lr == pytest.approx(lr)


def test_training_leaves_the_process_as_it_was(five: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    run = Trainer.run
    monkeypatch.setattr(Trainer, "run", lambda self: (seen.append(torch.get_num_threads()), run(self))[1])
    monkeypatch.setattr("ctypes.CDLL", lambda *_: pytest.fail("the allocator was retuned"))
    before = torch.get_num_threads()
    relwalk.train(five, dim=4, epochs=1, threads=before + 1)
    with pytest.raises(relwalk.RelWalkError):
        relwalk.train(five, dim=4, epochs=1, threads=before + 1, optimizer="sgd", lr=1e30)
    assert seen == [before + 1] * 2
    assert torch.get_num_threads() == before
