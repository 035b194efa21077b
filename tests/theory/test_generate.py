"""A graph from a known model, and the loop closed: learning it back."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

import relwalk
from relwalk.errors import RelWalkError
from relwalk.graph.graph import Graph
from relwalk.synthetic import PLAIN
from relwalk.theory.closed_loop import closed_loop
from relwalk.theory.generate import Generated, _draw, generate, log_joint


@pytest.fixture(scope="module")
def generated() -> Generated:
    return generate(200, 4, 10_000, 16, seed=0)


def learn(graph: Graph) -> relwalk.Scorer:
    return relwalk.train(graph, dim=16, seed=0, threads=1, **PLAIN).model


def test_it_draws_as_many_distinct_triples_as_asked(generated: Generated) -> None:
    graph = generated.graph
    assert len(graph.triples) == 10_000 == len(np.unique(graph.triples, axis=0))
    assert (len(graph.valid), len(graph.test)) == (1000, 1000)
    assert "drawn from a RelWalk" in str(generated)
    again = generate(200, 4, 10_000, 16, seed=0)
    assert again.graph.fingerprint == graph.fingerprint
    assert generate(200, 4, 10_000, 16, seed=1).graph.fingerprint != graph.fingerprint


def test_pairs_come_as_often_as_the_joint_says() -> None:
    model = generate(6, 2, 20, 4, entity_scale=1.5, seed=3).model
    drawn = _draw(model, 60_000, 0.01, torch.Generator().manual_seed(0)).bincount(minlength=72).view(2, 36)
    for relation in range(2):
        joint = np.exp(log_joint(model, relation, directions=50_000)).ravel()
        assert joint.sum() == pytest.approx(1, abs=1e-4)
        n = int(drawn[relation].sum())
        off = (drawn[relation].numpy() - n * joint) / np.sqrt(n * joint)
        assert (off**2).sum() < 80  # chi-squared with 35 degrees of freedom, and the error of the joint


def test_what_cannot_be_drawn_says_why() -> None:
    with pytest.raises(RelWalkError, match="expected at most 50"):
        generate(10, 1, 60, 4)
    with pytest.raises(RelWalkError, match="triples is 0"):
        generate(10, 1, 0, 4)
    with pytest.raises(RelWalkError, match="smaller entity_scale"):
        generate(10, 1, 50, 4, entity_scale=60.0)


def test_the_loop_closes_and_its_shuffled_control_does_not(generated: Generated) -> None:
    loop = closed_loop(generated, learn(generated.graph), directions=10_000)
    assert loop.closed, loop
    assert loop.learned > 0.7 and loop.interaction > 0.5 and loop.learned > loop.popularity + 0.1
    assert loop.shuffled.high < 0.2
    some = loop.some
    assert len(some.truth) == len(some.learned) == len(some.shuffled) == 300
    assert np.corrcoef(some.truth, some.learned)[0, 1] > 0.5 > np.corrcoef(some.truth, some.shuffled)[0, 1] + 0.2
    json.dumps(loop.as_dict(), allow_nan=False)

    graph = generated.graph  # the same heads and tails of every relation, paired at random
    rng, parts = np.random.default_rng(0), []
    for part in (graph.train, graph.valid, graph.test):
        order = np.lexsort((rng.random(len(part)), part[:, 1]))
        mixed = part[np.argsort(part[:, 1], kind="stable")].copy()
        mixed[:, 2] = part[order, 2]
        parts.append(mixed)
    control = Graph("shuffled", graph.entities, graph.relations, *parts)
    broken = closed_loop(generated, learn(control), directions=10_000)
    assert not broken.closed, broken
    assert broken.interaction < 0.1 < loop.interaction


def test_the_learned_model_must_be_of_the_same_graph(generated: Generated) -> None:
    other = generate(10, 1, 20, 4)
    with pytest.raises(RelWalkError, match="10 entities"):
        closed_loop(generated, other.model)
