"""The verbs on the theory, through the real entry point."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.entry import answer, relwalk

PARTS = ("orthogonality", "similarity", "concentration", "lemma", "correlation", "theorem", "limits", "calibration")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("theory") / "world"
    relwalk("train", "world", "--out", path, "--dim", 16, "--epochs", 3)
    return path


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("theory") / "drawn"
    relwalk("generate", "--out", out, "--entities", 60, "--relations", 2, "--triples", 800, "--dim", 8)
    return out


def test_analyse_measures_every_part(run: Path) -> None:
    found = answer("analyse", run, "--directions", 50, "--sample", 500)
    assert set(PARTS) <= set(found)
    assert found["settings"]["directions"] == 50
    for part in ("orthogonality", "concentration", "correlation", "theorem", "calibration"):
        assert len(found[part]["relations"]) == 10, part
    printed = relwalk("analyse", run, "--directions", 50, "--part", "orthogonality").stdout
    assert "orthogonality" in printed
    assert "theorem" not in printed


def test_analyse_says_what_does_not_apply(tmp_path: Path) -> None:
    relwalk("train", "world", "--model", "distmult", "--dim", 8, "--epochs", 1, "--out", tmp_path / "run")
    found = answer("analyse", tmp_path / "run", "--directions", 20)
    assert found["concentration"]["applies"] is False
    assert "DistMult" in found["concentration"]["reason"]


def test_analyse_refuses_an_unknown_part(run: Path) -> None:
    assert "Did you mean 'theorem'" in relwalk("analyse", run, "--part", "theorm", status=1).stderr


def test_walk_by_name(run: Path) -> None:
    found = answer("walk", run, "--start", "France", "--steps", 3, "--paths", 2)
    assert [len(path["steps"]) for path in found["paths"]] == [3, 3]
    assert found["paths"][0]["steps"][0]["head"] == "France"
    held = answer("walk", run, "--start", "France", "--relation", "borders", "--hold", "entity", "--paths", 1)
    assert {(step["head"], step["relation"]) for step in held["paths"][0]["steps"]} == {("France", "borders")}
    assert "France" in relwalk("walk", run, "--start", "France").stdout
    assert "'France'" in relwalk("walk", run, "--start", "Frannce", status=1).stderr
    assert "--start" in relwalk("walk", run, "--hold", "entity", status=1).stderr.replace("start=", "--start ")


def test_generate_writes_a_graph_and_its_truth(drawn: Path, tmp_path: Path) -> None:
    record = json.loads((drawn / "truth" / "run.json").read_text())
    assert (record["recipe"], record["status"]) == ("generated", "finished")
    assert answer("evaluate", drawn / "truth")["graph"] == "generated-0"
    assert "--force" in relwalk("generate", "--out", drawn, status=1).stderr
    assert "--force" in relwalk("generate", "--out", drawn / "train.txt", status=1).stderr
    relwalk("generate", "--out", drawn, "--entities", 60, "--relations", 2, "--triples", 800, "--dim", 8, "--force")
    assert "at most" in relwalk("generate", "--out", tmp_path / "x", "--entities", 5, "--triples", 900, status=1).stderr


def test_the_loop_closes_on_disk(drawn: Path, tmp_path: Path) -> None:
    relwalk("train", drawn, "--dim", 8, "--epochs", 40, "--no-hidden", "--out", tmp_path / "run")  # as it was drawn
    options = ("--part", "orthogonality", "--truth", drawn)
    found = answer("analyse", tmp_path / "run", *options)["closed_loop"]
    assert found["learned"] > found["shuffled"]["high"] + 0.2
    assert found["interaction"] > found["shuffled_interaction"]["high"] + 0.1
    train = (drawn / "train.txt").read_text().splitlines()
    assert found["pairs"] == 2 * 60 * 60 - len(train)
    assert "closed loop" in relwalk("analyse", tmp_path / "run", *options).stdout
