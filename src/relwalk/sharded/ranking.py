"""Filtered ranking by several processes: each counts among its own entities, and the counts are added up."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from relwalk.evaluation.scores import Parts, Scores
from relwalk.graph.answers import SIDES, Side
from relwalk.graph.lists import Ints, Longs
from relwalk.models.base import ProductScorer, Scorer
from relwalk.models.keys import KeyBlocks, KeyCache
from relwalk.sharded.likelihood import gather_queries
from relwalk.sharded.shards import Shards, fetch
from relwalk.sharded.view import view


class ShardedScores(Scores):
    """The scores of all questions of a side against the entities of this process."""

    def __init__(self, model: Scorer, side: Side, every: KeyCache, shards: Shards) -> None:
        super().__init__(model, side, every)
        self.shards, self.together, self.own = shards, shards.world, shards.own.numpy()

    def keys(self, candidates: Ints | None, relation: int | None) -> Parts | KeyBlocks | None:
        if candidates is self.own:
            rows = np.arange(len(self.shards.own), dtype=np.int32)
            return super().keys(rows if self.product is not None and self.product.by_blocks else None, relation)
        return super().keys(None if candidates is None else self.shards.row.numpy()[candidates], relation)

    def places(self, entities: NDArray[np.integer]) -> Longs:
        here = self.shards.owner.numpy()[entities] == self.shards.world.rank
        return np.where(here, self.shards.row.numpy()[entities], len(self.shards.own))

    def queries(self, model: ProductScorer, given: Tensor, relations: Tensor) -> Tensor:
        """Each process makes those of its part of the questions; all of them have all."""
        world, count = self.shards.world, len(given)
        rows = -(-count // world.size)
        parts = [torch.arange(r * rows, (r + 1) * rows).clamp(max=count - 1) for r in range(world.size)]
        fetched = fetch(model.tables(), self.shards, [torch.unique(given[part]) for part in parts])
        mine = parts[world.rank]
        seen = view(model, fetched, mine, count)
        own = seen.queries(self.side, fetched.places(given[mine]), relations[mine])
        return gather_queries(world, [own])[0][:count]

    @torch.inference_mode()
    def whole(self, given: Tensor, relations: Tensor) -> Tensor:
        parts = self.own_scores(given, relations)  # (questions, most rows of a process)
        count, size = len(parts), self.shards.world.size
        return self.shards.in_order(self.shards.world.gather(parts).view(size, count, -1))

    @torch.inference_mode()
    def own_scores(self, given: Tensor, relations: Tensor) -> Tensor:
        """The scores of the entities of this process, as many columns in each: the last one may be empty.

        # (questions, most rows of a process)
        """
        asked = self.ask(given.numpy(), relations.numpy(), self.own, self.keys(self.own, None))
        table = self.score(asked, np.arange(len(given)))
        parts = table.new_zeros(len(given), self.shards.most_rows)
        parts[:, : len(table)] = table.T
        return parts


def sharded_scores(model: Scorer, shards: Shards) -> dict[Side, ShardedScores]:
    """What `rank` ranks by: a model of which each process has the entities of its shard."""
    every = KeyCache(model)
    return {side: ShardedScores(model, side, every, shards) for side in SIDES}
