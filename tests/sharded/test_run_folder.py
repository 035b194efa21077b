"""A run of several processes is a folder like any other: whole, checked, and read by any number of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from relwalk.errors import RunError
from relwalk.experiment import resume
from relwalk.runs.folder import shards_in
from relwalk.runs.run import load_run
from tests.entry import answer, relwalk
from tests.sharded.ranks import one, random_graph, relwalk_ranks

BRIEF = ("--dim", 8, "--batch-size", 64, "--validate-every", 1, "--seed", 3, "--threads", 1, "--decay-end", 1)
BRIEF += ("--precision", "float32")  # what agrees does so to its rounding


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return random_graph(tmp_path_factory.mktemp("sharded") / "graph")


@pytest.fixture(scope="module")
def by_two(graph: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two epochs by two processes."""
    folder = tmp_path_factory.mktemp("two")
    relwalk_ranks(2, "train", graph, "--out", folder / "run", *BRIEF, "--epochs", 2, folder=folder)
    return folder / "run"


@pytest.fixture
def copied(by_two: Path, tmp_path: Path) -> Path:
    place = tmp_path / "run"
    place.mkdir()
    for file in by_two.iterdir():
        (place / file.name).write_bytes(file.read_bytes())
    return place


def tables(run: Path) -> torch.Tensor:
    return load_run(run).model.tables()[0].weight.detach()


def test_each_process_has_a_file_of_rows(by_two: Path) -> None:
    for stem in ("weights", "checkpoint"):
        assert [name.split(".")[1] for name in shards_in(by_two, stem)] == ["0-of-2", "1-of-2"]
        assert all("entity" not in name for name in shards_in(by_two, stem))


def test_one_process_uses_it_as_any_other(by_two: Path) -> None:
    assert answer("evaluate", by_two)["metrics"]["both"]["realistic"]["mrr"] > 0.02
    assert "e1" in relwalk("predict", by_two, "--head", "e0", "--relation", "r0", "--top", 60).stdout


@pytest.mark.parametrize("candidates", ["all", "argument"])
def test_ranks_evaluate_as_one_process_does(candidates: str, by_two: Path, tmp_path: Path) -> None:
    words = ("evaluate", by_two, "--candidates", candidates, "--json")
    said = relwalk_ranks(4, *words, folder=tmp_path)
    assert json.loads(said.out[0]) == json.loads(relwalk(*words).stdout)


@pytest.mark.parametrize("size", [1, 4])
def test_another_number_of_processes_goes_on_with_it(size: int, graph: Path, copied: Path, tmp_path: Path) -> None:
    words = ("resume", copied, "--epochs", 3)
    if size == 1:
        one(*words, folder=tmp_path)
    else:
        relwalk_ranks(size, *words, folder=tmp_path)
    one("train", graph, "--out", tmp_path / "straight", *BRIEF, "--epochs", 3, folder=tmp_path)
    torch.testing.assert_close(tables(copied), tables(tmp_path / "straight"), rtol=2e-3, atol=2e-3)
    assert len(shards_in(copied)) == (0 if size == 1 else 2 * size)  # none is left of the two


def test_processes_go_on_with_a_run_of_one(graph: Path, tmp_path: Path) -> None:
    one("train", graph, "--out", tmp_path / "run", *BRIEF, "--epochs", 1, folder=tmp_path)
    relwalk_ranks(2, "resume", tmp_path / "run", "--epochs", 3, folder=tmp_path)
    one("train", graph, "--out", tmp_path / "straight", *BRIEF, "--epochs", 3, folder=tmp_path)
    torch.testing.assert_close(tables(tmp_path / "run"), tables(tmp_path / "straight"), rtol=2e-3, atol=2e-3)


def test_a_run_in_place_of_another_leaves_none_of_its_files(graph: Path, copied: Path, tmp_path: Path) -> None:
    before = set(shards_in(copied))
    relwalk_ranks(4, "train", graph, "--out", copied, "--force", *BRIEF, "--epochs", 1, folder=tmp_path)
    assert len(shards_in(copied)) == 8 and not before & set(shards_in(copied))
    assert load_run(copied).record.metrics["epochs"] == 1


def no_room() -> None:
    """In each process: no memory for more than it has."""
    from relwalk.sharded import checkpoint

    checkpoint.available_memory = lambda: 0


def test_a_model_that_no_process_has_room_for_is_not_calibrated(graph: Path, tmp_path: Path) -> None:
    words = ("train", graph, "--out", tmp_path / "run", *BRIEF, "--epochs", 1)
    relwalk_ranks(2, *words, folder=tmp_path, before=no_room)
    run = load_run(tmp_path / "run")
    assert run.state.status == "finished" and run.probabilities is None
    assert run.uncalibrated == "the processes that trained it had no room for the whole model"


def test_a_missing_file_of_rows_is_told(copied: Path, tmp_path: Path) -> None:
    (copied / shards_in(copied, "weights")[1]).unlink()
    with pytest.raises(RunError, match=r"weights\.1-of-2\..* is missing"):
        load_run(copied)
    said = relwalk_ranks(2, "evaluate", copied, folder=tmp_path, status=1)
    assert said.err[0].count("is missing") == 1 and len(said.err[0].splitlines()) == 1


def test_a_changed_file_of_rows_is_told(copied: Path) -> None:
    file = copied / shards_in(copied, "checkpoint")[0]
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(RunError, match="was changed after it was written"):
        resume(copied, epochs=3, progress=False)


def test_an_index_that_promises_too_much_is_refused(copied: Path) -> None:
    """Sizes are held to the model before anything of that size is made."""
    from safetensors.torch import load, save_file

    from relwalk.files import sha256
    from relwalk.runs.tensor_file import read_header

    file = copied / "weights.safetensors"
    said, _ = read_header(file)
    index = json.loads(said["shards"])
    index["entities"] = 10**15
    index["tables"] = {name: (kind, [10**15, *shape[1:]]) for name, (kind, shape) in index["tables"].items()}
    save_file(load(file.read_bytes()), file, {**said, "shards": json.dumps(index)})
    record = json.loads((copied / "run.json").read_text())
    record["files"][file.name] = sha256(file)
    (copied / "run.json").write_text(json.dumps(record))
    with pytest.raises(RunError, match="does not fit the model"):
        load_run(copied)
