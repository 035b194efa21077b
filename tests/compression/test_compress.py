"""Smaller runs: saved, read, and used like any other; what cannot be made is refused, and the source is not touched."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relwalk
from relwalk.compression import compress as module
from relwalk.compression.compress import Compressed, compress
from relwalk.errors import RelWalkError, RunError
from relwalk.experiment import resume, train
from relwalk.files import sha256
from relwalk.graph.graph import Graph
from relwalk.reporting import make_report
from relwalk.runs.folder import RECORD, WEIGHTS
from relwalk.runs.run import Run, load_run
from tests.conftest import make_graph

WAYS: list[dict[str, Any]] = [
    {"method": "lossless"},
    {"rank": 8},
    {"rank": 6, "method": "svd", "precision": "float16"},
    {"rank": 4, "method": "eig", "around": "signs", "precision": "int8", "entities": "int8"},
    {"entities": "pq"},
    {"entities": "bfloat16"},
]


@pytest.fixture(scope="module")
def run(small_world: Graph, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(
        small_world, dim=16, epochs=3, out=tmp_path_factory.mktemp("source") / "run", threads=1, progress=False
    )


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Run]:
    rows = [(i, i % 2, (i * 3 + 1) % 12) for i in range(12)] + [(i, 0, (i + 5) % 12) for i in range(12)]
    graph = make_graph(rows[:16], rows[16:20], rows[20:], entities=12)
    return lambda **settings: train(graph, dim=8, epochs=2, threads=1, progress=False, **settings)


def same_ranks(a: Run, b: Run) -> bool:
    return all(
        np.array_equal(x.ranks[side].optimistic, y.ranks[side].optimistic)
        for rule in ("all", "argument")
        for x, y in [(relwalk.rank(a, candidates=rule), relwalk.rank(b, candidates=rule))]  # type: ignore[arg-type]
        for side in ("head", "tail")
    )


def test_lossless_gives_the_same_ranks_and_answers(run: Run) -> None:
    found = compress(run, method="lossless")
    assert same_ranks(run, found.run)
    assert found.overlap == 1.0
    for before, after in found.figures.values():
        assert before == after


@pytest.mark.parametrize("method", ["eig", "svd"])
@pytest.mark.parametrize("around", ["identity", "signs"])
def test_all_components_give_the_same_ranks(run: Run, method: str, around: str) -> None:
    before, after = compress(run, method=method, rank=16, around=around).figures["all"]
    assert after.mrr == pytest.approx(before.mrr, abs=1e-4)


@pytest.mark.parametrize("how", WAYS, ids=str)
def test_a_saved_one_is_read_as_it_was_made(run: Run, how: dict[str, Any], tmp_path: Path) -> None:
    found = compress(run, out=tmp_path / "small", **how)
    read = load_run(tmp_path / "small")
    assert read.record.model.compression == found.how
    assert same_ranks(found.run, read)
    assert found.disk.after == (tmp_path / "small" / WEIGHTS).stat().st_size
    assert found.memory.ratio > 1 or how == {"rank": 8}
    again = read.save(tmp_path / "copy")
    assert same_ranks(read, load_run(again.path))  # type: ignore[arg-type]


@pytest.mark.parametrize("how", WAYS[2:5], ids=str)
def test_it_is_used_like_any_other(run: Run, how: dict[str, Any], tmp_path: Path) -> None:
    small = load_run(compress(run, out=tmp_path / "small", **how).run.path)  # type: ignore[arg-type]
    h, r, t = run.graph.test[0].tolist()
    names, relations = run.graph.entities.names, run.graph.relations.names
    assert len(relwalk.predict(small, head=names[h], relation=relations[r])) == 10
    assert len(relwalk.predict(small, relation=relations[r], tail=names[t])) == 10
    assert len(relwalk.predict(small, head=names[h], tail=names[t], k=3)) == 3
    assert relwalk.classify(small).as_dict().keys() == relwalk.classify(run).as_dict().keys()
    assert "exact" in str(relwalk.analyse(small, directions=20))
    (file,) = relwalk.export(small, tmp_path / "x.npz", "npz")
    with np.load(file) as arrays:
        assert arrays["entity"].shape == (len(names), 16)
        assert arrays["R1"].shape == arrays["R2"].shape == (len(relations), 16, 16)
        assert not [name for name in arrays if "factors" in name or "scale" in name]


def test_it_has_a_page(run: Run) -> None:
    page = make_report(compress(run, rank=4, entities="int8").run, directions=20)
    assert "RelWalk, compressed" in page and "eig 4, entities int8" in page
    assert "Draw the curve of the run that it was made from" in page


def test_what_it_says(run: Run, tmp_path: Path) -> None:
    found = compress(run, out=tmp_path / "small", rank=4, around="signs", precision="int8", entities="int8")
    assert isinstance(found, Compressed)
    said = json.loads(json.dumps(found.as_dict()))
    assert said["compression"]["rank"] == 4 and said["run"] == str(tmp_path / "small")
    assert said["memory_bytes"]["before"] == sum(4 * w.numel() for w in run.model.parameters())
    assert said["disk_bytes"]["before"] == (Path(str(run.path)) / WEIGHTS).stat().st_size
    assert set(said["figures"]) == {"all", "argument"}
    assert said["figures"]["all"]["before"]["mrr"] == pytest.approx(relwalk.rank(run).mrr)
    assert said["figures"]["all"]["after"]["mrr"] == pytest.approx(relwalk.rank(found.run).mrr)
    assert 0 < said["first_answers"]["overlap"] <= 1
    assert "eig 4 around signs int8, entities int8" in str(found) and "smaller" in repr(found)
    assert "eig 4 around signs int8, entities int8" in str(load_run(tmp_path / "small"))
    assert json.loads((tmp_path / "small" / RECORD).read_text())["model"]["compression"]["entities"] == "int8"


def test_the_source_stays_as_it_is(run: Run, tmp_path: Path) -> None:
    files = {path: sha256(path) for path in sorted(Path(str(run.path)).iterdir()) if path.is_file()}
    compress(run, out=tmp_path / "small", rank=3, entities="pq")
    assert {path: sha256(path) for path in sorted(Path(str(run.path)).iterdir()) if path.is_file()} == files
    with pytest.raises(RelWalkError, match="the run itself"):
        compress(run, out=run.path, rank=3, force=True)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({}, "nothing is compressed"),
        ({"rank": 0}, "rank is 0; expected a whole number from 1 to 16"),
        ({"rank": 17}, "rank is 17"),
        ({"rank": "four"}, "rank is 'four'"),
        ({"method": "svd"}, "needs a rank"),
        ({"method": "pca", "rank": 3}, "unknown method 'pca'"),
        ({"entities": "int4"}, "unknown entities 'int4'"),
        ({"rank": 3, "precision": "int9"}, "unknown precision 'int9'"),
        ({"rank": 3, "around": "sign"}, "Did you mean 'signs'"),
        ({"keep": -0.1}, "keep is -0.1"),
        ({"keep": "much"}, "keep is 'much'"),
    ],
)
def test_bad_values_are_refused_and_nothing_is_written(run: Run, how: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(RelWalkError, match=words):
        compress(run, out=tmp_path / "small", **how)
    assert list(tmp_path.iterdir()) == []


def test_what_is_in_the_way_stays(run: Run, tmp_path: Path) -> None:
    compress(run, out=tmp_path / "small", entities="float16")
    with pytest.raises(RelWalkError, match="exists already"):
        compress(run, out=tmp_path / "small", entities="int8")
    compress(run, out=tmp_path / "small", entities="int8", force=True)
    assert str(load_run(tmp_path / "small").record.model.compression) == "entities int8"


def test_no_space_on_the_target(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(100, 90, 10))
    with pytest.raises(RelWalkError, match="10 are free"):
        compress(run, out=tmp_path / "a" / "small", entities="float16")
    assert list(tmp_path.iterdir()) == []


def test_a_compressed_run_is_not_compressed_again_nor_resumed(run: Run, tmp_path: Path) -> None:
    small = compress(run, out=tmp_path / "small", rank=4).run
    with pytest.raises(RelWalkError, match="compressed already"):
        compress(small, entities="int8")
    for settings in ({}, {"epochs": 9}):
        with pytest.raises(RunError, match=r"is compressed \(eig 4\).* Resume the run that it was made from"):
            resume(tmp_path / "small", **settings)  # type: ignore[arg-type]
    assert small.outlook is None


def test_models_of_every_kind(others: Callable[..., Run]) -> None:
    with pytest.raises(RelWalkError, match="DistMult has no relation matrices"):
        compress(others(model="distmult"), rank=2)
    for settings in ({"model": "distmult"}, {"model": "transe"}, {"model": "complex"}):
        assert compress(others(**settings), entities="int8").memory.ratio > 1
    assert compress(others(model="rescal"), rank=2, entities="float16").memory.ratio > 1
    assert compress(others(reciprocal=True), method="lossless").overlap == 1.0
    soft = others(orthogonality="soft")
    assert compress(soft, rank=8).overlap == 1.0
    with pytest.raises(RelWalkError, match="these are soft"):
        compress(soft, method="lossless")


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ({"rank": 99}, "cannot be built"),
        ({"rank": 6}, "does not fit the model"),
        ({"method": "x"}, "not a valid run record"),
        ({"entities": "int8"}, "does not fit the model"),
    ],
)
def test_a_record_that_says_another_compression_is_refused(run: Run, damage: Any, words: str, tmp_path: Path) -> None:
    compress(run, out=tmp_path / "small", rank=4)
    file = tmp_path / "small" / RECORD
    record = json.loads(file.read_text())
    record["model"]["compression"] |= damage
    file.write_text(json.dumps(record))
    with pytest.raises(RunError, match=words):
        load_run(tmp_path / "small")
