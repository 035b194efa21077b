"""Several processes answer and discover what one does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.sharded.ranks import one, random_graph, relwalk_ranks

BRIEF = ("--dim", 8, "--epochs", 4, "--batch-size", 64, "--seed", 3, "--threads", 1, "--candidates-per-step", 0)
KINDS = {"relwalk": ("--model", "relwalk"), "two tables": ("--model", "cp"), "inverses": ("--model", "complex")}


@pytest.fixture(scope="module", params=KINDS)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("sharded")
    graph = random_graph(place / "graph", entities=61, triples=500)
    inverses = ("--reciprocal",) if request.param == "inverses" else ()
    one("train", graph, "--out", place / "run", *BRIEF, *KINDS[request.param], *inverses, folder=place)
    return place / "run"


def found_by(size: int, *words: object, folder: Path) -> Any:
    """What one process, or several, print as JSON."""
    said = one(*words, folder=folder) if size == 1 else relwalk_ranks(size, *words, folder=folder)
    return json.loads(said.out[0])


def close(found: Any, expected: Any) -> bool:
    """The same names in the same order, and numbers to rounding."""
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(close(found[key], expected[key]) for key in expected)
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(close, found, expected))
    return (
        bool(found == pytest.approx(expected, rel=2e-3, abs=1e-6)) if isinstance(expected, float) else found == expected
    )


@pytest.mark.parametrize("more", [(), ("-k", 5, "--only-new"), ("--coverage", 0.9), ("--raw",)])
def test_queries_have_the_same_answers(more: tuple[object, ...], run: Path, tmp_path: Path) -> None:
    if more and "complex" in (run / "run.json").read_text():
        pytest.skip("one way of asking is enough for it")
    lines = [f"e{i}\tr{i % 4}\t?" for i in range(7)] + [f"?\tr{i % 4}\te{i}" for i in range(6)] + ["e1\t?\te2"]
    (tmp_path / "asked.tsv").write_text("\n".join(lines if "--coverage" not in more else lines[:-1]) + "\n")
    words = ("predict", run, "--queries", tmp_path / "asked.tsv", "--json", *more)
    expected = found_by(1, *words, folder=tmp_path)
    assert close(found_by(2, *words, folder=tmp_path), expected), expected


def test_the_same_links_are_discovered(run: Path, tmp_path: Path) -> None:
    for more in ((), ("--all-questions", "--relation", "r1")):
        words = ("discover", run, "-k", 12, "--json", *more)
        expected = found_by(1, *words, folder=tmp_path)
        assert len(expected["links"]) == 12
        assert close(found_by(2, *words, folder=tmp_path), expected), expected


def test_the_first_process_writes_the_file(run: Path, tmp_path: Path) -> None:
    if "relwalk" not in json.loads((run / "run.json").read_text())["model"]["name"]:
        pytest.skip("the model does not matter")
    (tmp_path / "asked.tsv").write_text("e1\tr1\t?\n")
    for verb in (("predict", "--queries", tmp_path / "asked.tsv"), ("discover",)):
        words = (verb[0], run, *verb[1:], "--out", tmp_path / f"{verb[0]}.tsv")
        relwalk_ranks(2, *words, folder=tmp_path)
        assert len((tmp_path / f"{verb[0]}.tsv").read_text().splitlines()) > 5
    for words, fault in (
        (("predict", run, "--queries", "-"), "several processes cannot read one standard input"),
        (("discover", run, "--doubtful"), "found by one process: call it without torchrun"),
    ):
        assert fault in relwalk_ranks(2, *words, folder=tmp_path, status=1).err[0]
