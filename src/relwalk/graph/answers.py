"""What a graph already answers: known tails of (h, r), known heads of (r, t), argument candidates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from relwalk.graph.lists import Ints, Lists, Longs

Side = Literal["head", "tail"]
SIDES: tuple[Side, Side] = ("head", "tail")


@dataclass(frozen=True)
class KnownAnswers:
    """The known answers of every query that a set of triples contains.

    A query is a given entity and a relation: (h, r, ?) when the tail is asked, (?, r, t) when the head is.
    """

    keys: Longs  # (queries,) ascending: given entity * relations + relation
    lists: Lists  # (queries,) the answers of each
    relations: int

    @staticmethod
    def from_triples(triples: Ints, side: Side, relations: int) -> KnownAnswers:
        given, asked = (0, 2) if side == "tail" else (2, 0)
        all_keys = triples[:, given].astype(np.int64) * relations + triples[:, 1]
        keys, rows = np.unique(all_keys, return_inverse=True)
        return KnownAnswers(keys, Lists.group(rows, triples[:, asked], len(keys)), relations)

    def rows(self, given: NDArray[np.integer], relation: NDArray[np.integer]) -> Longs:
        """The row of each query, -1 for a query without a known answer."""
        wanted = given.astype(np.int64) * self.relations + relation
        if len(self.keys) == 0:
            return np.full(len(wanted), -1, np.int64)
        row = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        return np.where(self.keys[row] == wanted, row, -1)

    def lookup(self, given: NDArray[np.integer], relation: NDArray[np.integer]) -> Lists:
        """The known answers to each of the queries."""
        return self.lists.take(self.rows(given, relation))

    def relations_between(self, heads: NDArray[np.integer], tails: NDArray[np.integer]) -> Lists:
        """The relations of each pair (h, t); to be asked of the known tails."""
        found = [self._relations(h, t) for h, t in zip(heads.tolist(), tails.tolist(), strict=True)]
        return Lists(np.cumsum([0, *map(len, found)]), np.concatenate([*found, []]).astype(np.int32))

    def _relations(self, given: int, answer: int) -> Longs:
        """The questions about an entity stand together: those with this answer are found without a look at the rest."""
        first, last = np.searchsorted(self.keys, [given * self.relations, (given + 1) * self.relations])
        offsets = self.lists.offsets[first : last + 1]
        places = offsets[0] + np.flatnonzero(self.lists.values[offsets[0] : offsets[-1]] == answer)
        rows = first + np.searchsorted(offsets, places, side="right") - 1
        found: Longs = self.keys[rows] % self.relations
        return found


def arguments(triples: Ints, side: Side, relations: int) -> Lists:
    """The entities that stand as head, or as tail, of each relation."""
    return Lists.group(triples[:, 1], triples[:, 0 if side == "head" else 2], relations)
