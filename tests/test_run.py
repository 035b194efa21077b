from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

import relwalk
from relwalk.errors import RefusedOverwrite, RelWalkError, RunError, UnknownChoice
from relwalk.experiment import train
from relwalk.graph.graph import Graph
from relwalk.graph.vocabulary import Vocabulary
from relwalk.models.orthogonal import defect
from relwalk.run import FILES, RECORD, load_run

FAST = {"dim": 8, "epochs": 2, "batch_size": 2000}


@pytest.fixture(scope="module")
def saved(world: Graph, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "world"
    train(world, out=path, **FAST)
    return path


@pytest.fixture
def run(saved: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(saved, tmp_path / "run"))


def test_a_run_is_the_folder_the_documentation_says(saved: Path) -> None:
    assert sorted(path.name for path in saved.iterdir()) == sorted(FILES)
    record = json.loads((saved / RECORD).read_text())
    assert record["status"] == "finished"
    assert record["training"]["seed"] == 0
    assert record["versions"]["torch"] == torch.__version__
    assert [json.loads(line)["epoch"] for line in (saved / "history.jsonl").read_text().splitlines()] == [1, 2]


def test_what_is_loaded_is_what_was_trained(saved: Path, world: Graph) -> None:
    run = load_run(saved)
    assert run.graph.fingerprint == world.fingerprint
    assert float(defect(run.model.R2.detach()).abs().max()) < 1e-5
    again = train(world, **FAST)
    assert torch.equal(run.model.entity, again.model.entity)
    assert run.record.metrics == again.record.metrics


def test_names_with_tabs_line_ends_and_backslashes_survive(tmp_path: Path) -> None:
    names = ("a\tb", "c\nd", "e\\tf", "g\r", "\\", "ü ")
    graph = Graph(
        name="odd",
        entities=Vocabulary("entity", names, (None, "x\ty", None, None, None, None)),
        relations=Vocabulary("relation", ("r",)),
        train=np.array([[0, 0, 1], [2, 0, 3], [4, 0, 5]], np.int32),
    )
    train(graph, out=tmp_path / "run", **FAST)
    assert load_run(tmp_path / "run").graph.entities == graph.entities


def test_nothing_is_overwritten_without_force(run: Path, world: Graph, tmp_path: Path) -> None:
    with pytest.raises(RefusedOverwrite, match="force"):
        train(world, out=run, **FAST)
    (run / "notes.txt").write_text("mine")
    train(world, out=run, force=True, **FAST)
    assert (run / "notes.txt").read_text() == "mine"
    other = tmp_path / "thesis"
    other.mkdir()
    (other / "chapter1.tex").write_text("mine")
    with pytest.raises(RefusedOverwrite):  # not a run: force does not touch it
        train(world, out=other, force=True, **FAST)


def test_a_wrong_option_leaves_no_folder(world: Graph, tmp_path: Path) -> None:
    with pytest.raises(UnknownChoice):
        train(world, out=tmp_path / "run", options={"orthogonality": "hard"}, **FAST)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", [name for name in FILES if name not in ("history.jsonl", "checkpoint.safetensors")])
@pytest.mark.parametrize("harm", ["cut", "missing", "foreign", "flipped"])
def test_a_damaged_file_is_refused_by_name(run: Path, name: str, harm: str) -> None:
    file = run / name
    content = file.read_bytes()
    if harm == "missing":
        file.unlink()
    else:
        middle = len(content) // 2
        flipped = content[:middle] + bytes([content[middle] ^ 0xFF]) + content[middle + 1 :]
        file.write_bytes({"cut": content[: len(content) // 2], "foreign": b"\x80\x04K\x01.", "flipped": flipped}[harm])
    with pytest.raises(RunError, match=name.replace(".", r"\.")):
        load_run(run)


def change(run: Path, **fields) -> None:
    record = json.loads((run / RECORD).read_text())
    (run / RECORD).write_text(json.dumps(record | fields))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"version": 99}, "Upgrade relwalk"),
        ({"format": "other"}, "not written by relwalk"),
        ({"surprise": 1}, "surprise"),
        ({"model": {"name": "os.system", "dim": 8}}, "unknown model"),
        ({"model": {"name": "relwalk", "dim": 9}}, "do not fit the model"),
        ({"model": {"name": "relwalk", "dim": -1}}, r"model\.dim"),
        ({"model": {"name": "relwalk", "dim": 8, "options": {"generator": 1}}}, "unknown option"),
        ({"files": {}}, "does not vouch"),
        ({"files": {"../../etc/passwd": "0"}}, "no part of a run"),
        ({"status": "done"}, "status"),
    ],
)
def test_a_tampered_record_is_refused(run: Path, fields: dict, words: str) -> None:
    change(run, **fields)
    with pytest.raises(RelWalkError, match=words):
        load_run(run)


def test_an_unfinished_run_loads_from_its_checkpoint(run: Path, saved: Path) -> None:
    change(run, status="training")
    (run / "weights.safetensors").unlink()
    record = json.loads((run / RECORD).read_text())
    del record["files"]["weights.safetensors"]
    (run / RECORD).write_text(json.dumps(record))
    assert torch.equal(load_run(run).model.entity, load_run(saved).model.entity)
    (run / "checkpoint.safetensors").unlink()
    with pytest.raises(RunError, match="no weights yet"):
        load_run(run)


def test_the_public_names_are_sorted_and_complete() -> None:
    assert list(relwalk.__all__) == sorted(relwalk.__all__)
    assert set(relwalk.__all__) == set(relwalk._HOMES)
    for name in relwalk.__all__:
        assert getattr(relwalk, name).__module__ == relwalk._HOMES[name] or name in ("RelWalk", "Scorer")
    with pytest.raises(AttributeError):
        relwalk.nonsense  # noqa: B018
