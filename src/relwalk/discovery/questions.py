"""The questions of a whole graph, (h, r, ?) or (?, r, t), numbered one after the other without being listed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from relwalk.graph.answers import SIDES, Side
from relwalk.graph.graph import Graph
from relwalk.graph.lists import Ints, Lists, Longs


@dataclass(frozen=True, eq=False)
class SideQuestions:
    """Relations asked of entities: by relation, then by entity."""

    side: Side  # what is asked
    relations: Longs  # (asked relations,) ascending
    offsets: Longs  # (asked relations + 1,) where the questions of each begin
    lists: Lists | None  # the entities given, of every relation of the graph; None: all entities

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
        cuts = self.offsets.tolist() if by_relation else [0, len(self)]
        yield from ((start, end) for start, end in pairwise(cuts) if start < end)

    @staticmethod
    def from_lists(side: Side, relations: Longs, lists: Lists | None, entities: int) -> SideQuestions:
        """Some relations asked of the entities of their lists, or of all."""
        lengths = np.full(len(relations), entities) if lists is None else lists.lengths[relations]
        return SideQuestions(side, relations, np.concatenate([[0], np.cumsum(lengths)]), lists)


def whole_graph(graph: Graph, relations: Longs, *, every: bool) -> dict[Side, SideQuestions]:
    """Both sides' questions about some relations: of entities seen in that place, or of `every` entity."""
    given: dict[Side, Lists] = (
        {} if every else {"tail": graph.argument_lists["head"], "head": graph.argument_lists["tail"]}
    )
    return {side: SideQuestions.from_lists(side, relations, given.get(side), len(graph.entities)) for side in SIDES}
