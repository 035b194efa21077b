"""The best of very many links, in memory for a few times as many as are wanted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import torch
from numpy.typing import NDArray

from relwalk.graph.answers import Side
from relwalk.graph.lists import Ints, Longs
from relwalk.together import Together

Doubles = NDArray[np.float64]
LEAST = float(np.finfo(np.float64).tiny)  # what is worth less is worth nothing


@dataclass(frozen=True, eq=False)
class Links:
    """Links as columns, one row each."""

    head: Ints
    relation: Ints
    tail: Ints
    worth: Doubles  # what they are ordered by: confidence, or share where there is none
    share: Doubles  # p(t | h, R) or p(h | R, t)
    rank: Ints  # among the new answers to the question
    by_tail: NDArray[np.bool_]  # whether that question was (h, r, ?)

    @staticmethod
    def from_answers(
        side: Side, given: Ints, relation: Ints, answer: Ints, worth: Doubles, share: Doubles, rank: Ints
    ) -> Links:
        by_tail = np.full(len(given), side == "tail")
        head, tail = (given, answer) if side == "tail" else (answer, given)
        return Links(head, relation, tail, worth, share, rank, by_tail)

    def take(self, rows: Longs | NDArray[np.bool_]) -> Links:
        return Links(*(getattr(self, field.name)[rows] for field in fields(self)))

    def __len__(self) -> int:
        return len(self.head)

    def best_first(self) -> Longs:
        """By worth, the greatest first; equal ones in the order of the graph, and asked for the tail first."""
        return np.lexsort((~self.by_tail, self.tail, self.head, self.relation, -self.worth))

    def once_each(self) -> Links:
        """Every link once, as the question found it that it is worth more to; best first."""
        ordered = self.take(self.best_first())
        order = np.lexsort((ordered.tail, ordered.head, ordered.relation))  # stable: the better one stays first
        a, b = ordered.take(order[1:]), ordered.take(order[:-1])
        again = (a.tail == b.tail) & (a.head == b.head) & (a.relation == b.relation)
        kept = np.ones(len(self), np.bool_)
        kept[order[1:][again]] = False
        return ordered.take(kept)


def together(parts: Sequence[Links]) -> Links:
    """Links below each other; of no parts, none."""
    ids = np.zeros(0, np.int32)
    none = Links(ids, ids, ids, np.zeros(0), np.zeros(0), ids, np.zeros(0, np.bool_))
    return Links(*(np.concatenate([getattr(p, f.name) for p in (none, *parts)]) for f in fields(Links)))


def from_all(links: Links, processes: Together) -> Links:
    """The links of all processes, those of the first one first."""
    columns = [torch.from_numpy(getattr(links, f.name).astype(np.float64)) for f in fields(Links)]  # ids are exact
    counts = processes.gather(torch.tensor([len(links)])).tolist()
    own = torch.zeros(max(counts), len(columns), dtype=torch.float64)
    own[: len(links)] = torch.stack(columns, 1)
    parts = processes.gather(own).view(len(counts), *own.shape)
    rows = torch.cat([part[:count] for part, count in zip(parts, counts, strict=True)]).numpy()
    kinds = (getattr(links, f.name).dtype for f in fields(Links))
    return Links(*(rows[:, i].astype(kind) for i, kind in enumerate(kinds)))


class Best:
    """Keeps the `size` most worthy links among all that are offered; a link offered twice counts once."""

    def __init__(self, size: int, bar: float = 0.0) -> None:
        self.size = size
        self.bar = max(bar, LEAST)  # what is below need not be offered; what is level may win a tie
        self._kept: list[Links] = []
        self._rows = 0

    def offer(self, links: Links) -> None:
        self._kept.append(links)
        self._rows += len(links)
        if self._rows > 2 * self.size:
            self._settle()

    @property
    def full(self) -> bool:
        """Whether something may have been left out for want of room."""
        return len(self.found()) == self.size

    def found(self) -> Links:
        """The best so far, best first."""
        self._settle()
        return self._kept[0]

    def _settle(self) -> None:
        links = together(self._kept).once_each()
        if len(links) >= self.size:
            links = links.take(np.arange(self.size))
            self.bar = max(self.bar, float(links.worth[-1]))
        self._kept, self._rows = [links], len(links)
