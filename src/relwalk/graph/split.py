"""One file into train, valid and test, so that train knows every name."""

from __future__ import annotations

import numpy as np

from relwalk.errors import GraphError
from relwalk.graph.lists import Ints, Longs


def split_triples(triples: Ints, *, valid: float, test: float, seed: int) -> tuple[Ints, Ints, Ints]:
    """Shuffle by seed and hold out the given shares; every entity and relation stays in train.

    The first triple of the shuffled order that shows an entity or a relation is kept for train, so a small or
    sparse graph may give fewer held-out triples than asked.
    """
    if not (0 <= valid < 1 and 0 <= test < 1 and valid + test < 1):
        raise GraphError(
            f"shares of valid {valid} and test {test}: expected two numbers from 0 that sum to less than 1"
        )
    shuffled = triples[np.random.default_rng(seed).permutation(len(triples))]
    keep = np.zeros(len(shuffled), bool)
    for column in range(3):
        keep[_first_rows(shuffled[:, column])] = True
    spare = np.flatnonzero(~keep)
    valid_count, test_count = round(valid * len(triples)), round(test * len(triples))
    if valid_count + test_count > len(spare):  # too sparse: share out what there is
        valid_count = len(spare) * valid_count // (valid_count + test_count)
        test_count = len(spare) - valid_count
    held_valid, held_test = spare[:valid_count], spare[valid_count : valid_count + test_count]
    in_train = np.ones(len(shuffled), bool)
    in_train[held_valid] = in_train[held_test] = False
    return shuffled[in_train], shuffled[held_valid], shuffled[held_test]


def _first_rows(ids: Ints) -> Longs:
    """The row where each id appears first, without the sorting that np.unique does."""
    first = np.full(int(ids.max(initial=-1)) + 1, -1, np.int64)
    first[ids[::-1]] = np.arange(len(ids))[::-1]  # of several assignments the last one counts: the first row
    return first[first >= 0]
