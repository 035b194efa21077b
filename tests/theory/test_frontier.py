"""Accuracy against theory: what a weaker decay does to the vectors, to Z and to the theorem."""

from __future__ import annotations

import math

import pytest
from tools.frontier import markdown, measure

from relwalk.graph.graph import Graph


def test_a_weaker_decay_lets_vectors_grow_and_the_theorem_err(small_world: Graph) -> None:
    rows = [measure(small_world, 8, decay, epochs=10, seed=0, threads=1) for decay in (3.0, 0.1)]
    short, long = rows
    assert short["variance"] < 0.1 < 1 < long["variance"] and short["valid_mrr"] < long["valid_mrr"]
    assert short["theorem"]["rmse"] < long["theorem"]["rmse"] and short["z_spread"] < long["z_spread"]
    expected = math.sqrt((math.exp(long["variance"]) - 1) / len(small_world.entities))
    assert long["z_spread_expected"] == pytest.approx(expected)
    page = markdown(
        {"command": "c", "machine": "m", "graph": "g", "epochs": 10, "seed": 0, "log_entities": 5.0, "rows": rows}
    )
    assert f"| 8 | 0.1 | {long['valid_mrr']:.3f} | {long['test_mrr']:.3f} |" in page
