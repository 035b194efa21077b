"""What the verbs say of a run that is unfinished, diverged, or in use."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from relwalk.errors import Interrupted, TrainingDiverged
from relwalk.experiment import train
from relwalk.files import lock_folder
from relwalk.graph.graph import Graph
from relwalk.runs.folder import NEW
from tests.conftest import make_graph
from tests.entry import answer, relwalk

FAST = {"dim": 4, "batches": 2, "threads": 1}
READERS = [
    ["evaluate"],
    ["classify"],
    ["predict", "--head", "a", "--relation", "likes"],
    ["predict", "--queries", "QUESTIONS", "--out", "ANSWERS", "--force"],
    ["walk", "--start", "a", "--steps", "1", "--paths", "1"],
    ["analyse", "--part", "orthogonality"],
]


@pytest.fixture(scope="module")
def graph() -> Graph:
    rows = [(i, i % 2, (i * 3 + 1) % 12) for i in range(12)] + [(i, 0, (i + 5) % 12) for i in range(12)]
    return make_graph(rows[:16], rows[16:20], rows[20:], entities=12)


@pytest.fixture(scope="module")
def unfinished(graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("unfinished") / "my run"
    asked = iter([False] * 10)  # three whole epochs of two steps, and one step
    with pytest.raises(Interrupted):
        train(graph, out=path, epochs=60, stop=lambda: next(asked, True), **FAST)
    return path


@pytest.fixture(scope="module")
def diverged(graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("diverged") / "run"
    with pytest.raises(TrainingDiverged):
        train(graph, out=path, optimizer="sgd", lr=1e30, objective="margin", epochs=9, **FAST)
    return path


def words(verb: list[str], run: Path, folder: Path) -> list[str]:
    (folder / "questions.tsv").write_text("a\tlikes\t?\n")
    places = {"QUESTIONS": str(folder / "questions.tsv"), "ANSWERS": str(folder / "answers.tsv")}
    return [verb[0], str(run), *(places.get(word, word) for word in verb[1:])]


@pytest.mark.parametrize("verb", READERS, ids=" ".join)
def test_every_reader_says_first_that_a_run_is_unfinished(unfinished: Path, tmp_path: Path, verb: list[str]) -> None:
    done = relwalk(*words(verb, unfinished, tmp_path), "--json")
    first = done.stderr.splitlines()[0]
    assert first == f"{unfinished} is unfinished: epoch 3 of 60; go on with: relwalk resume '{unfinished}'"
    found = json.loads(done.stdout)
    assert found["run_status"] == {"status": "unfinished", "epoch": 3, "epochs": 60}


def test_a_report_and_an_export_of_an_unfinished_run_say_so(unfinished: Path, tmp_path: Path) -> None:
    assert "unfinished: epoch 3 of 60" in relwalk("export", unfinished, tmp_path / "v.npz").stderr
    done = relwalk("report", unfinished, "--out", tmp_path / "page.html", "--directions", 10)
    assert done.stderr.startswith(f"{unfinished} is unfinished: epoch 3 of 60")
    assert "Training is unfinished: epoch 3 of 60" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize("verb", [*READERS, ["report", "--out", "ANSWERS"], ["export", "ANSWERS"]], ids=" ".join)
def test_every_reader_refuses_a_run_that_diverged_without_anyway(
    diverged: Path, tmp_path: Path, verb: list[str]
) -> None:
    said = relwalk(*words(verb, diverged, tmp_path), status=1).stderr
    assert "diverged: training diverged" in said
    assert "--anyway" in said and "relwalk resume" in said
    if verb[0] != "report":  # a page of a run of nothing takes long, and shows nothing else
        done = relwalk(*words(verb, diverged, tmp_path), *["--json"] * (verb[0] != "export"), "--anyway")
        assert done.stderr.startswith(f"{diverged} is diverged: epoch 0 of 9")
        assert verb[0] == "export" or json.loads(done.stdout)["run_status"]["status"] == "diverged"


def test_resume_at_a_lower_rate(diverged: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(diverged, tmp_path / "run"))
    assert "would again" in relwalk("resume", run, status=1).stderr
    assert answer("resume", run, "--lr", 0.001, "--relation-lr", 0.001)["status"] == "finished"
    assert json.loads((run / "run.json").read_text())["training"]["relation_lr"] == 0.001
    assert "run_status" not in answer("evaluate", run)


def test_resume_with_other_threads(graph: Graph, tmp_path: Path) -> None:
    run = tmp_path / "run"
    train(graph, out=run, epochs=1, **FAST | {"threads": 2})
    assert answer("resume", run, "--epochs", 2, "--threads", 1)["status"] == "finished"
    assert json.loads((run / "run.json").read_text())["training"]["threads"] == 1


def test_resume_to_fewer_epochs_is_an_error(graph: Graph, tmp_path: Path) -> None:
    train(graph, out=tmp_path / "run", epochs=5, **FAST)
    said = relwalk("resume", tmp_path / "run", "--epochs", 1, status=1).stderr
    assert "is finished, with 5 epochs: --epochs 1 adds none" in said
    assert "5 of 1" not in said


def test_a_run_in_use_is_one_line_with_its_holder(graph: Graph, tmp_path: Path) -> None:
    run = tmp_path / "run"
    train(graph, out=run, epochs=2, **FAST)
    with lock_folder(run):
        for command in (
            ["resume", run, "--epochs", 9],
            ["train", "world", "--out", run, "--force", "--epochs", 1],
            ["report", run],
            ["export", run, run / "v.npz"],
            ["predict", run, "--queries", tmp_path / "q.tsv", "--out", run / "answers.tsv"],
        ):
            (tmp_path / "q.tsv").write_text("a\tlikes\t?\n")
            said = relwalk(*command, status=1).stderr.splitlines()
            assert f"is being written by process {os.getpid()} on " in said[-1]
            assert len([line for line in said if line.startswith("relwalk: ")]) == 1
        assert answer("evaluate", run)["graph"] == "hand"  # who only reads is not kept waiting
    assert not (run / "v.npz").exists()


def test_what_lies_beside_a_replaced_run_is_told(graph: Graph, tmp_path: Path) -> None:
    run = tmp_path / "run"
    train(graph, out=run, epochs=2, **FAST)
    (run / "report.html").write_text("of the earlier run")
    asked = iter([False] * 4)
    with pytest.raises(Interrupted):
        train(graph, out=run, force=True, epochs=3, stop=lambda: next(asked, True), **FAST)
    assert (
        "is to be replaced by a run that is unfinished: epoch 1 of 3; go on with: relwalk resume"
        in relwalk("evaluate", run).stderr
    )
    done = relwalk("train", "world", "--dim", 4, "--epochs", 1, "--threads", 1, "--out", run, "--force")
    assert "left as it was, from before this run: report.html" in done.stderr
    assert not (run / NEW).exists()
    assert answer("evaluate", run)["graph"] == "world"
