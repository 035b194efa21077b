"""`relwalk report`, through the real entry point."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from relwalk.experiment import train
from tests.conftest import TEST, TRAIN, VALID, make_graph


def relwalk(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "relwalk", *map(str, words)], capture_output=True, text=True)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "hand"
    train(make_graph(TRAIN, VALID, TEST), out=path, dim=4, epochs=2, threads=1)
    return path


def test_it_writes_one_file_says_where_and_overwrites_nothing(run: Path, tmp_path: Path) -> None:
    done = relwalk("report", run, "--directions", 20)
    assert done.returncode == 0, done.stderr
    page = run / "report.html"
    assert done.stdout.strip() == str(page) and page.read_text("utf-8").startswith("<!doctype html>")
    assert "ranking test" in done.stderr and "writing 10 of 10" in done.stderr
    again = relwalk("report", run)
    assert again.returncode == 1 and "--force" in again.stderr and "exists already" in again.stderr
    forced = relwalk("report", run, "--force", "--directions", 20, "--relation", "knows", "--relation", "likes")
    assert forced.returncode == 0, forced.stderr


def test_mistakes_are_told_in_a_line(run: Path, tmp_path: Path) -> None:
    unknown = relwalk("report", run, "--out", tmp_path / "a.html", "--relation", "knws")
    assert unknown.returncode == 1 and "no relation is called 'knws'. Did you mean 'knows'?" in unknown.stderr
    assert not (tmp_path / "a.html").exists()
    lost = relwalk("report", run, "--out", tmp_path / "nowhere" / "a.html")
    assert lost.returncode == 1 and "is not a folder" in lost.stderr
    stranger = relwalk("report", tmp_path, "--out", tmp_path / "a.html")
    assert stranger.returncode == 1 and "is not a relwalk run" in stranger.stderr
