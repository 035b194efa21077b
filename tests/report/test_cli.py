"""`relwalk report`, through the real entry point."""

from __future__ import annotations

from pathlib import Path

import pytest

from relwalk.experiment import train
from tests.conftest import TEST, TRAIN, VALID, make_graph
from tests.entry import relwalk


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "hand"
    train(make_graph(TRAIN, VALID, TEST), out=path, dim=4, epochs=2, threads=1)
    return path


def test_it_writes_one_file_says_where_and_overwrites_nothing(run: Path, tmp_path: Path) -> None:
    done = relwalk("report", run, "--directions", 20)
    page = run / "report.html"
    assert done.stdout.strip() == str(page) and page.read_text("utf-8").startswith("<!doctype html>")
    assert "ranking test" in done.stderr and "writing 12 of 12" in done.stderr
    again = relwalk("report", run, status=1)
    assert "--force" in again.stderr and "exists already" in again.stderr
    chosen = ["--relation", "knows", "--relation", "likes"]
    relwalk("report", run, "--force", "--directions", 20, *chosen)


def test_the_closed_loop_is_the_runs_own_where_the_truth_is_known(run: Path, tmp_path: Path) -> None:
    drawn, learned, page = tmp_path / "drawn", tmp_path / "learned", tmp_path / "a.html"
    relwalk("generate", "--out", drawn, "--entities", 40, "--relations", 2, "--triples", 400, "--dim", 4)
    relwalk("train", drawn, "--dim", 4, "--epochs", 2, "--out", learned)
    relwalk("report", learned, "--truth", drawn, "--directions", 20, "--out", page)
    assert f"this run, which learned {drawn}" in page.read_text("utf-8")
    other = relwalk("report", run, "--truth", drawn, "--out", tmp_path / "b.html", status=1)
    assert "drew another graph" in other.stderr


def test_mistakes_are_told_in_a_line(run: Path, tmp_path: Path) -> None:
    unknown = relwalk("report", run, "--out", tmp_path / "a.html", "--relation", "knws", status=1)
    assert "no relation is called 'knws'. Did you mean 'knows'?" in unknown.stderr
    assert not (tmp_path / "a.html").exists()
    lost = relwalk("report", run, "--out", tmp_path / "nowhere" / "a.html", status=1)
    assert "is not a folder" in lost.stderr
    stranger = relwalk("report", tmp_path, "--out", tmp_path / "a.html", status=1)
    assert "is not a relwalk run" in stranger.stderr
