"""Filtered ranking by several processes: each counts among its own entities, and the counts are added up."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from relwalk.evaluation.scores import Scores
from relwalk.graph.answers import SIDES, Side
from relwalk.graph.lists import Ints
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

    def keys(self, candidates: Ints | None, relation: int | None) -> Tensor | KeyBlocks | None:
        if candidates is self.own:
            rows = np.arange(len(self.shards.own), dtype=np.int32)
            return super().keys(rows if self.product is not None and self.product.by_blocks else None, relation)
        return super().keys(None if candidates is None else self.shards.row.numpy()[candidates], relation)

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


def sharded_scores(model: Scorer, shards: Shards) -> dict[Side, Scores]:
    """What `rank` ranks by: a model of which each process has the entities of its shard."""
    every = KeyCache(model)
    return {side: ShardedScores(model, side, every, shards) for side in SIDES}
