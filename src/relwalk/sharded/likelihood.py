"""A step of the exact likelihood by several processes, each with a part of the entities.

Every process knows the whole batch, and draws the same random numbers as one that is alone. Of a step it

    takes its part of the questions, and fetches the rows of their entities          (all-to-all)
    makes their queries, which all processes then have                               (all-gather)
    multiplies all queries with its own keys, in fused tiles: `training.softmax`
    shares the maxima and the sums of every question, so that the softmax is exact   (all-reduce)
    keeps the slopes of its keys, and gets those of its queries                      (reduce-scatter)
    returns the slopes of the rows that it fetched                                   (all-to-all)

and the trainer adds up the gradients of the relations, which all processes have alike. What travels depends on the
batch and on d, not on how many entities there are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from relwalk.graph.answers import Side
from relwalk.graph.graph import Graph
from relwalk.models.base import ProductScorer, Scorer, as_product
from relwalk.sharded.shards import Rows, Shards, fetch
from relwalk.sharded.view import view
from relwalk.sharded.world import World
from relwalk.training.all_entities import Candidates, Questions, joined_targets
from relwalk.training.common import CommonSettings, ObjectiveSettings
from relwalk.training.likelihood import Likelihood
from relwalk.training.regularizers import entity_terms, relation_terms, triple_terms
from relwalk.training.softmax import Targets


class ShardedLikelihood(Likelihood):
    """-log p of every answer: of the answers whose entities this process has. The losses of all add up to the whole."""

    def __init__(
        self, graph: Graph, settings: CommonSettings, own: ObjectiveSettings, device: torch.device, shards: Shards
    ) -> None:
        super().__init__(graph, settings, own, device)
        self.shards, self.world = shards, shards.world

    def loss(self, model: Scorer, batch: list[Questions], generator: torch.Generator, *, decay: float = 1.0) -> Tensor:
        batch = [questions for questions in batch if len(questions.given)]
        product = as_product(model)
        assert product is not None  # checked before: see `fitting`
        triples = self.true_triples(batch)
        parts = [[Part.of(questions, rank, self.world.size) for questions in batch] for rank in range(self.world.size)]
        rows = fetch(model.tables(), self.shards, [self._needed(part) for part in parts])
        mine = parts[self.world.rank]

        total = self._regularization(model, triples, mine, rows, decay)
        total = total + model.penalty(torch.unique(triples[1])) / self.world.size
        candidates, placed = self._candidates(batch, generator)
        keys = OwnKeys.of(candidates, self.shards)
        views = [view(product, rows, part.questions, part.total) for part in mine]
        queries = gather_queries(self.world, [part.queries(v, rows) for v, part in zip(views, mine, strict=True)])
        for asked, questions in _sharing_keys(product, queries, placed):
            targets = keys.targets(joined_targets(questions))
            own = product.keys(questions[0].side, keys.rows)
            summed = self.candidates or self.entities
            loss = self.product_loss(model.scale * asked, (own,), targets, keys.log_weights, self.world, summed)
            total = total + loss
        return total

    def _needed(self, parts: list[Part]) -> Tensor:
        """The entities whose rows these questions need: what is given, and with N3 or DURA their answers."""
        whole = bool(self.settings.n3 or self.settings.dura)
        answers = [part.targets.columns for part in parts] if whole else []
        entities: Tensor = torch.unique(torch.cat([*(part.given for part in parts), *answers]))
        return entities

    def _regularization(
        self, model: Scorer, triples: tuple[Tensor, ...], mine: list[Part], rows: Rows, decay: float
    ) -> Tensor:
        """Of the entities that are here, as often as any triple of the batch has them; a share of what is asked of the
        relations; of this process's triples."""
        heads, tails = (self.shards.row[ids[self.shards.here(ids)]] for ids in (triples[0], triples[2]))
        total = entity_terms(model, self.settings, heads, tails, few=self.few_entities, decay=decay)
        total = total + relation_terms(model, self.settings, triples[1], decay=decay) / self.world.size
        if not (self.settings.n3 or self.settings.dura):
            return total
        for part in mine:
            own = part.triples(rows)
            seen = view(model, rows, part.questions, part.total)
            total = total + triple_terms(seen, self.settings, *own, decay=decay)
        return total


class Part(NamedTuple):
    """The questions of one side that one process asks: as many in each, the last one again where there are too few."""

    side: Side
    given: Tensor  # (rows,)
    relations: Tensor  # (rows,)
    targets: Targets  # of those that are its own, by their rows here
    questions: Tensor  # (rows,) their numbers in the batch
    total: int  # of all questions of the side

    @staticmethod
    def of(whole: Questions, rank: int, size: int) -> Part:
        count = len(whole.given)
        rows = -(-count // size)
        questions = torch.arange(rank * rows, (rank + 1) * rows).clamp(max=count - 1)
        start, stop = min(rank * rows, count), min((rank + 1) * rows, count)
        pairs = whole.targets.in_rows(start, stop)
        targets = Targets(whole.targets.rows[pairs] - start, whole.targets.columns[pairs], whole.targets.weights[pairs])
        return Part(whole.side, whole.given[questions], whole.relations[questions], targets, questions, count)

    def queries(self, seen: ProductScorer, rows: Rows) -> Tensor:
        return seen.queries(self.side, rows.places(self.given), self.relations)

    def triples(self, rows: Rows) -> tuple[Tensor, Tensor, Tensor]:
        """Heads, relations and tails of its answered questions, entities by their places in the rows."""
        own = Questions(self.side, rows.places(self.given), self.relations, self.targets)
        placed = own.targets._replace(columns=rows.places(own.targets.columns))
        return own._replace(targets=placed).triples()


class OwnKeys(NamedTuple):
    """The keys of this process among those that a step needs."""

    rows: Tensor | None  # (n,) of its tables; None: all
    log_weights: Tensor | None  # of those that were drawn
    here: Tensor  # (candidates,) whether a candidate is among them
    place: Tensor  # (candidates,) and where

    @staticmethod
    def of(candidates: Candidates, shards: Shards) -> OwnKeys:
        entities, log_weights = candidates
        if entities is None or log_weights is None:
            return OwnKeys(None, None, shards.owner == shards.world.rank, shards.row)
        here = shards.here(entities)
        drawn = log_weights[here[: len(log_weights)]]
        return OwnKeys(shards.row[entities[here]], drawn, here, here.cumsum(0) - 1)

    def targets(self, whole: Targets) -> Targets:
        """Those that this process has the keys of."""
        pairs = self.here[whole.columns].nonzero().squeeze(1)
        return Targets(whole.rows[pairs], self.place[whole.columns[pairs]], whole.weights[pairs])


class _Gather(torch.autograd.Function):
    """The rows of all processes; each has slopes of all of them, whose sums go back."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, world: World) -> Tensor:
        ctx.world = world
        return world.gather(rows)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        world: World = ctx.world
        return world.scatter_sum(slopes[0]), None


def gather_queries(world: World, parts: list[Tensor]) -> list[Tensor]:
    """Of each side the queries of all processes, in the order of the batch, from the ones that each has made."""
    together: Tensor = _Gather.apply(torch.cat(parts), world)  # type: ignore[no-untyped-call]
    by_rank = torch.split(together.view(world.size, -1, together.shape[1]), [len(part) for part in parts], 1)
    return [part.flatten(0, 1) for part in by_rank]


def _sharing_keys(
    model: ProductScorer, queries: list[Tensor], batch: list[Questions]
) -> list[tuple[Tensor, list[Questions]]]:
    """Queries and questions that have the same keys: of both sides, or one side after the other.

    A side has more queries than questions when they do not divide by the processes: the last ones have no targets.
    """
    padded = [
        q._replace(given=q.given.new_zeros(len(own)), relations=q.relations.new_zeros(len(own)))
        for own, q in zip(queries, batch, strict=True)
    ]
    if model.keys_by_side:
        return [(own, [q]) for own, q in zip(queries, padded, strict=True)]
    return [(torch.cat(queries), padded)]
