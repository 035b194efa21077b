"""Threads, tiles and number types change a training by rounding and by nothing else."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from relwalk.evaluation.ranking import rank
from relwalk.experiment import train
from relwalk.graph.graph import Graph
from relwalk.runs.run import Run
from relwalk.training import all_entities
from relwalk.training.softmax import Workspace


def learn(graph: Graph, **settings: object) -> Run:
    return train(graph, dim=16, epochs=3, **({"seed": 0, "threads": 2, "precision": "float32"} | settings))


@pytest.fixture(scope="module")
def usual(world: Graph) -> Run:
    return learn(world)


def difference(a: Run, b: Run) -> float:
    """Of the scores of test, in units of their spread."""
    h, r, t = torch.tensor(a.graph.test, dtype=torch.long).T
    x, y = (run.model.score(h, r, t).detach() for run in (a, b))
    return float((x - y).abs().max() / x.std())


def mrr(run: Run) -> float:
    return rank(run.model, run.graph, "test").metrics().mrr


def test_the_same_seed_gives_the_same_weights(usual: Run, world: Graph) -> None:
    again, other = learn(world), learn(world, seed=1)
    assert all(torch.equal(a, b) for a, b in zip(usual.model.parameters(), again.model.parameters(), strict=True))
    assert difference(usual, other) > 0.1


def test_threads_change_rounding_alone(usual: Run, world: Graph) -> None:
    alone = learn(world, threads=1)
    assert difference(usual, alone) < 1e-3
    assert mrr(alone) == pytest.approx(mrr(usual), abs=1e-3)


def test_tiles_change_rounding_alone(usual: Run, world: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(all_entities, "Workspace", partial(Workspace, tile=77))
    small = learn(world)
    assert difference(usual, small) < 1e-3
    assert mrr(small) == pytest.approx(mrr(usual), abs=1e-3)


def test_bfloat16_changes_little(usual: Run, world: Graph) -> None:
    coarse = learn(world, precision="bfloat16")
    assert 0 < difference(usual, coarse) < 1
    assert mrr(coarse) == pytest.approx(mrr(usual), abs=0.02)
