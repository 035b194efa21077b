"""Planted duplicates and false triples are found again, and by what is not there they are not."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tools.discoveries import among, plant_duplicates, plant_false

from relwalk.discovery.doubtful import doubtful, standardised
from relwalk.discovery.duplicates import duplicates, mutual
from relwalk.discovery.evidence import is_known, linked
from relwalk.discovery.neighbours import directions, nearest
from relwalk.errors import RelWalkError
from relwalk.experiment import train
from relwalk.runs.run import Run
from tests.conftest import make_graph
from tests.discovery.graphs import families, people


@pytest.fixture(scope="module")
def misled() -> tuple[Run, np.ndarray]:
    graph, false = plant_false(families(), 0.03, seed=0)
    return train(graph, dim=64, epochs=60, l2=0.001, threads=1), false  # dimensions enough to learn them by heart


@pytest.fixture(scope="module")
def doubled() -> tuple[Run, np.ndarray]:
    graph, pairs = plant_duplicates(people(), 0.1, seed=0)
    return train(graph, dim=16, epochs=60, hidden=False, threads=1), pairs


def test_false_triples_are_found(misled: tuple[Run, np.ndarray]) -> None:
    run, false = misled
    found = doubtful(run, k=len(false))
    share = among(found.triples, false).mean()
    assert share > 0.6, share
    assert found.judged == len(run.graph.triples)
    # The model's own scores do not find them: it was taught them.
    h, r, t = (run.graph.train[:, i].astype(np.int64) for i in range(3))
    scores = run.model.score(*map(torch.from_numpy, (h, r, t))).detach().numpy()
    own = run.graph.train[np.argsort(scores)[: len(false)]]
    assert among(own, false).mean() < share


def test_a_rare_relation_does_not_fill_the_list() -> None:
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.normal(0, 1, 1000), rng.normal(-8, 1, 30)])[:, None]
    relation = np.repeat([0, 1], [1000, 30]).astype(np.int32)
    z = standardised(values, relation, np.ones(1030, bool), 2)[:, 0]
    worst = relation[np.argsort(z)[:30]]
    assert (worst == 1).sum() < 25
    assert standardised(values[:1], relation[:1], np.ones(1, bool), 2).tolist() == [[0.0]]


def test_what_was_learned_is_not_compared_with_what_was_not() -> None:
    values = np.concatenate([np.full(50, 5.0), np.full(50, 1.0)])[:, None]
    learned = np.repeat([True, False], 50)
    assert np.abs(standardised(values, np.zeros(100, np.int32), learned, 1)).max() == 0


def test_doubtful_of_one_relation(misled: tuple[Run, np.ndarray]) -> None:
    run, _ = misled
    found = doubtful(run, k=7, relations="r1")
    assert set(found.frame()["relation"]) == {"r1"} and len(found) == 7
    assert "doubt" in str(found) and found.as_dict()["triples"][0]["split"] in ("train", "valid", "test")
    assert (np.diff(found.doubt) <= 0).all()
    with pytest.raises(RelWalkError, match="k is 0"):
        doubtful(run, k=0)


def test_duplicates_are_found(doubled: tuple[Run, np.ndarray]) -> None:
    run, pairs = doubled
    found = duplicates(run, k=len(pairs))
    true = {tuple(pair) for pair in pairs.tolist()}
    share = np.mean([tuple(pair) in true for pair in found.pairs.tolist()])
    assert share > 0.6, share
    assert ((found.overlap >= 0) & (found.overlap <= 1)).all() and (np.diff(found.score) <= 0).all()
    assert "overlap" in str(found) and found.as_dict()["pairs"][0]["entity"].startswith("e")


def test_without_duplicates_no_pair_looks_like_one(doubled: tuple[Run, np.ndarray]) -> None:
    run, pairs = doubled
    clean = duplicates(train(people(), dim=16, epochs=60, hidden=False, threads=1), k=len(pairs))
    assert clean.score.mean() < 0.8 * duplicates(run, k=len(pairs)).score.mean()


def test_a_link_between_two_tells_them_apart() -> None:
    graph = make_graph([(0, 0, 1), (2, 1, 3), (3, 1, 3)], entities=4)
    near = np.array([[1, 2, 3], [0, 2, 3], [3, 0, 1], [2, 0, 1]], np.int32)
    pairs, cosines = mutual(graph, near, np.ones(near.shape, np.float32))
    assert {tuple(p) for p in pairs.tolist()} == {(0, 2), (0, 3), (1, 2), (1, 3), (2, 3)}  # `knows` links d to itself
    assert len(cosines) == 5


def test_nearest_are_the_nearest(misled: tuple[Run, np.ndarray]) -> None:
    vectors = directions(misled[0].model)
    ids, cosines = nearest(vectors, 3, lambda done: None)
    table = (vectors @ vectors.T).numpy()
    np.fill_diagonal(table, -9)
    np.testing.assert_allclose(np.sort(cosines), np.sort(np.sort(table)[:, -3:]), atol=1e-5)
    assert (ids != np.arange(len(ids))[:, None]).all()


def test_linked_and_known() -> None:
    graph = make_graph([(0, 0, 1), (1, 1, 0), (2, 0, 3)])
    asked = np.array([(0, 0, 1), (2, 0, 3), (3, 1, 2), (0, 1, 2)], np.int32)
    assert is_known(graph, asked).tolist() == [True, True, False, False]
    assert linked(graph, asked).tolist() == [1, 0, 1, 0]
