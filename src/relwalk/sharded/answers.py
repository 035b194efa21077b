"""Queries answered by several processes: the products by all of them, the rest by each for its part of the queries.

Every process scores all queries of a batch against its own entities. The scores then travel, all-to-all, so that each
query has those of all entities in one process, which answers it as one that is alone would. A query costs a number for
each entity on the way: about as long on a network of 10 Gbit/s as its products on two cores.
"""

from __future__ import annotations

from dataclasses import asdict
from itertools import pairwise

import torch
from torch import Tensor

from relwalk.answers import Answer
from relwalk.graph.answers import SIDES, Side
from relwalk.graph.lists import Longs
from relwalk.models.base import as_product
from relwalk.prediction import Asker
from relwalk.runs.run import Run
from relwalk.sharded.ranking import ShardedScores, sharded_scores
from relwalk.sharded.shards import Rows, Shards, fetch
from relwalk.sharded.view import view


class ShardedAsker(Asker):
    """One of several processes."""

    def __init__(self, run: Run, shards: Shards) -> None:
        super().__init__(run)
        self.shards, self.world = shards, shards.world
        made = sharded_scores(run.model, shards)
        self.scores: dict[Side, ShardedScores] = {side: made[side] for side in SIDES}

    def part(self, count: int) -> slice:
        return self._parts(count)[self.world.rank]

    def score(self, ids: Longs, asked: int) -> Tensor:
        h, r, t = torch.from_numpy(ids).T
        mine = self.part(len(ids))
        if asked == 1:
            rows = self._rows(torch.cat([h, t]))
            seen = view(self.run.model, rows, torch.arange(len(ids)), len(ids))
            return seen.score_relations(rows.places(h[mine]), rows.places(t[mine])).clone()
        side: Side = "tail" if asked == 2 else "head"
        given = h if asked == 2 else t
        whole = self._exchanged(self.scores[side].own_scores(given, r))
        return whole + self._offsets(side, given, r)[mine].unsqueeze(1)

    def _exchanged(self, own: Tensor) -> Tensor:
        """From scores of all queries and its own entities, those of all entities and its own queries.

        # (queries, most rows of a process) to (queries of its own, entities)
        """
        sizes = [part.stop - part.start for part in self._parts(len(own))]
        count = sizes[self.world.rank]
        arrived = self.world.exchange(own, sizes, [count] * self.world.size)
        return self.shards.in_order(arrived.view(self.world.size, count, own.shape[1])).contiguous()

    def _offsets(self, side: Side, given: Tensor, relations: Tensor) -> Tensor:
        """What is added to all scores of a query: ranks do not see it, but its score is shown.  # (queries,)"""
        rows, product = self._rows(given), as_product(self.run.model)
        assert product is not None  # checked when its part was kept
        seen = view(product, rows, torch.arange(len(given)), len(given))
        found = seen.offsets(side, rows.places(given), relations)
        return given.new_zeros(len(given), dtype=torch.float32) if found is None else found

    def _rows(self, entities: Tensor) -> Rows:
        """The rows of some entities, in every process."""
        return fetch(self.run.model.tables(), self.shards, [torch.unique(entities)] * self.world.size)

    def _parts(self, count: int) -> list[slice]:
        each = -(-count // self.world.size)
        cuts = [min(rank * each, count) for rank in range(self.world.size + 1)]
        return [slice(start, stop) for start, stop in pairwise(cuts)]

    def from_all(self, answers: list[tuple[Answer, ...]]) -> list[tuple[Answer, ...]]:
        said = self.world.tell([[list(asdict(answer).values()) for answer in own] for own in answers])
        return [tuple(Answer(*values) for values in own) for part in said for own in part]
