from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from relwalk.errors import GraphError, RelWalkError, UnknownChoice
from relwalk.evaluation.ranking import rank
from relwalk.evaluation.result import RANK_RULES
from relwalk.graph.graph import Graph
from relwalk.graph.read import read_graph
from relwalk.models import build_model
from relwalk.models.base import Scorer
from tests.conftest import TEST, TRAIN, VALID, make_graph


class Table(Scorer):
    """Scores by look-up: tails[h, r, t], heads[h, r, t]. The same table unless two are given."""

    def __init__(self, tails: np.ndarray, heads: np.ndarray | None = None) -> None:
        super().__init__(tails.shape[0], tails.shape[1], 1)
        self.tails = torch.from_numpy(np.asarray(tails, np.float32))
        self.heads = self.tails if heads is None else torch.from_numpy(np.asarray(heads, np.float32))

    def score(self, heads, relations, tails):
        return self.tails[heads, relations, tails]

    def score_candidates(self, side, given, relations, candidates=None):
        scores = self.tails[given, relations] if side == "tail" else self.heads[:, relations, given].T
        return scores if candidates is None else scores[:, candidates]


def hand_table() -> np.ndarray:
    scores = np.zeros((5, 2, 5))
    #                  a  b  c  d  e
    scores[0, 0, :] = [9, 8, 1, 5, 5]  # (a likes ?): truth d
    scores[:, 0, 3] = [5, 7, 6, 5, 2]  # (? likes d): truth a
    scores[2, 1, :] = [3, 1, 2, 4, 3]  # (c knows ?): truth e
    scores[:, 1, 4] = [0, 1, 3, 1, 0]  # (? knows e): truth c
    scores[0, 0, 3] = 5
    scores[2, 1, 4] = 3
    return scores


def ranks(result, side: str) -> list[tuple[int, int, int]]:
    r = result.ranks[side]
    return list(zip(r.optimistic.tolist(), r.pessimistic.tolist(), r.candidates.tolist(), strict=True))


def test_every_rank_tie_and_filter_by_hand(five: Graph) -> None:
    """(optimistic, pessimistic, candidates) of each query, worked out on paper."""
    found = rank(Table(hand_table()), five, "test")
    # (a likes d): a 9, b 8 above, e level; b and c are known answers of (a likes ?), so a is left above.
    # (c knows e): d 4 above, a level; d is known.
    assert ranks(found, "tail") == [(2, 3, 3), (1, 2, 4)]
    # (? likes d): b 7, c 6 above, d level; b is known (valid). (? knows e): nothing above or level.
    assert ranks(found, "head") == [(2, 3, 4), (1, 1, 5)]
    raw = rank(Table(hand_table()), five, "test", filtered=False)
    assert ranks(raw, "tail") == [(3, 4, 5), (2, 3, 5)]
    assert ranks(raw, "head") == [(3, 4, 5), (1, 1, 5)]


def test_argument_candidates_by_hand(five: Graph) -> None:
    found = rank(Table(hand_table()), five, "test", candidates="argument")
    # Tails of likes anywhere: b c d; b and c are known: d is alone. Tails of knows: a d e; d known, a level.
    assert ranks(found, "tail") == [(1, 1, 1), (1, 2, 2)]
    # Heads of likes: a b; b known. Heads of knows: c d.
    assert ranks(found, "head") == [(1, 1, 1), (1, 1, 2)]
    raw_train = rank(Table(hand_table()), five, "test", candidates="argument-train", filtered=False)
    # Tails of likes in train: b c, and the truth d itself: b 8 above. Of knows: a d, and the truth e.
    assert ranks(raw_train, "tail") == [(2, 2, 3), (2, 3, 3)]


def test_metrics_of_the_hand_graph(five: Graph) -> None:
    found = rank(Table(hand_table()), five, "test")
    assert found.metrics("tail", "optimistic").mrr == pytest.approx((1 / 2 + 1) / 2)
    assert found.metrics("tail", "realistic").mr == pytest.approx((2.5 + 1.5) / 2)
    assert found.metrics("both", "pessimistic").mrr == pytest.approx((1 / 3 + 1 / 2 + 1 / 3 + 1) / 4)
    assert found.metrics("both").queries == 4
    assert found.unseen_triples == 1  # (c knows e): train never shows e
    assert list(found.by_relation()) == ["likes", "knows"]
    assert found.by_relation("head")["knows"].mrr == 1
    assert sum(m.queries for m in found.by_cardinality().values()) == 4


def test_the_dictionary_is_nested_side_then_rule(five: Graph) -> None:
    metrics = rank(Table(hand_table()), five, "test").as_dict()["metrics"]
    assert set(metrics) == {"head", "tail", "both"}
    assert set(metrics["both"]) == set(RANK_RULES)
    assert metrics["tail"]["optimistic"]["mrr"] == pytest.approx(0.75)
    assert "hits@10" in metrics["both"]["realistic"]


@pytest.mark.parametrize("candidates", ["all", "argument", "argument-train"])
def test_a_constant_scorer_lands_mid_field(candidates: str, world: Graph) -> None:
    constant = Table(np.zeros((1, 1, 1)))
    constant.score_candidates = lambda side, given, r, c=None: torch.zeros(
        len(given), len(world.entities) if c is None else len(c)
    )
    found = rank(constant, world, "valid", candidates=candidates)
    assert found.metrics("both", "realistic").amri == pytest.approx(0, abs=1e-9)
    assert found.metrics("both", "optimistic").mrr == 1
    assert found.metrics("both", "pessimistic").amri == pytest.approx(-1)


def slow_ranks(graph: Graph, scores: np.ndarray, side: str, filtered: bool, rule: str) -> list[tuple[int, int, int]]:
    """The definition, one triple and one candidate at a time."""
    everything = {tuple(row) for row in graph.triples.tolist()}
    seen = {"all": None, "argument": everything, "argument-train": {tuple(row) for row in graph.train.tolist()}}[rule]
    found = []
    for h, r, t in graph.test.tolist():
        above = level = count = 0
        true = scores[h, r, t]
        for e in range(len(graph.entities)):
            triple = (h, r, e) if side == "tail" else (e, r, t)
            own = e == (t if side == "tail" else h)
            place = 2 if side == "tail" else 0
            if not own and seen is not None and not any(x[1] == r and x[place] == e for x in seen):
                continue
            if not own and filtered and triple in everything:
                continue
            count += 1
            above += scores[triple] > true
            level += scores[triple] == true and not own
        found.append((1 + above, 1 + above + level, count))
    return found


triples = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 5)), min_size=1, max_size=12)


@settings(max_examples=60, deadline=None)
@given(
    train=triples,
    valid=triples,
    test=triples,
    filtered=st.booleans(),
    rule=st.sampled_from(["all", "argument", "argument-train"]),
    block=st.sampled_from([1, 7, 40, 10_000]),
    seed=st.integers(0, 99),
)
def test_ranks_agree_with_a_slow_reference(train, valid, test, filtered, rule, block, seed) -> None:
    graph = make_graph(train, valid, test, entities=6, relations=3)
    scores = np.random.default_rng(seed).integers(0, 4, (6, 3, 6)).astype(np.float64)  # many ties
    found = rank(Table(scores), graph, "test", filtered=filtered, candidates=rule, block=block)
    for side in ("head", "tail"):
        assert ranks(found, side) == slow_ranks(graph, scores, side, filtered, rule)


def test_scores_that_are_no_numbers_are_refused(five: Graph) -> None:
    scores = hand_table()
    scores[0, 0, 1] = np.nan
    with pytest.raises(RelWalkError, match="not numbers"):
        rank(Table(scores), five, "test")


def test_wrong_requests_are_named(five: Graph) -> None:
    with pytest.raises(UnknownChoice, match="argument-train"):
        rank(Table(hand_table()), five, "test", candidates="types")
    with pytest.raises(GraphError, match="no test triples"):
        rank(Table(hand_table()), make_graph(TRAIN, VALID), "test")
    assert len(rank(Table(hand_table()), make_graph(TRAIN, VALID, TEST), "train").triples) == len(TRAIN)


@pytest.mark.parametrize("name", ["WN18RR", "FB13"])
def test_argument_lists_equal_openkes(benchmarks, name: str) -> None:
    shipped = read_graph(benchmarks / "openke" / name)
    assert shipped.type_lists is not None
    bare = Graph(shipped.name, shipped.entities, shipped.relations, shipped.train, shipped.valid, shipped.test)
    for side in ("head", "tail"):
        np.testing.assert_array_equal(bare.argument_lists[side].offsets, shipped.type_lists[side].offsets)
        np.testing.assert_array_equal(bare.argument_lists[side].values, shipped.type_lists[side].values)


@pytest.mark.parametrize("options", [{}, {"orthogonality": "soft"}], ids=["exact", "soft"])
@pytest.mark.parametrize("candidates", ["all", "argument", "argument-train"])
def test_products_rank_as_scores_do(world: Graph, options: dict, candidates: str) -> None:
    """The fast way (one product into reused memory) against the plain way, through the model's own scores."""
    model = build_model("relwalk", len(world.entities), len(world.relations), 8, seed=0, options=options)
    plain = Table(np.zeros((1, 1, 1)))
    plain.score_candidates = model.score_candidates
    fast = rank(model, world, "test", candidates=candidates, block=100_000)
    slow = rank(plain, world, "test", candidates=candidates)
    for side in ("head", "tail"):
        difference = np.abs(fast.ranks[side].optimistic - slow.ranks[side].optimistic)
        assert difference.max() <= 1  # the offset may round two scores to the same number
        assert difference.mean() < 0.01
        assert np.array_equal(fast.ranks[side].candidates, slow.ranks[side].candidates)
