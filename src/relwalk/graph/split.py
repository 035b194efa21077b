"""One file into train, valid and test, so that train knows every name and valid and test are alike."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from relwalk.checks import check_seed
from relwalk.errors import GraphError
from relwalk.graph.lists import Ints, Longs


def split_triples(triples: Ints, *, valid: float, test: float, seed: int) -> tuple[Ints, Ints, Ints]:
    """Hold out the given shares of each relation, drawn by seed; every entity and relation stays in train.

    In a shuffled order, the first triple that shows an entity (as head or as tail) or a relation is kept for train;
    of the others each relation gives its share, drawn at random. So a small or sparse graph, or a relation that has
    nothing to spare, may give fewer held-out triples than asked.
    """
    check_shares(valid, test)
    check_seed(seed, "--split-seed (seed)")
    random = np.random.default_rng(seed)
    shuffled = triples[random.permutation(len(triples))]
    spare = random.permutation(np.flatnonzero(~_needed_in_train(shuffled)))
    relation = shuffled[spare, 1]
    sizes = np.bincount(shuffled[:, 1])  # (relations,)
    asked = round(valid * len(triples)), round(test * len(triples))
    to_spare = np.bincount(relation, minlength=len(sizes)).astype(np.float64)
    wanted = sizes.astype(np.float64) * (sum(asked) / max(len(triples), 1))
    held = _round_counts(np.minimum(wanted, to_spare), random)
    for_valid = _round_counts(held * (asked[0] / max(sum(asked), 1)), random)
    place = _place_in_group(relation, len(sizes))
    held_valid = spare[place < for_valid[relation]]
    held_test = spare[(place >= for_valid[relation]) & (place < held[relation])]
    in_train = np.ones(len(shuffled), bool)
    in_train[held_valid] = in_train[held_test] = False
    return shuffled[in_train], shuffled[held_valid], shuffled[held_test]


def check_shares(valid: float, test: float) -> None:
    """Two shares that leave something for train, or an error."""
    if not (0 <= valid < 1 and 0 <= test < 1 and valid + test < 1):
        raise GraphError(
            f"shares of valid {valid} and test {test}: expected two numbers from 0 that sum to less than 1, "
            "such as --valid 0.1 --test 0.1"
        )


def _needed_in_train(triples: Ints) -> NDArray[np.bool_]:
    """The rows that are the first to show their head, their tail (each in either place) or their relation."""
    needed = np.zeros(len(triples), bool)
    needed[_first_places(triples[:, [0, 2]].ravel()) // 2] = True  # head, tail, head, tail, ...
    needed[_first_places(triples[:, 1])] = True
    return needed


def _first_places(ids: Ints) -> Longs:
    """The place where each id appears first, without the sorting that np.unique does."""
    first = np.full(int(ids.max(initial=-1)) + 1, -1, np.int64)
    first[ids[::-1]] = np.arange(len(ids))[::-1]  # of several assignments the last one counts: the first place
    return first[first >= 0]


def _round_counts(wanted: NDArray[np.floating], random: np.random.Generator) -> Longs:
    """Whole numbers next to `wanted`, above or below by chance in proportion, whose sum is that of `wanted`, rounded.

    Systematic sampling: the sums up to each relation, taken in a random order, are cut at whole numbers plus one
    random offset.
    """
    order = random.permutation(len(wanted))
    upto = np.cumsum(wanted[order])
    total = float(upto[-1]) if len(upto) else 0.0
    rest = total % 1
    low, high = (1 - rest, 1.0) if round(total) > total else (0.0, 1 - rest)  # offsets that round the sum as round()
    cuts = np.floor(upto + random.uniform(low, high)).astype(np.int64)
    cuts[-1:] = round(total)  # whatever float addition lost
    counts = np.zeros(len(wanted), np.int64)
    counts[order] = np.diff(cuts, prepend=0)
    return np.clip(counts, 0, np.ceil(wanted).astype(np.int64))


def _place_in_group(keys: Ints, groups: int) -> Longs:
    """For each row, how many rows before it have the same key."""
    order = np.argsort(keys, kind="stable")
    begins = np.cumsum(np.bincount(keys, minlength=groups)) - np.bincount(keys, minlength=groups)
    places = np.empty(len(keys), np.int64)
    places[order] = np.arange(len(keys)) - begins[keys[order]]
    return places
