"""What a split promises, for any triples, shares and seed."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relwalk.errors import GraphError
from relwalk.graph.lists import Ints
from relwalk.graph.split import split_triples

Triple = tuple[int, int, int]

triple = st.tuples(st.integers(0, 11), st.integers(0, 3), st.integers(0, 11))
distinct_triples = st.lists(triple, min_size=1, max_size=80, unique=True)
any_triples = st.lists(triple, min_size=1, max_size=80)
shares = st.tuples(st.floats(0, 0.45), st.floats(0, 0.45))
seeds = st.integers(0, 2**32 - 1)


def array(triples: list[Triple]) -> Ints:
    return np.array(triples, np.int32).reshape(-1, 3)


def rows(triples: Ints) -> list[Triple]:
    return [(h, r, t) for h, r, t in triples.tolist()]


@given(distinct_triples, shares, seeds)
def test_parts_are_disjoint(triples: list[Triple], share: tuple[float, float], seed: int) -> None:
    parts = split_triples(array(triples), valid=share[0], test=share[1], seed=seed)
    train, valid, test = (set(rows(part)) for part in parts)
    assert not train & valid
    assert not train & test
    assert not valid & test


@given(any_triples, shares, seeds)
def test_the_parts_together_are_the_whole(triples: list[Triple], share: tuple[float, float], seed: int) -> None:
    parts = split_triples(array(triples), valid=share[0], test=share[1], seed=seed)
    assert Counter(rows(np.concatenate(parts))) == Counter(triples)
    assert all(part.dtype == np.int32 and part.shape[1:] == (3,) for part in parts)


@given(any_triples, shares, seeds)
def test_train_knows_every_name(triples: list[Triple], share: tuple[float, float], seed: int) -> None:
    train, valid, test = split_triples(array(triples), valid=share[0], test=share[1], seed=seed)
    for held_out in (valid, test):
        assert np.isin(held_out[:, [0, 2]], train[:, [0, 2]]).all()
        assert np.isin(held_out[:, 1], train[:, 1]).all()


@given(any_triples, shares, seeds)
def test_no_more_is_held_out_than_asked(triples: list[Triple], share: tuple[float, float], seed: int) -> None:
    train, valid, test = split_triples(array(triples), valid=share[0], test=share[1], seed=seed)
    assert len(valid) <= round(share[0] * len(triples))
    assert len(test) <= round(share[1] * len(triples))
    assert len(train) >= 1


@given(any_triples, shares, seeds)
def test_a_seed_gives_one_split(triples: list[Triple], share: tuple[float, float], seed: int) -> None:
    whole = array(triples)
    before = whole.copy()
    first = split_triples(whole, valid=share[0], test=share[1], seed=seed)
    again = split_triples(whole, valid=share[0], test=share[1], seed=seed)
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert np.array_equal(whole, before)


def dense() -> Ints:
    heads, tails = np.divmod(np.arange(400), 20)
    return np.stack([heads, np.zeros(400, np.int64), tails], axis=1).astype(np.int32)


def test_a_dense_graph_gives_the_shares_asked_for() -> None:
    train, valid, test = split_triples(dense(), valid=0.1, test=0.2, seed=0)
    assert (len(train), len(valid), len(test)) == (280, 40, 80)


def test_another_seed_gives_another_split() -> None:
    one, two = (split_triples(dense(), valid=0.1, test=0.1, seed=seed)[2] for seed in (0, 1))
    assert set(rows(one)) != set(rows(two))


def test_a_chain_has_few_triples_to_spare() -> None:
    chain = array([(i, 0, i + 1) for i in range(50)])  # each link alone shows an entity as head or as tail
    train, valid, test = split_triples(chain, valid=0.3, test=0.3, seed=0)
    assert set(range(51)) == set(train[:, [0, 2]].ravel().tolist())
    assert len(train) + len(valid) + len(test) == 50


def test_what_a_sparse_graph_can_spare_is_shared_in_proportion() -> None:
    star = array([(0, 0, 1 + i % 10) for i in range(20)])  # 10 tails, each twice: 10 triples to spare
    train, valid, test = split_triples(star, valid=0.2, test=0.6, seed=3)
    assert (len(train), len(valid), len(test)) == (10, 2, 8)


def test_shares_of_zero_hold_nothing_out() -> None:
    train, valid, test = split_triples(dense(), valid=0, test=0, seed=0)
    assert (len(train), len(valid), len(test)) == (400, 0, 0)


@pytest.mark.parametrize(("valid", "test"), [(-0.1, 0.1), (0.1, -0.1), (0.5, 0.5), (1, 0), (float("nan"), 0)])
def test_impossible_shares_are_refused(valid: float, test: float) -> None:
    with pytest.raises(GraphError, match="sum to less than 1"):
        split_triples(dense(), valid=valid, test=test, seed=0)
