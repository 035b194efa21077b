"""The benchmark graphs, found through the environment variable RELWALK_DATA."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from relwalk.graph.answers import SIDES, arguments
from relwalk.graph.formats import detect
from relwalk.graph.read import read_graph


def benchmark(name: str) -> Path:
    data = os.environ.get("RELWALK_DATA")
    if not data or not (Path(data) / name).is_dir():
        pytest.skip(f"set RELWALK_DATA to a folder that holds {name}")
    return Path(data) / name


@pytest.mark.parametrize(
    ("name", "format", "sizes"),
    [
        ("wn18rr", "plain", (40_943, 11, 86_835, 3_034, 3_134)),
        ("fb15k-237", "plain", (14_541, 237, 272_115, 17_535, 20_466)),
        ("fb13", "socher", (75_043, 13, 316_232, 5_908, 23_733)),
        ("openke/WN18RR", "openke", (40_943, 11, 86_835, 3_034, 3_134)),
        ("openke/FB13", "openke", (75_043, 13, 316_232, 5_908, 23_733)),
    ],
)
def test_benchmark_sizes(name: str, format: str, sizes: tuple[int, ...]) -> None:
    path = benchmark(name)
    graph = read_graph(path)
    parts = (graph.entities, graph.relations, graph.train, graph.valid, graph.test)
    assert tuple(len(part) for part in parts) == sizes and detect(path).name == format
    if name.lower().endswith("fb13"):
        assert graph.test_negatives is not None and len(graph.test_negatives) == 23_733


@pytest.mark.parametrize("name", ["openke/WN18RR", "openke/FB13"])
def test_shipped_argument_lists_are_those_of_the_triples(name: str) -> None:
    graph = read_graph(benchmark(name))
    assert graph.type_lists is not None
    for side in SIDES:
        computed = arguments(graph.triples, side, len(graph.relations))
        np.testing.assert_array_equal(computed.offsets, graph.type_lists[side].offsets)
        np.testing.assert_array_equal(computed.values, graph.type_lists[side].values)
