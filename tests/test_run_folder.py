"""Run folders across crashes and beside other processes: nothing lost, nothing left over, no riddles."""

from __future__ import annotations

import json
import os
import shutil
import socket
from pathlib import Path

import pytest

from relwalk.errors import FolderInUse, Interrupted, RefusedOverwrite, RunError
from relwalk.experiment import resume, train
from relwalk.exports import export
from relwalk.files import LOCK, atomic_file, lock_folder, write_atomically
from relwalk.graph.graph import Graph
from relwalk.runs.folder import CHECKPOINT, ENTITIES, FILES, GRAPH, NEW, RECORD, RELATIONS, WEIGHTS
from relwalk.runs.run import load_run, read_state
from tests.conftest import TEST, TRAIN, VALID, make_graph

FAST = {"dim": 4, "epochs": 2, "batches": 2, "threads": 1}


class Crash(BaseException):
    pass


def stop_after(steps: int):
    asked = iter([False] * steps)
    return lambda: next(asked, True)


@pytest.fixture(scope="module")
def graph() -> Graph:
    return make_graph(TRAIN, VALID, TEST)


@pytest.fixture(scope="module")
def runs(graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two finished runs that differ by their seed."""
    folder = tmp_path_factory.mktemp("runs")
    for seed in (1, 2):
        train(graph, out=folder / str(seed), seed=seed, **FAST)
    return folder / "1", folder / "2"


@pytest.fixture
def old(runs: tuple[Path, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(runs[0], tmp_path / "run"))


def weights(path: Path) -> bytes:
    return (path / WEIGHTS).read_bytes()


def names(path: Path) -> list[str]:
    return sorted(p.name for p in path.iterdir())


def test_a_run_replaces_another_only_when_it_is_finished(runs: tuple[Path, Path], old: Path, graph: Graph) -> None:
    (old / "report.html").write_text("mine")
    with pytest.raises(Interrupted):
        train(graph, out=old, force=True, seed=2, stop=stop_after(3), **FAST)
    assert weights(old) == weights(runs[0])
    assert load_run(old).state.status == "finished"
    assert read_state(old / NEW).epoch == 1
    run = resume(old)  # finds the one that is under way, and puts it in place
    assert run.path == old
    assert weights(old) == weights(runs[1])
    assert names(old) == sorted([*FILES, "report.html"])
    assert (old / "report.html").read_text() == "mine"


def test_a_replacement_that_fails_leaves_the_earlier_run(old: Path, runs: tuple[Path, Path], graph: Graph) -> None:
    with pytest.raises(Crash):
        train(graph, out=old, force=True, seed=2, observer=Crashing(), **FAST)
    assert weights(old) == weights(runs[0])
    train(graph, out=old, force=True, seed=2, **FAST)  # started over
    assert weights(old) == weights(runs[1])
    assert names(old) == sorted(FILES)


class Crashing:
    def step(self, *_: object) -> None:
        raise Crash

    def epoch(self, *_: object) -> None:
        pass


@pytest.mark.parametrize("crash_at", range(1, len(FILES) + 2))
def test_a_crash_while_a_run_takes_its_place_is_made_good_by_the_next_reader(
    old: Path, runs: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, crash_at: int
) -> None:
    shutil.copytree(runs[1], old / NEW)
    if crash_at == 1:
        (old / NEW / CHECKPOINT).unlink()  # the earlier one has a file that the new one has not
    moves, replace, remove = [], Path.replace, shutil.rmtree

    def crashing(call):
        def step(*arguments, **rest):
            moves.append(arguments)
            if len(moves) == crash_at:
                raise Crash
            return call(*arguments, **rest)

        return step

    with monkeypatch.context() as patch, pytest.raises(Crash):
        patch.setattr(Path, "replace", crashing(replace))
        patch.setattr(shutil, "rmtree", crashing(remove))
        load_run(old)
    assert load_run(old).record.training.seed == 2
    assert weights(old) == weights(runs[1])
    resume(old)  # opened to be written: now nothing is left of it
    assert names(old) == sorted(set(FILES) - ({CHECKPOINT} if crash_at == 1 else set()))


@pytest.mark.parametrize(("written", "moved"), [*((w, 0) for w in range(4)), *((4, m) for m in range(5))])
def test_a_start_that_died_is_finished_or_started_over(
    runs: tuple[Path, Path], graph: Graph, tmp_path: Path, written: int, moved: int
) -> None:
    """Whatever of the first files was written, and had moved: no --force, and no advice that leads nowhere."""
    order = [GRAPH, ENTITIES, RELATIONS, RECORD]
    run = tmp_path / "run"
    with pytest.raises(Interrupted):
        train(graph, out=run, seed=1, stop=lambda: True, **FAST)
    for name in (CHECKPOINT, "history.jsonl"):
        (run / name).unlink()
    (run / NEW).mkdir()
    for name in order[moved:]:
        shutil.move(run / name, run / NEW / name)
    for name in order[written:]:
        (run / NEW / name).unlink()
    (run / LOCK).write_text("")
    if written == len(order):
        resume(run)
    else:
        with pytest.raises(RunError, match="Train again: nothing is in the way"):
            load_run(run)
        train(graph, out=run, seed=1, **FAST)
    assert weights(run) == weights(runs[0])
    assert names(run) == sorted(FILES)


def test_what_is_not_a_run_is_never_replaced_and_the_advice_works(old: Path, graph: Graph, tmp_path: Path) -> None:
    folder = tmp_path / "thesis"
    folder.mkdir()
    (folder / "entities.tsv").write_text("mine")
    for force in (False, True):
        with pytest.raises(RefusedOverwrite) as refused:
            train(graph, out=folder, force=force, **FAST)
        assert "--force" not in str(refused.value)
        assert "entities.tsv" in str(refused.value)
    assert names(folder) == ["entities.tsv"]
    (tmp_path / "file").write_text("mine")
    with pytest.raises(RefusedOverwrite, match="it is a file"):
        train(graph, out=tmp_path / "file", force=True, **FAST)
    with pytest.raises(Interrupted):
        train(graph, out=tmp_path / "begun", stop=lambda: True, **FAST)
    with pytest.raises(RefusedOverwrite, match="relwalk resume"):
        train(graph, out=tmp_path / "begun", **FAST)


def test_a_folder_in_use_is_refused_by_its_holder(old: Path, graph: Graph) -> None:
    holder = rf"process {os.getpid()} on {socket.gethostname()} since \d"
    with lock_folder(old):
        for attempt in (
            lambda: resume(old, epochs=9),
            lambda: train(graph, out=old, force=True, **FAST),
            lambda: export(load_run(old), old / "vectors.npz", "npz"),
        ):
            with pytest.raises(FolderInUse, match=holder):
                attempt()
    assert names(old) == sorted(FILES)  # and the lock is gone with its holder


def test_a_run_that_is_to_be_replaced_can_be_written_to_and_its_successor_not(old: Path, graph: Graph) -> None:
    with pytest.raises(Interrupted):
        train(graph, out=old, force=True, seed=2, stop=lambda: True, **FAST)
    with lock_folder(old / NEW):
        export(load_run(old), old / "vectors.npz", "npz")
        for attempt in (lambda: resume(old), lambda: train(graph, out=old, force=True, **FAST)):
            with pytest.raises(FolderInUse):
                attempt()
    resume(old)
    assert names(old) == sorted([*FILES, "vectors.npz"])


def test_a_finished_run_waits_while_its_place_is_in_use(
    old: Path, runs: tuple[Path, Path], graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("relwalk.runs.folder.WAIT", 0.1)
    with pytest.raises(Interrupted):
        train(graph, out=old, force=True, seed=2, stop=lambda: True, **FAST)
    with lock_folder(old), pytest.raises(FolderInUse):
        resume(old)
    assert load_run(old).record.training.seed == 2
    assert weights(old) == weights(runs[1])


def test_a_stale_lock_is_taken_over(old: Path) -> None:
    (old / LOCK).write_text(json.dumps({"process": 1, "host": "elsewhere", "since": "2020-01-01"}))
    assert resume(old, epochs=3).record.metrics["epochs"] == 3
    assert names(old) == sorted(FILES)


def test_a_holder_removes_no_lock_but_its_own(tmp_path: Path) -> None:
    with lock_folder(tmp_path):
        (tmp_path / LOCK).unlink()
        (tmp_path / LOCK).write_text("of another process")
    assert (tmp_path / LOCK).read_text() == "of another process"


@pytest.mark.parametrize("name", [".run.json.12345.tmp", ".report.html.99.tmp", ".checkpoint.safetensors.7.tmp"])
def test_what_a_killed_process_left_half_written_is_removed(old: Path, name: str) -> None:
    (old / name).write_text("half")
    (old / ".notes.12345.tmp").write_text("mine")
    resume(old, epochs=3)
    assert names(old) == sorted([*FILES, ".notes.12345.tmp"])


def test_a_file_that_is_being_written_is_no_leftover(tmp_path: Path) -> None:
    (tmp_path / ".page.1.tmp").write_text("half")
    with atomic_file(tmp_path / "page") as file:
        file.write(b"first")
        mine = next(p for p in tmp_path.iterdir() if p.name.startswith(".page"))
        other = mine.with_name(".page.1.tmp")
        os.link(mine, other)  # as if another living process wrote the same file: it is locked
        write_atomically(tmp_path / "leaf", b"other")
        assert other.exists()
        other.unlink()
    assert names(tmp_path) == ["leaf", "page"]
    with pytest.raises(Crash), atomic_file(tmp_path / "page"):
        raise Crash
    assert (tmp_path / "page").read_bytes() == b"first"
    assert names(tmp_path) == ["leaf", "page"]
