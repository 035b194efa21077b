from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from relwalk.errors import GraphError
from relwalk.evaluation.classification import (
    best_threshold,
    classify,
    count_scores,
    fit_thresholds,
    roc_auc,
)
from relwalk.evaluation.labelled import corrupt, triple_keys
from relwalk.graph.graph import Graph
from relwalk.graph.read import read_graph
from relwalk.models.base import Scorer
from tests.conftest import TEST, TRAIN, VALID, make_graph


def right(scores: np.ndarray, labels: np.ndarray, threshold: float) -> int:
    return int(((scores >= threshold) == labels).sum())


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=1, max_size=12))
def test_no_threshold_beats_the_best_one(examples: list[tuple[int, bool]]) -> None:
    scores, labels = (np.array(x) for x in zip(*examples, strict=True))
    scores = scores.astype(np.float64)
    found = right(scores, labels, best_threshold(scores, labels))
    assert np.isfinite(best_threshold(scores, labels))
    assert found == max(right(scores, labels, t) for t in np.arange(-4, 4.1, 0.5))


def test_the_threshold_stands_in_the_middle_of_the_gap() -> None:
    assert best_threshold(np.array([0.0, 1.0, 5.0, 6.0]), np.array([False, False, True, True])) == 3


def test_relations_have_their_own_thresholds_and_a_common_one_elsewhere() -> None:
    triples = np.array([[0, 0, 1], [0, 0, 2], [0, 1, 1], [0, 1, 2]], np.int32)
    scores, labels = np.array([10.0, 20.0, 1.0, 2.0]), np.array([False, True, False, True])
    found = fit_thresholds(triples, scores, labels, relations=3)
    assert found.per_relation[:2].tolist() == [15, 1.5]
    assert found.per_relation[2] == found.overall
    assert found.fitted.tolist() == [True, True, False]
    assert found.decide(triples, scores).tolist() == labels.tolist()


def test_auc_by_hand() -> None:
    scores, labels = np.array([1.0, 2.0, 2.0, 3.0]), np.array([False, True, False, True])
    assert roc_auc(scores, labels) == pytest.approx((1 + 0.5 + 1 + 1) / 4)
    assert roc_auc(scores, np.ones(4, bool)) == 0.5


def test_the_count_baseline_counts_tails_of_relations(five: Graph) -> None:
    found = count_scores(five)(np.array([[4, 0, 2], [4, 0, 1], [4, 0, 4], [4, 1, 2]], np.int32))
    assert found.tolist() == [2, 1, 0, 0]


def test_made_negatives_are_false_of_the_right_argument_and_by_seed(world: Graph) -> None:
    negatives = corrupt(world, "test", seed=1)
    known = {tuple(row) for row in world.triples.tolist()}
    assert not known & {tuple(row) for row in negatives.tolist()}
    assert len(negatives) > 0.95 * len(world.test)
    for side, column in (("head", 0), ("tail", 2)):
        for relation in range(len(world.relations)):
            own = negatives[negatives[:, 1] == relation]
            assert np.isin(own[:, column], world.argument_lists[side][relation]).all()
    assert np.array_equal(negatives, corrupt(world, "test", seed=1))
    assert not np.array_equal(negatives, corrupt(world, "test", seed=2))


def test_false_triples_of_valid_know_nothing_of_test(world: Graph) -> None:
    drawn = corrupt(world, "valid", seed=1)
    assert np.array_equal(drawn, corrupt(replace(world, test=drawn), "valid", seed=1))
    known = triple_keys(np.concatenate([world.train, world.valid]), world)
    assert not np.isin(triple_keys(drawn, world), known).any()
    many = np.concatenate([corrupt(world, "valid", seed=seed) for seed in range(20)])
    assert np.isin(triple_keys(many, world), triple_keys(world.test, world)).any()


class Oracle(Scorer):
    """Knows the graph: 1 for a true triple, 0 for any other, plus something that differs by relation."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(len(graph.entities), len(graph.relations), 1)
        self.known = {tuple(row) for row in graph.triples.tolist()}

    def score(self, heads, relations, tails):
        triples = zip(heads.tolist(), relations.tolist(), tails.tolist(), strict=True)
        return torch.tensor([(t in self.known) + 10.0 * t[1] for t in triples])

    def score_candidates(self, side, given, relations, candidates=None): ...


def test_an_oracle_is_right_and_the_baseline_is_not(world: Graph) -> None:
    found = classify(Oracle(world), world, seed=3)
    assert (found.model.accuracy, found.model.f1, found.model.roc_auc) == (1, 1, 1)
    assert 0.5 < found.baseline.accuracy < 0.95
    assert found.as_dict()["accuracy"] == 1
    assert "made from argument candidates, seed 3" in str(found)


def test_a_relation_without_validation_is_named() -> None:
    graph = make_graph(TRAIN, VALID, [(0, 0, 3), (2, 1, 0)])
    assert classify(Oracle(graph), graph).unfitted == ("knows",)


def test_graphs_without_a_split_are_refused() -> None:
    with pytest.raises(GraphError, match="no valid triples"):
        classify(Oracle(make_graph(TRAIN)), make_graph(TRAIN, [], TEST))


def test_counting_alone_reaches_its_published_accuracy_on_fb13(benchmarks) -> None:
    """85.57 with the official negatives and thresholds from dev: shared with every learned figure as its baseline."""
    graph = read_graph("fb13", data_dir=benchmarks)
    assert (len(graph.valid), len(graph.test)) == (5_908, 23_733)
    assert graph.test_negatives is not None

    class Nothing(Oracle):
        def __init__(self) -> None:
            Scorer.__init__(self, 1, 1, 1)

        def score(self, heads, relations, tails):
            return torch.zeros(len(heads))

    found = classify(Nothing(), graph)
    assert found.baseline.accuracy == pytest.approx(0.8557, abs=0.002)
    assert found.negatives == "the data set's own"
