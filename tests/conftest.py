"""Small graphs that every test may use."""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # threads that wait for each other on busy cores must not spin
if "PYTEST_XDIST_WORKER" in os.environ:  # one of several processes has one core to itself, and so has what it starts
    os.environ |= {"OMP_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1", "RAYON_NUM_THREADS": "1"}

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from relwalk import children
from relwalk.graph.graph import Graph
from relwalk.graph.read import read_graph
from relwalk.graph.vocabulary import Vocabulary
from relwalk.models import MODELS
from tests.entry import brief_calibration, brief_theory, zygote

torch.set_num_threads(1 if "PYTEST_XDIST_WORKER" in os.environ else 2)

# Relation 0 "likes", relation 1 "knows"; entity 4 appears only in test.
TRAIN = [(0, 0, 1), (0, 0, 2), (1, 0, 2), (2, 1, 3), (3, 1, 0)]
VALID = [(1, 0, 3)]
TEST = [(0, 0, 3), (2, 1, 4)]

WITH_RELATIONS = [name for name in MODELS if name != "unstructured"]  # those that can have reciprocal ones


def make_graph(train: list, valid: list = (), test: list = (), *, entities: int = 5, relations: int = 2) -> Graph:
    """A graph from id triples; entities are called a, b, c, ..."""

    def triples(rows: list) -> np.ndarray:
        return np.array(rows, np.int32).reshape(-1, 3)

    return Graph(
        name="hand",
        entities=Vocabulary("entity", tuple(chr(ord("a") + i) for i in range(entities))),
        relations=Vocabulary("relation", tuple(["likes", "knows", "sees", "hears", "owns"][:relations])),
        train=triples(train),
        valid=triples(valid),
        test=triples(test),
    )


@pytest.fixture(autouse=True, scope="module")
def brief_unless_judged(request: pytest.FixtureRequest) -> Iterator[None]:
    """Probabilities are fitted on few questions and the theory is tried on little, unless a module looks at it."""
    judged = ("probabilities", "truth", "calibration", "discovery", "prediction", "report")
    with pytest.MonkeyPatch.context() as patch:
        if not any(word in request.module.__name__ for word in judged):
            brief_calibration(patch.setattr)
        if not any(word in request.module.__name__ for word in ("theory", "report")):
            brief_theory(patch.setattr)
        yield


@pytest.fixture(autouse=True, scope="session")
def forked_children() -> Iterator[None]:
    """What this process starts for `compare`, `tune` and `reproduce` is forked from one that has the imports."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(children, "start_process", lambda *asked: zygote().start_process(*asked))
        yield


@pytest.fixture
def five() -> Graph:
    """Five entities, two relations, all by hand."""
    return make_graph(TRAIN, VALID, TEST)


@pytest.fixture(scope="session")
def world() -> Graph:
    return read_graph("world")


@pytest.fixture(scope="session")
def benchmarks() -> Path:
    """The folder of benchmark graphs, or a skip that says what is missing."""
    folder = os.environ.get("RELWALK_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("RELWALK_DATA does not name a folder with the benchmark graphs (wn18rr, fb15k-237, fb13, openke)")
    return Path(folder)


@pytest.fixture(scope="session")
def small_world(world: Graph) -> Graph:
    """The 400 best linked entities of `world` and what is said among them: learned in a fraction of the time."""
    return part_of(world, 400)


def part_of(graph: Graph, count: int) -> Graph:
    """The entities with the most links, as many as asked, and the triples among them."""
    links = np.bincount(graph.triples[:, [0, 2]].ravel(), minlength=len(graph.entities))
    kept = np.sort(np.argsort(-links, kind="stable")[:count])
    new = np.full(len(graph.entities), -1, np.int32)
    new[kept] = np.arange(count)

    def triples(rows: np.ndarray) -> np.ndarray:
        moved = np.stack([new[rows[:, 0]], rows[:, 1], new[rows[:, 2]]], 1)
        return moved[(moved >= 0).all(1)]

    return Graph(
        name=f"{graph.name}-{count}",
        entities=Vocabulary("entity", tuple(graph.entities.names[i] for i in kept)),
        relations=graph.relations,
        train=triples(graph.train),
        valid=triples(graph.valid),
        test=triples(graph.test),
    )
