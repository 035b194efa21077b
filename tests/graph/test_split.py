"""What a split promises, for any triples, shares and seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relwalk.errors import GraphError, RelWalkError
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


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(RelWalkError, match="--split-seed"):
        split_triples(dense(), valid=0.1, test=0.1, seed=-1)


# Fairness, over many seeds. Relation 0 is `has city`, 1 `capital of`, whose heads are head of nothing else, 2 `near`.

SEEDS = 150
CITIES, COUNTRIES = 120, 12


def towns() -> Ints:
    random = np.random.default_rng(5)
    has_city = [(CITIES + city % COUNTRIES, 0, city) for city in range(CITIES)]
    capital_of = [(city, 1, CITIES + city) for city in range(COUNTRIES)]
    popular = (CITIES * random.random((400, 2)) ** 3).astype(int)  # a few cities are near to many
    near = {(int(a), 2, int(b)) for a, b in popular if a >= COUNTRIES}
    return array([*has_city, *capital_of, *sorted(near)])


def first_come(triples: Ints, *, valid: float, test: float, seed: int) -> tuple[Ints, Ints, Ints]:
    """How it was: the first row of each name in each place stays in train, valid takes the first of the others."""
    shuffled = triples[np.random.default_rng(seed).permutation(len(triples))]
    keep = np.zeros(len(shuffled), bool)
    for column in range(3):
        keep[np.unique(shuffled[:, column], return_index=True)[1]] = True
    spare = np.flatnonzero(~keep)
    counts = round(valid * len(triples)), round(test * len(triples))
    held = np.split(spare, [counts[0], sum(counts)])
    in_train = np.ones(len(shuffled), bool)
    in_train[np.concatenate(held[:2])] = False
    return shuffled[in_train], shuffled[held[0]], shuffled[held[1]]


def differences(split: Callable[..., tuple[Ints, Ints, Ints]], share: float = 0.1) -> dict[str, float]:
    """How far valid is from test, in standard errors over the seeds: rows of each relation, and the mean degree."""
    whole = towns()
    degree = np.bincount(whole[:, [0, 2]].ravel())
    rows = []
    for seed in range(SEEDS):
        _, valid, test = split(whole, valid=share, test=share, seed=seed)
        by_relation = [np.bincount(part[:, 1], minlength=3) for part in (valid, test)]
        means = [np.log(degree[part[:, [0, 2]]]).mean() for part in (valid, test)]
        rows.append([*(by_relation[0] - by_relation[1]), means[0] - means[1]])
    found = np.array(rows)
    errors = found.std(axis=0) / SEEDS**0.5
    return dict(
        zip(("has_city", "capital_of", "near", "degree"), found.mean(axis=0) / np.maximum(errors, 1e-9), strict=True)
    )


def test_valid_and_test_are_alike() -> None:
    found = differences(split_triples)
    assert all(abs(difference) < 4 for difference in found.values()), found


def test_the_comparison_would_find_the_old_way_unfair() -> None:
    assert abs(differences(first_come)["degree"]) > 8


def held_capitals(split: Callable[..., tuple[Ints, Ints, Ints]]) -> int:
    parts = (split(towns(), valid=0.1, test=0.1, seed=seed) for seed in range(20))
    return sum(int((part[:, 1] == 1).sum()) for _, *held in parts for part in held)


def test_a_relation_whose_heads_are_head_once_is_held_out() -> None:
    assert held_capitals(first_come) == 0
    assert 20 <= held_capitals(split_triples) <= 2 * 20 * 0.2 * COUNTRIES


def test_each_relation_is_held_out_in_proportion_where_it_can_be() -> None:
    random = np.random.default_rng(0)
    sizes = np.array([3000, 905, 333, 47, 3])
    whole = np.concatenate(
        [
            np.column_stack([random.integers(0, 40, n), np.full(n, r), random.integers(0, 40, n)])
            for r, n in enumerate(sizes)
        ]
    ).astype(np.int32)
    counts = np.zeros((40, 2, len(sizes)))
    for seed in range(len(counts)):
        _, valid, test = split_triples(whole, valid=0.1, test=0.2, seed=seed)
        assert (len(valid), len(test)) == (round(0.1 * len(whole)), round(0.2 * len(whole)))
        counts[seed] = [np.bincount(part[:, 1], minlength=len(sizes)) for part in (valid, test)]
    wanted = np.array([[0.1], [0.2]]) * sizes
    assert (np.abs(counts - wanted) < 2).all()  # a whole number next to it, rounded twice
    assert (np.abs(counts.mean(axis=0) - wanted) < 0.5).all()  # and up or down by chance, not by the order of relations


def test_what_is_held_out_comes_in_no_order() -> None:
    """A validation that takes the first rows of valid must not take the best-connected ones."""
    whole = towns()
    degree = np.log(np.bincount(whole[:, [0, 2]].ravel()))
    halves = []
    for seed in range(SEEDS):
        valid = split_triples(whole, valid=0.2, test=0.1, seed=seed)[1]
        means = degree[valid[:, [0, 2]]].mean(axis=1)
        halves.append(means[: len(means) // 2].mean() - means[len(means) // 2 :].mean())
    assert abs(np.mean(halves)) < 4 * np.std(halves) / SEEDS**0.5
