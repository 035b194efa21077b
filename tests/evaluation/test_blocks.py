"""Ranks do not depend on how the work is cut: exact arithmetic, many ties, questions with many truths."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from relwalk.errors import RelWalkError
from relwalk.evaluation import ranking, scores
from relwalk.evaluation.questions import DistinctQuestions
from relwalk.evaluation.ranking import rank
from relwalk.graph.graph import Graph
from relwalk.models.base import ProductScorer
from relwalk.models.tables import EntityTable, with_constant
from tests.conftest import make_graph
from tests.evaluation.test_ranking import ranks, slow_ranks

ENTITIES, RELATIONS = 9, 3


class Whole(ProductScorer):
    """DistMult of small whole numbers, with a bias: sums are exact in any order, and many are equal."""

    def __init__(self, seed: int, entities: int = ENTITIES, by_relation: bool = False) -> None:
        super().__init__(entities, RELATIONS, 3)
        draw = torch.Generator().manual_seed(seed)
        self.entity = EntityTable(torch.randint(-1, 2, (entities, 3), generator=draw).float())
        self.relation = nn.Parameter(torch.randint(-1, 3, (RELATIONS, 3), generator=draw).float())
        self.keys_by_relation = by_relation

    def score(self, heads, relations, tails):
        h, t = self.entity(heads), self.entity(tails)
        return (h * self.relation[relations] * t).sum(-1) + self._bias(h) + self._bias(t)

    def queries(self, side, given, relations):
        x = self.entity(given)
        return with_constant(x if self.keys_by_relation else x * self.relation[relations], 1.0)

    def keys(self, side, entities=None, relations=None):
        e = self.entity(entities)
        weighed = e if relations is None else e * self.relation[relations]
        return torch.cat([weighed, self._bias(e).unsqueeze(-1)], -1)

    def offsets(self, side, given, relations):
        return self._bias(self.entity(given))

    @staticmethod
    def _bias(e):
        return e.abs().sum(-1)

    def as_table(self) -> np.ndarray:
        """Every score, one at a time.  # (entities, relations, entities)"""
        h, r, t = np.indices((self.entities, self.relations, self.entities)).reshape(3, -1)
        with torch.no_grad():
            found = self.score(*(torch.from_numpy(ids) for ids in (h, r, t)))
        return found.view(self.entities, self.relations, self.entities).double().numpy()


entity = st.integers(0, ENTITIES - 1)
few = st.integers(0, 2)  # few given entities: many triples ask the same question
triples = st.lists(
    st.one_of(st.tuples(few, st.integers(0, 2), entity), st.tuples(entity, st.integers(0, 2), few)),
    min_size=1,
    max_size=30,
)


@settings(max_examples=80, deadline=None)
@given(
    train=triples,
    test=triples,
    filtered=st.booleans(),
    rule=st.sampled_from(["all", "argument", "argument-train"]),
    block=st.sampled_from([None, 1, 20, 100]),
    chunk=st.sampled_from([1, 5, 1 << 14]),
    tile=st.sampled_from([32, 64, 1 << 18]),  # at least one row of any block
    by_relation=st.booleans(),
    seed=st.integers(0, 99),
)
def test_products_agree_with_a_slow_reference(
    train, test, filtered, rule, block, chunk, tile, by_relation, seed
) -> None:
    graph = make_graph(train, [], test, entities=ENTITIES, relations=RELATIONS)
    model = Whole(seed, by_relation=by_relation)
    with patch.object(ranking, "CHUNK", chunk), patch.object(scores, "TILE", tile):
        found = rank(model, graph, "test", filtered=filtered, candidates=rule, block=block)
    for side in ("head", "tail"):
        assert ranks(found, side) == slow_ranks(graph, model.as_table(), side, filtered, rule)


@pytest.mark.parametrize("rule", ["all", "argument", "argument-train"])
def test_cuts_and_threads_change_nothing(rule: str) -> None:
    """A larger graph, one question of which has 150 truths."""
    draw = np.random.default_rng(0)
    rows = np.column_stack([draw.integers(0, 700, 900), draw.integers(0, 3, 900), draw.integers(0, 700, 900)])
    rows[:150, :2] = (5, 1)
    graph = make_graph(rows[::3], [], rows, entities=700, relations=3)
    model = Whole(1, entities=700)
    threads = torch.get_num_threads()
    found = []
    try:
        for block, chunk, tile, count in [(None, 1 << 14, 1 << 18, 2), (700, 64, 128, 1), (30_000, 300, 4096, 1)]:
            torch.set_num_threads(count)
            with patch.object(ranking, "CHUNK", chunk), patch.object(scores, "TILE", tile):
                result = rank(model, graph, "test", candidates=rule, block=block)
            found.append([ranks(result, side) for side in ("head", "tail")])
    finally:
        torch.set_num_threads(threads)
    assert found[0] == found[1] == found[2]


def test_a_question_is_scored_once(five: Graph) -> None:
    """Three triples that ask (a, likes, ?) make one column of scores."""
    graph = make_graph([(0, 0, 1)], [], [(0, 0, 1), (0, 0, 2), (0, 0, 3), (0, 0, 3)])
    questions = DistinctQuestions.from_triples(graph.test, "tail")
    assert (questions.given.tolist(), questions.relation.tolist()) == ([0], [0])
    assert questions.asked_by(np.array([0])).rounds.tolist() == [1, 1, 1, 1]
    assert len(DistinctQuestions.from_triples(graph.test, "head")) == 3
    assert all(len(rank(Whole(0, 5), graph, "test").ranks[side].optimistic) == 4 for side in ("head", "tail"))


@pytest.mark.parametrize("value", [np.nan, 3e38])
def test_weights_that_make_no_numbers_are_refused(five: Graph, value: float) -> None:
    """Not a number, or so large that a product may add an infinity to its opposite."""
    model = Whole(0, entities=5)
    with torch.no_grad():
        model.relation.copy_(torch.tensor([[value, -value, 1.0]]).expand(3, 3))
        model.entity.weight.copy_(torch.full((5, 3), 4.0))
    with pytest.raises(RelWalkError, match="not numbers"):
        rank(model, five, "test")


def test_large_scores_that_are_numbers_are_ranked(five: Graph) -> None:
    """Beyond the bound that proves there is no overflow, the scores themselves are looked at."""
    model = Whole(0, entities=5)
    with torch.no_grad():
        model.relation.copy_(torch.tensor([[1e38, 0.0, 0.0]]).expand(3, 3))
        model.entity.weight.copy_(torch.tensor([[1.0, 0, 0], [1, 0, 0], [0, 0, 0], [-1, 0, 0], [1.5, 0, 0]]))
    found = rank(model, five, "test", filtered=False)
    assert ranks(found, "tail")[0] == (5, 5, 5)  # (a likes d): -1e38, below all others
