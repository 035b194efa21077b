"""TransE: a relation is a translation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from relwalk.errors import UnknownChoice
from relwalk.graph.answers import Side
from relwalk.models.base import ProductScorer
from relwalk.models.distances import l1_distances
from relwalk.models.norms import make_unit
from relwalk.models.tables import (
    Dropout,
    EntityTable,
    and_squared_norms,
    normal_rows,
    with_constant,
    with_squared_norms,
)
from relwalk.space import Among, Search

Distance = Literal["squared-l2", "l1"]


class TransE(ProductScorer):
    """TransE (Bordes, Usunier, García-Durán, Weston, Yakhnenko: NIPS 2013).

    Adding the relation to the head should lead to the tail. Squared, the distance to all entities is one product:

        s = -||h + r - t||² = [2 (h + r), -1] · [t, ||t||²] - ||h + r||²

    `distance`: the paper has this one and "l1", s = -||h + r - t||_1, which is no product and slower by far.
    `unit_norms`: in the paper entities have norm 1 after every step, so that a margin cannot be won by long vectors; a
    likelihood needs no such rule, and the freedom serves it.
    """

    paper = "Bordes, Usunier, García-Durán, Weston, Yakhnenko: NIPS 2013"
    formula = "-||h + r - t||²"
    expresses = ("antisymmetry", "inversion", "composition")
    # Valid MRR of world, of 1,500 entities of FB15k-237 and of 3,000 of WN18RR (`python -m tools.subgraphs fb15k-237
    # --entities 1500 --share 0.5`, `wn18rr --entities 3000 --how snowball`), d = 64, 30 epochs, seed 0, one thread
    # (of 2 cores of Intel(R) Xeon(R) Processor (AVX-512, bfloat16), busy, here and in the other models' tables):
    #
    #     l2 .03                        .573  .227  .193
    #     l2 .1 falling to .001         .570  .225  .196
    #     the same, batches of 256      .567  .224  .195
    #     the same, lr .3               .580  .219  .204
    usual: ClassVar[Mapping[str, Any]] = {"l2": 0.03}
    search: ClassVar[Mapping[str, Search | None]] = {"unit_norms": Among((False, True))}

    def __init__(
        self,
        entities: int,
        relations: int,
        dim: int,
        *,
        generator: torch.Generator,
        distance: Distance = "squared-l2",
        unit_norms: bool = False,
    ) -> None:
        super().__init__(entities, relations, dim)
        if distance not in ("squared-l2", "l1"):
            raise UnknownChoice("distance", distance, ("squared-l2", "l1"))
        self.is_product, self.constrained = distance == "squared-l2", unit_norms
        self.entity = EntityTable(normal_rows(entities, dim, generator, over=dim**0.5))
        self.relation = nn.Parameter(torch.randn(relations, dim, generator=generator) / dim**0.5)
        self.entity_dropout, self.query_dropout = Dropout(), Dropout()
        if unit_norms:
            self.constrain()

    @classmethod
    def is_product_with(cls, options: Mapping[str, Any]) -> bool:
        return options.get("distance") != "l1"

    @torch.no_grad()
    def constrain(self, entities: Tensor | None = None) -> None:
        make_unit(self.entity, entities)

    def score(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        apart = self.entity(heads) + F.embedding(relations, self.relation) - self.entity(tails)  # (batch, dim)
        return -(apart.square() if self.is_product else apart.abs()).sum(-1)  # (batch,)

    def score_candidates(
        self, side: Side, given: Tensor, relations: Tensor, candidates: Tensor | None = None
    ) -> Tensor:
        if self.is_product:
            return super().score_candidates(side, given, relations, candidates)
        goals = self.query_dropout(self._goal(side, given, relations))  # (batch, dim)
        return -l1_distances(goals, self.entity(candidates))  # (batch, candidates)

    def queries(self, side: Side, given: Tensor, relations: Tensor) -> Tensor:
        return with_constant(2 * self.query_dropout(self._goal(side, given, relations)), -1.0)  # (batch, dim + 1)

    def keys(self, side: Side, entities: Tensor | None = None, relations: Tensor | None = None) -> Tensor:
        return with_squared_norms(self.entity(entities))  # (candidates, dim + 1)

    def key_parts(self, side: Side) -> tuple[Tensor, ...]:
        return and_squared_norms(self.entity())  # (entities, dim), (entities, 1)

    def offsets(self, side: Side, given: Tensor, relations: Tensor) -> Tensor:
        return -self._goal(side, given, relations).square().sum(-1)  # (batch,)

    def n3_norm(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        return super().n3_norm(heads, relations, tails) + F.embedding(relations, self.relation).abs().pow(3).sum()

    def _goal(self, side: Side, given: Tensor, relations: Tensor) -> Tensor:
        """Where the answer should be: h + r, or t - r.  # (batch, dim)"""
        x, r = self.entity_dropout(self.entity(given)), F.embedding(relations, self.relation)
        return x + r if side == "tail" else x - r
