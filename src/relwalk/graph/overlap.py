"""Pairs of relations that link the same pairs of entities: inverses and near-duplicates.

Every triple becomes one int64 key, (pair of entities) * relations + relation, and every count is a sort of
such keys or a look-up in sorted ones. A pair's code differs from that of the reverse pair in its last bit
only, so both directions of two entities lie side by side and one sort serves reversals and repetitions alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from relwalk.graph.graph import Graph
from relwalk.graph.lists import Ints, Longs, distinct

Bools = NDArray[np.bool_]

OVERLAP = 0.8  # Akrami et al. 2020: above it, two relations are inverses or near-duplicates
CROWD = 64  # links between two entities; a pair with more is left out of the relation pair search
BLOCK = 1 << 21  # meetings of two relations held before they are merged into counts


@dataclass(frozen=True)
class Packing:
    """Triples as int64 keys: pair * relations + relation, where pair ^ 1 is the reverse pair.

    A pair is 2 * (low * entities + high) + (head > tail). Where keys of that size would overflow, the place
    of low * entities + high in `table` (all that occur in the graph, ascending) stands for it.
    """

    entities: int
    relations: int
    table: Longs | None = None

    @staticmethod
    def from_graph(graph: Graph) -> Packing:
        entities, relations = len(graph.entities), len(graph.relations)
        if 2 * entities**2 * relations < 2**63:
            return Packing(entities, relations)
        return Packing.with_table(graph)

    @staticmethod
    def with_table(graph: Graph) -> Packing:
        plain = Packing(len(graph.entities), len(graph.relations))
        return Packing(plain.entities, plain.relations, distinct(plain._unordered(graph.triples)))

    def _unordered(self, triples: Ints) -> Longs:
        low, high = np.minimum(triples[:, 0], triples[:, 2]), np.maximum(triples[:, 0], triples[:, 2])
        packed = low.astype(np.int64) * self.entities + high
        return packed if self.table is None else np.searchsorted(self.table, packed)

    def keys(self, triples: Ints) -> Longs:
        pairs = 2 * self._unordered(triples) + (triples[:, 0] > triples[:, 2])
        return pairs * self.relations + triples[:, 1]

    def pairs(self, keys: Longs) -> Longs:
        return keys // self.relations

    def relation(self, keys: Longs) -> Longs:
        return keys % self.relations

    def is_loop(self, pairs: Longs) -> Bools:
        """low * entities + high = low * (entities + 1) + (high - low), so a remainder of 0 is a self-loop."""
        unordered = pairs >> 1
        packed = unordered if self.table is None else self.table[unordered]
        loop: Bools = packed % (self.entities + 1) == 0
        return loop

    def reverse(self, keys: Longs) -> Longs:
        """The key of (t, r, h) for that of (h, r, t)."""
        pairs = self.pairs(keys)
        flipped = np.where(self.is_loop(pairs), pairs, pairs ^ 1)
        return flipped * self.relations + self.relation(keys)


def contains(ascending: Longs, wanted: Longs) -> Bools:
    if len(ascending) == 0:
        return np.zeros(len(wanted), np.bool_)
    place = np.minimum(np.searchsorted(ascending, wanted), len(ascending) - 1)
    found: Bools = ascending[place] == wanted
    return found


@dataclass(frozen=True)
class PairTable:
    """Pairs of relations, first < second, with the most shared pairs of entities first."""

    first: Longs
    second: Longs
    shared: Longs
    overlap: NDArray[np.float64]


@dataclass(frozen=True)
class RelationPairs:
    inverse: PairTable
    duplicate: PairTable
    crowded: int  # unordered entity pairs with more than CROWD links: not searched


def relation_pairs(train: Longs, packing: Packing) -> RelationPairs:
    """Pairs of relations that link the same entity pairs, reversed (inverse) or not (near-duplicate).

    `train` are distinct ascending keys. Two relations make a pair when the entity pairs they share are more
    than 80 % of the pairs of each, so that a small relation inside a large one is no duplicate of it.

    Only relations that meet at some pair of entities are compared, and only those that meet others often
    enough to reach 80 %. The work is quadratic in the links of one entity pair, so entity pairs with more
    than CROWD = 64 such links (both directions together) are left out and counted in `crowded`; they still
    count in the size of a relation, so an overlap is never overstated.
    """
    relation, pairs = packing.relation(train), packing.pairs(train)
    sizes = np.bincount(relation, minlength=packing.relations)
    lengths = _run_lengths(pairs >> 1)
    shared = np.repeat(lengths > 1, lengths)
    hopeful = np.bincount(relation[shared], minlength=len(sizes)) > OVERLAP * sizes
    shared &= hopeful[relation]
    relation, pairs = relation[shared], pairs[shared]
    lengths = _run_lengths(pairs >> 1)
    searched = (lengths > 1) & (lengths <= CROWD)
    links = np.repeat(searched, lengths)
    tally = _tally(relation[links], pairs[links], lengths[searched], sizes, packing)
    return RelationPairs(
        inverse=_pair_table(tally, 1, sizes),
        duplicate=_pair_table(tally, 0, sizes),
        crowded=int((lengths > CROWD).sum()),
    )


def _run_lengths(ascending: Longs) -> Longs:
    """How often each distinct value occurs."""
    starts = np.flatnonzero(np.diff(ascending, prepend=-1))
    return np.diff(starts, append=len(ascending))


Tally = tuple[Longs, Longs]  # ascending distinct keys, and how often each occurred


def _tally(relation: Longs, pairs: Longs, lengths: Longs, sizes: Longs, packing: Packing) -> Tally:
    """How often two relations meet, for those that meet often: the keys of `_meet`, and counts.

    The links, in groups of the given lengths, are taken in blocks of at most about BLOCK meetings. After each
    block, the keys that the links still to come cannot lift above OVERLAP are dropped, and so are the
    relations that can no longer begin a pair. That bounds memory, and ends most searches early.
    """
    left = np.bincount(relation, minlength=len(sizes))  # links of each relation still to come
    ends = np.cumsum(lengths)
    block = np.cumsum(lengths * (lengths - 1) // 2) // BLOCK
    stops = ends[np.flatnonzero(np.diff(block, append=-1))].tolist()
    end_of_group = np.repeat(ends, lengths)
    tally: Tally = (np.zeros(0, np.int64), np.zeros(0, np.int64))
    for start, stop in pairwise([0, *stops]):
        here = slice(start, stop)
        open_ = left > OVERLAP * sizes
        open_[np.concatenate(np.divmod(tally[0] >> 1, len(sizes)))] = True
        met = _meet(relation[here], pairs[here], end_of_group[here] - start, open_, packing)
        left -= np.bincount(relation[here], minlength=len(sizes))
        tally = _within_reach(_merge(tally, met), left, sizes)
    return tally


def _meet(relation: Longs, pairs: Longs, ends: Longs, open_: Bools, packing: Packing) -> Longs:
    """A key (first * relations + second) * 2 + (1 if reversed) whenever two open relations meet."""
    keys = [np.zeros(0, np.int64)]
    loop = packing.is_loop(pairs)
    left = np.flatnonzero(open_[relation])
    for step in range(1, CROWD):  # each link against the next one of its group, the next but one, ...
        left = left[left + step < ends[left]]
        right = left + step
        first = np.minimum(relation[left], relation[right])
        second = np.maximum(relation[left], relation[right])
        met = (first != second) & open_[relation[right]]
        key = (first * packing.relations + second) * 2
        turned = pairs[left] != pairs[right]
        keys += [(key + turned)[met], key[met & loop[left]] + 1]  # a self-loop is its own reverse
    return np.concatenate(keys)


def _merge(tally: Tally, more: Longs) -> Tally:
    keys, counts = np.unique(more, return_counts=True)
    both, place = np.unique(np.concatenate([tally[0], keys]), return_inverse=True)
    total = np.zeros(len(both), np.int64)
    np.add.at(total, place, np.concatenate([tally[1], counts]))
    return both, total


def _within_reach(tally: Tally, left: Longs, sizes: Longs) -> Tally:
    first, second = np.divmod(tally[0] >> 1, len(sizes))
    most = tally[1] + np.minimum(left[first], left[second])
    keep = most > OVERLAP * np.maximum(sizes[first], sizes[second])
    return tally[0][keep], tally[1][keep]


def _pair_table(tally: Tally, turned: int, sizes: Longs) -> PairTable:
    chosen = tally[0] & 1 == turned
    first, second = np.divmod(tally[0][chosen] >> 1, len(sizes))
    shared = tally[1][chosen]
    overlap = shared / np.maximum(sizes[first], sizes[second])
    best = np.flatnonzero(overlap > OVERLAP)
    best = best[np.argsort(-shared[best], kind="stable")]
    return PairTable(first[best], second[best], shared[best], overlap[best])
