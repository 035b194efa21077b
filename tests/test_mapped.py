"""Tables in files: the same bits as in memory, gone with the process, and runs that are mapped when they are loaded."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save
from tools.large import Shape, measure, wikidata_like

import relwalk
from relwalk.errors import Interrupted, RelWalkError
from relwalk.mapped import DiskRoom, all_finite, blocks, is_mapped
from relwalk.models.tables import EntityTable, normal_rows, tables_in
from relwalk.runs import run as runs
from relwalk.runs.run import load_run
from relwalk.runs.tensor_file import file_parts
from tests.sharded.ranks import random_graph, relwalk_ranks

BRIEF = {"dim": 16, "epochs": 2, "batch_size": 64, "validate_every": 1, "seed": 3, "threads": 1, "progress": False}
KINDS = {
    "drawn": {"model": "relwalk", "candidates_per_step": 30},
    "all": {"model": "complex", "optimizer": "adam", "lr": 0.01},
    "mean": {"model": "distmult", "average_from": 1},
    "no product": {"model": "rotate", "objective": "margin"},
}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return random_graph(tmp_path_factory.mktemp("mapped") / "graph", entities=200, triples=1500)


def test_a_file_is_written_as_the_library_writes_it() -> None:
    kinds = (torch.int64, torch.float64, torch.float32, torch.int32, torch.bfloat16, torch.float16, torch.int8)
    tensors = {f"{kind}": torch.arange(6).view(2, 3).to(kind) for kind in (*kinds, torch.uint8)}
    tensors |= {"none": torch.zeros(0, 3), "one": torch.tensor(2.0), 'a"b é': torch.zeros(3)}
    for metadata in (None, {"said": 'ü "x"\n'}):
        assert b"".join(file_parts(tensors, metadata)) == save(tensors, metadata)


def test_a_mapped_tensor_has_a_file_without_a_name(tmp_path: Path) -> None:
    room = DiskRoom(tmp_path)
    weights = room.copy(torch.randn(100, 20))
    assert is_mapped(weights) and is_mapped(torch.nn.Parameter(weights)) and is_mapped(weights[3:])
    assert not is_mapped(weights.clone()) and not is_mapped(room.copy(torch.zeros(3)))  # too small for a file
    assert list(tmp_path.iterdir()) == []
    assert torch.equal(room.full_like(weights, 2.0), torch.full((100, 20), 2.0))


def test_a_full_disk_is_told_before_it_is_needed(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        DiskRoom(tmp_path).empty((1 << 58,))


def test_blocks_are_all_of_a_tensor() -> None:
    weights = torch.randn(5000, 1000)
    assert len(list(blocks(weights))) > 1 and torch.equal(torch.cat(list(blocks(weights))), weights)
    assert all_finite(weights) and all_finite(torch.tensor(1.0)) and all_finite(torch.zeros(0, 2))
    weights[-1, -1] = torch.nan
    assert not all_finite(weights)


def test_rows_are_drawn_alike_in_memory_and_in_a_file(tmp_path: Path) -> None:
    made = [normal_rows(40_000, 3, torch.Generator().manual_seed(1), times=0.3, over=1.7)]
    with tables_in(DiskRoom(tmp_path)):
        made.append(normal_rows(40_000, 3, torch.Generator().manual_seed(1), times=0.3, over=1.7))
        assert EntityTable(made[1]).mapped and EntityTable(torch.zeros(2000, 3)).mapped
    assert is_mapped(made[1]) and torch.equal(made[0], made[1]) and not EntityTable(made[0]).mapped


@pytest.mark.parametrize("kind", KINDS)
def test_training_on_disk_gives_the_same_bits(kind: str, graph: Path, tmp_path: Path) -> None:
    both = [relwalk.train(graph, out=tmp_path / str(d), on_disk=d, **BRIEF, **KINDS[kind]) for d in (False, True)]
    names = ("weights.safetensors", "checkpoint.safetensors")
    plain, mapped = ([(run.path / name).read_bytes() for name in names] for run in both if run.path)
    assert plain[0] == mapped[0]
    assert not both[0].model.by_blocks and both[1].model.by_blocks
    assert [p.name for p in (tmp_path / "True").iterdir() if p.name.startswith("tmp")] == []
    assert relwalk.rank(both[1]).mrr == pytest.approx(relwalk.rank(both[0]).mrr, rel=1e-5)


def test_resume_on_disk_ends_with_the_same_bits(graph: Path, tmp_path: Path) -> None:
    whole = relwalk.train(graph, out=tmp_path / "whole", **BRIEF, candidates_per_step=30)
    asked = iter(range(100))
    with pytest.raises(Interrupted):
        relwalk.train(
            graph, out=tmp_path / "run", on_disk=True, stop=lambda: next(asked) > 25, **BRIEF, candidates_per_step=30
        )
    relwalk.resume(tmp_path / "run", on_disk=True, progress=False)
    assert whole.path is not None
    ends = [(folder / "weights.safetensors").read_bytes() for folder in (whole.path, tmp_path / "run")]
    assert ends[0] == ends[1]


def test_ranks_have_their_rows_on_disk(graph: Path, tmp_path: Path) -> None:
    words = ("--dim", 16, "--epochs", 1, "--seed", 3, "--candidates-per-step", 30, "--batch-size", 64, "--threads", 1)
    for name, more in (("memory", ()), ("disk", ("--on-disk",))):
        relwalk_ranks(2, "train", graph, "--out", tmp_path / name, *words, *more, folder=tmp_path)
    both = [load_run(tmp_path / name).model.state_dict() for name in ("memory", "disk")]
    assert all(torch.equal(weights, both[1][name]) for name, weights in both[0].items())


def test_a_folder_and_the_cpu_are_needed(graph: Path) -> None:
    with pytest.raises(RelWalkError, match="on_disk keeps tables in files beside the run"):
        relwalk.train(graph, on_disk=True, **BRIEF)


@pytest.mark.parametrize("model", ["relwalk", "cp", "rotate"])
def test_a_large_run_is_mapped_when_it_is_loaded(
    model: str, graph: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    relwalk.train(graph, out=tmp_path / "run", **BRIEF, model=model)
    plain = load_run(tmp_path / "run")
    monkeypatch.setattr(runs, "CHEAP", 0)
    assert not load_run(tmp_path / "run").model.by_blocks  # there is room for keys
    monkeypatch.setattr(runs, "available_memory", lambda: 1000)
    mapped = load_run(tmp_path / "run")
    assert mapped.model.by_blocks and not plain.model.by_blocks
    for name, weights in plain.model.state_dict().items():
        assert torch.equal(weights, mapped.model.state_dict()[name])
    questions = [("e1", "r1", None), (None, "r2", "e3"), ("e1", None, "e2")]
    for one, other in zip(*(relwalk.predict_many(run, questions) for run in (plain, mapped)), strict=True):
        assert [a.name for a in one] == [a.name for a in other]
        assert [a.score for a in one] == pytest.approx([a.score for a in other], rel=1e-4)
    assert relwalk.discover(mapped, k=5).frame()["share"].to_list() == pytest.approx(
        relwalk.discover(plain, k=5).frame()["share"].to_list(), rel=1e-4
    )


def test_a_graph_of_the_shape_of_wikidata_is_made_and_measured(tmp_path: Path) -> None:
    shape = Shape(5000, 30, 22_000)
    head, relation, tail = wikidata_like(shape, np.random.default_rng(0))
    assert set(head.tolist()) == set(range(5000)) and 0 <= tail.min() <= tail.max() < 5000
    most = [np.sort(np.bincount(ids))[::-1] for ids in (tail, relation, head)]
    share = [counts[: max(1, len(counts) // 100)].sum() / counts.sum() for counts in most]
    assert share[0] > 0.15 and share[1] > 0.15 and share[2] < 0.1  # of the first hundredth: heavy, heavy, light
    words = ["--dim", "8", "--epochs", "1", "--batch-size", "512", "--on-disk", "--candidates-per-step", "256"]
    few = ["--threads", "1", "--valid", "0.002", "--test", "0.002"]
    found = measure(tmp_path, "wikidata5m", shape, 0, [*words, "--optimizer", "rowwise-adagrad", *few])
    assert found["entities"] == 5000 and found["triples"] > 20_000 and found["own_gib"] > 0
    assert found["answers"]["open_seconds"] > 0 and json.dumps(found)
