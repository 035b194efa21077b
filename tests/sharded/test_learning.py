"""Drawn candidates and several processes learn what the exact likelihood of one process learns."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest
from tools.learning import kinds_on_a_ring, oracle

import relwalk
from relwalk.graph.write import write_graph
from relwalk.runs.run import load_run
from tests.sharded.ranks import one, relwalk_ranks

WORDS = ("--model", "relwalk", "--dim", 16, "--epochs", 10, "--batch-size", 128, "--l2", 0.3, "--decay-end", 1.0)
WORDS += ("--blocks", 1, "--schedule", "cosine", "--validate-every", 5, "--seed", 0, "--threads", 1, "--no-hidden")


def test_all_ways_learn_as_much(tmp_path: Path) -> None:
    graph = kinds_on_a_ring(400, 4, 8, 16, seed=0, held=300)
    write_graph(graph, tmp_path / "graph", "libkge")
    one("train", tmp_path / "graph", "--out", tmp_path / "exact", *WORDS, folder=tmp_path)
    drawn = ("--candidates-per-step", 100)
    relwalk_ranks(2, "train", tmp_path / "graph", "--out", tmp_path / "drawn", *WORDS, *drawn, folder=tmp_path)
    exact, sharded = (relwalk.rank(load_run(tmp_path / name)).mrr for name in ("exact", "drawn"))
    best = oracle(graph, 8)
    assert sharded > 0.95 * exact and exact > 0.8 * best and sharded < 1.1 * best


def test_the_benchmark_holds_processes_to_their_goal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(Path(__file__).parents[2] / "bench"), *sys.path])
    goals = importlib.import_module("goals")
    for seconds, met in ((10.0, True), (13.0, False)):
        rows = {"one": {"epoch_seconds": 9.0}, "several": {"epoch_seconds": seconds, "processes": 2}}
        assert goals._sharded(rows, 0.85)["met"] is met
    assert goals._sharded({"one": {"error": "skipped"}}, 0.85)["value"] is None
