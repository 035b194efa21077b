"""Which process has which entities, and how rows travel from the ones that have them to the ones that need them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from relwalk.models.base import Scorer
from relwalk.models.tables import EntityTable, set_rows
from relwalk.sharded.world import World


class Shards:
    """Entities cut at random, always in the same way, into as many parts of equal size as there are processes.

    At random, so that frequent entities are spread evenly. Within a process rows are in the order of the entities.
    """

    def __init__(self, entities: int, world: World) -> None:
        order = torch.randperm(entities, generator=torch.Generator().manual_seed(0))
        self.world, self.entities = world, entities
        self.owner = torch.empty(entities, dtype=torch.long)  # the rank that has it
        self.row = torch.empty(entities, dtype=torch.long)  # its row there
        for rank in range(world.size):
            members = order[rank :: world.size].sort().values
            self.owner[members], self.row[members] = rank, torch.arange(len(members))
        self.own = (self.owner == world.rank).nonzero().squeeze(1)  # (rows,) the entities of this process

        self.most_rows = -(-entities // world.size)

    def in_order(self, parts: Tensor) -> Tensor:
        """Columns of all processes in the order of the entities.  # (processes, n, most_rows) to (n, entities)"""
        return parts[self.owner, :, self.row].T

    def here(self, entities: Tensor) -> Tensor:
        """Whether this process has them."""
        return self.owner[entities] == self.world.rank


@torch.no_grad()
def keep_own(model: Scorer, shards: Shards) -> None:
    """Leave the rows of this process alone in the tables of a model, where they are not the only ones already."""
    for table in model.tables():
        if len(table.weight) == shards.entities:
            set_rows(table, table.weight[shards.own])


class Rows(NamedTuple):
    """Rows of every table that this process was sent."""

    entities: Tensor  # (n,) ascending
    tables: tuple[Tensor, ...]  # (n, width) each

    def places(self, entities: Tensor) -> Tensor:
        return torch.searchsorted(self.entities, entities)


def fetch(tables: Sequence[EntityTable], shards: Shards, needed: Sequence[Tensor]) -> Rows:
    """The rows that this process needs, all-to-all; their slopes go back to where they came from.

    `needed` are the entities that each process needs, distinct and ascending: all of them know the whole batch, so
    that nobody has to be asked.
    """
    world = shards.world
    mine = needed[world.rank]
    asked = [entities[shards.here(entities)] for entities in needed]
    origin = shards.owner[mine]
    route = _Route(
        world,
        shards.row[torch.cat(asked)],
        [len(entities) for entities in asked],
        torch.bincount(origin, minlength=world.size).tolist(),
        torch.argsort(origin, stable=True),
        [table.sparse for table in tables],
    )
    rows: tuple[Tensor, ...] = _Fetch.apply(route, *(table.weight for table in tables))  # type: ignore[no-untyped-call]
    return Rows(mine, rows)


class _Route(NamedTuple):
    """Which rows go where, and how those that arrive, by rank, are put in order."""

    world: World
    rows: Tensor  # (sent,) of this process, for rank 0 first
    to: list[int]
    back: list[int]
    order: Tensor  # (n,) the i-th to arrive is the order[i]-th that is needed
    sparse: list[bool]


class _Fetch(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, route: _Route, *weights: Tensor) -> tuple[Tensor, ...]:
        ctx.route, ctx.shapes = route, [weight.shape for weight in weights]
        arrived = route.world.exchange(_beside([w[route.rows] for w in weights]), route.to, route.back)
        rows = torch.empty_like(arrived)
        rows[route.order] = arrived
        return tuple(part.contiguous() for part in torch.split(rows, [w.shape[1] for w in weights], 1))

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        route: _Route = ctx.route
        home = route.world.exchange(_beside(slopes)[route.order], route.back, route.to)
        parts = torch.split(home, [shape[1] for shape in ctx.shapes], 1)
        return None, *(
            torch.sparse_coo_tensor(route.rows.unsqueeze(0), part, shape, check_invariants=False)
            if sparse
            else part.new_zeros(shape).index_add_(0, route.rows, part)
            for part, shape, sparse in zip(parts, ctx.shapes, route.sparse, strict=True)
        )


def _beside(parts: Sequence[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(list(parts), 1)
