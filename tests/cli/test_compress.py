"""`relwalk compress` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from relwalk.experiment import train
from relwalk.graph.graph import Graph
from tests.conftest import make_graph
from tests.entry import relwalk

WRONG = [
    (["--rank", "9"], "rank is 9; expected a whole number from 1 to 8"),
    (["--method", "lossles"], "Did you mean 'lossless'"),
    ([], "nothing is compressed"),
    (["--curve", "--rank", "3"], "leave out how to compress"),
    (["--curve", "--triples", "0"], "triples is 0"),
    (["--rank", "3", "--triples", "5"], "--triples are those of --curve"),
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = [(i, i % 2, (i * 3 + 1) % 12) for i in range(12)] + [(i, 0, (i + 5) % 12) for i in range(12)]
    graph: Graph = make_graph(rows[:16], rows[16:20], rows[20:], entities=12)
    path = tmp_path_factory.mktemp("cli") / "run"
    train(graph, dim=8, epochs=2, out=path, threads=1, progress=False)
    return path


def test_a_smaller_run_and_what_it_cost(run: Path, tmp_path: Path) -> None:
    small = tmp_path / "small"
    said = relwalk("compress", run, "--out", small, "--rank", 4, "--around", "signs", "--entities", "int8", "--json")
    found = json.loads(said.stdout)
    assert found["compression"]["rank"] == 4 and found["disk_bytes"]["ratio"] > 0
    assert set(found["figures"]) == {"all", "argument"}
    assert "MRR" in relwalk("evaluate", small).stdout
    assert "likes" in relwalk("predict", small, "--head", "a", "--relation", "likes").stdout
    assert "is compressed" in relwalk("resume", small, "--epochs", 9, status=1).stderr
    assert "smaller" in relwalk("compress", run, "--out", small, "--keep", 0.5, "--force").stdout


def test_the_curve(run: Path, tmp_path: Path) -> None:
    assert "MRR over K" in relwalk("compress", run, "--curve").stdout
    found = json.loads(relwalk("compress", run, "--curve", "--json", "--out", tmp_path / "curve").stdout)
    assert json.loads((tmp_path / "curve" / "curve.json").read_text()) == found
    assert (tmp_path / "curve" / "curve.svg").read_text().startswith("<svg")
    assert "exists already" in relwalk("compress", run, "--curve", "--out", tmp_path / "curve", status=1).stderr


@pytest.mark.parametrize(("flags", "words"), WRONG)
def test_wrong_flags(run: Path, flags: list[str], words: str, tmp_path: Path) -> None:
    out = [] if "--curve" in flags else ["--out", tmp_path / "small"]
    assert words in relwalk("compress", run, *out, *flags, status=1).stderr
    assert list(tmp_path.iterdir()) == []


def test_the_place_when_none_is_given(run: Path) -> None:
    assert "run-compressed: eig 3" in relwalk("compress", run, "--rank", 3).stdout
    assert (run.parent / "run-compressed" / "run.json").is_file()
