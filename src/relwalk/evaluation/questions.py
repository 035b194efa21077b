"""The distinct questions of a split: (h, r, ?) or (?, r, t), each with all the triples that ask it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from relwalk.graph.answers import Side
from relwalk.graph.lists import Ints, Longs


@dataclass(frozen=True)
class DistinctQuestions:
    """Question i is asked by `triples[offsets[i] : offsets[i + 1]]`, whose truths stand beside it in `truth`."""

    given: Ints  # (questions,)
    relation: Ints  # (questions,) ascending, as models want it
    offsets: Longs  # (questions + 1,)
    triples: Longs  # (triples,) rows of the split
    truth: Ints  # (triples,)

    @staticmethod
    def from_triples(triples: Ints, side: Side) -> DistinctQuestions:
        given, truth = (triples[:, 0], triples[:, 2]) if side == "tail" else (triples[:, 2], triples[:, 0])
        relation = triples[:, 1]
        order = np.lexsort((given, relation))
        given, relation, truth = given[order], relation[order], truth[order]
        new = np.ones(len(order), np.bool_)
        new[1:] = (given[1:] != given[:-1]) | (relation[1:] != relation[:-1])
        first = np.flatnonzero(new)
        return DistinctQuestions(given[first], relation[first], np.append(first, len(order)), order, truth)

    def __len__(self) -> int:
        return len(self.given)

    def asked_by(self, rows: Longs) -> AskedBy:
        """The triples that ask these questions, to be compared with their scores in rounds."""
        first = self.offsets[rows]
        times = self.offsets[rows + 1] - first
        row = np.repeat(np.arange(len(rows)), times)
        turn = np.arange(len(row)) - np.repeat(np.cumsum(times) - times, times)
        order = np.argsort(turn, kind="stable")
        row, slots = row[order], first[row[order]] + turn[order]
        return AskedBy(row, self.triples[slots], self.truth[slots], np.bincount(turn))

    def most_asked_first(self, rows: Longs) -> Longs:
        """The questions with the most true answers first: those with a j-th one then lead any part of them."""
        return rows[np.argsort(self.offsets[rows] - self.offsets[rows + 1], kind="stable")]

    def by_relation(self) -> Iterator[Longs]:
        yield from np.split(np.arange(len(self)), np.flatnonzero(np.diff(self.relation)) + 1)


@dataclass(frozen=True)
class AskedBy:
    """First truths of all questions, then second truths of those that have one, and so on.

    The questions must come most asked first: round j is then about questions 0 to `rounds[j]`, in order.
    """

    row: Longs  # (triples,) the question
    triples: Longs  # (triples,) rows of the split
    truth: Ints  # (triples,)
    rounds: Longs  # how many questions have a j-th truth
