"""How many tails a head has, and how many heads a tail: 1-1, 1-N, N-1 or N-N, per relation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from relwalk.graph.graph import Graph
from relwalk.graph.lists import Ints, Longs, distinct

Cardinality = Literal["1-1", "1-N", "N-1", "N-N"]
CARDINALITIES: tuple[Cardinality, ...] = ("1-1", "1-N", "N-1", "N-N")
CUT = 1.5  # Bordes et al. 2013: an average below it counts as one


@dataclass(frozen=True)
class Usage:
    """What each relation links: its distinct triples, heads and tails."""

    triples: Longs  # (relations,)
    heads: Longs  # (relations,)
    tails: Longs  # (relations,)

    @staticmethod
    def from_triples(triples: Ints, entities: int, relations: int) -> Usage:
        head, relation, tail = (triples[:, column].astype(np.int64) for column in range(3))
        queries, row = np.unique(head * relations + relation, return_inverse=True)  # the distinct (h, r)
        links = distinct(row * entities + tail) // entities  # one row for each distinct triple
        ends = distinct(tail * relations + relation)
        return Usage(
            triples=np.bincount(queries[links] % relations, minlength=relations),
            heads=np.bincount(queries % relations, minlength=relations),
            tails=np.bincount(ends % relations, minlength=relations),
        )

    @property
    def tails_per_head(self) -> NDArray[np.float64]:
        return self.triples / np.maximum(self.heads, 1)

    @property
    def heads_per_tail(self) -> NDArray[np.float64]:
        return self.triples / np.maximum(self.tails, 1)

    def cardinalities(self) -> tuple[Cardinality, ...]:
        many_tails, many_heads = self.tails_per_head >= CUT, self.heads_per_tail >= CUT
        return tuple(CARDINALITIES[index] for index in (2 * many_heads + many_tails).tolist())


def usage(graph: Graph) -> Usage:
    """The usage of each relation in train; of a relation that train lacks, in all triples."""
    sizes = len(graph.entities), len(graph.relations)
    train = Usage.from_triples(graph.train, *sizes)
    absent = train.triples == 0
    if not absent.any():
        return train
    rest = Usage.from_triples(graph.triples[absent[graph.triples[:, 1]]], *sizes)
    return Usage(train.triples + rest.triples, train.heads + rest.heads, train.tails + rest.tails)


def cardinalities(graph: Graph) -> tuple[Cardinality, ...]:
    """The class of each relation, from train: "1-N" has many tails per head and one head per tail.

    The average number of tails per (h, r), and of heads per (r, t), is cut at 1.5. A relation that train
    lacks is classed from all triples; one that no triple uses is 1-1.
    """
    return usage(graph).cardinalities()
