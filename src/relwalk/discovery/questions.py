"""The questions of a whole graph, (h, r, ?) or (?, r, t), numbered one after the other without being listed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from relwalk.graph.answers import SIDES, Side
from relwalk.graph.graph import Graph
from relwalk.graph.lists import Ints, Lists, Longs


@dataclass(frozen=True)
class SideQuestions:
    """Every relation asked of every entity that may be given: by relation, then by entity."""

    side: Side  # what is asked
    relations: Longs  # (asked relations,) ascending
    offsets: Longs  # (asked relations + 1,) where the questions of each begin
    lists: Lists | None  # the entities given, of every relation of the graph; None: all entities
    anyway: bool  # also of entities that no triple shows in that place

    def __len__(self) -> int:
        return int(self.offsets[-1])

    def between(self, start: int, end: int) -> tuple[Ints, Ints]:
        """The given entity and the relation of the questions from `start` to before `end`."""
        numbers = np.arange(start, end)
        place = np.searchsorted(self.offsets, numbers, side="right") - 1
        relation, within = self.relations[place], numbers - self.offsets[place]
        given = within if self.lists is None else self.lists.values[self.lists.offsets[relation] + within]
        return given.astype(np.int32), relation.astype(np.int32)

    def groups(self, *, by_relation: bool) -> Iterator[tuple[int, int]]:
        """From where to before where questions share their keys: all of them, or those of one relation."""
        if by_relation:
            yield from ((a, b) for a, b in pairwise(self.offsets.tolist()) if a < b)
        else:
            yield 0, len(self)


def questions(graph: Graph, relations: Longs, *, every: bool) -> dict[Side, SideQuestions]:
    """Both sides' questions about some relations: with entities seen in that place, or with `every` entity."""
    anyway = every or graph.type_lists is not None
    found: dict[Side, SideQuestions] = {}
    for side in SIDES:
        lists = None if every else graph.argument_lists["head" if side == "tail" else "tail"]
        lengths = np.full(len(relations), len(graph.entities)) if lists is None else lists.lengths[relations]
        found[side] = SideQuestions(side, relations, np.concatenate([[0], np.cumsum(lengths)]), lists, anyway)
    return found
