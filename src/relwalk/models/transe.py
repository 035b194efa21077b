"""TransE: a relation is a translation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from relwalk.graph.answers import Side
from relwalk.models.base import ProductScorer
from relwalk.models.tables import Dropout, EntityTable, with_constant, with_squared_norms


class TransE(ProductScorer):
    """TransE (Bordes, Usunier, García-Durán, Weston, Yakhnenko: NIPS 2013), with the squared L2 distance.

    Adding the relation to the head should lead to the tail. Squared, the distance to all entities is one product:

        s = -||h + r - t||² = [2 (h + r), -1] · [t, ||t||²] - ||h + r||²
    """

    paper = "Bordes, Usunier, García-Durán, Weston, Yakhnenko: NIPS 2013"
    formula = "-||h + r - t||²"
    expresses = ("antisymmetry", "inversion", "composition")
    usual: ClassVar[Mapping[str, Any]] = {"l2": 0.03}

    def __init__(self, entities: int, relations: int, dim: int, *, generator: torch.Generator) -> None:
        super().__init__(entities, relations, dim)
        self.entity = EntityTable(torch.randn(entities, dim, generator=generator) / dim**0.5)
        self.relation = nn.Parameter(torch.randn(relations, dim, generator=generator) / dim**0.5)
        self.entity_dropout, self.query_dropout = Dropout(), Dropout()

    def score(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        moved = self.entity(heads) + F.embedding(relations, self.relation)  # (batch, dim)
        return -(moved - self.entity(tails)).square().sum(-1)  # (batch,)

    def queries(self, side: Side, given: Tensor, relations: Tensor) -> Tensor:
        return with_constant(2 * self.query_dropout(self._goal(side, given, relations)), -1.0)  # (batch, dim + 1)

    def keys(self, side: Side, entities: Tensor | None = None, relations: Tensor | None = None) -> Tensor:
        return with_squared_norms(self.entity(entities))  # (candidates, dim + 1)

    def offsets(self, side: Side, given: Tensor, relations: Tensor) -> Tensor:
        return -self._goal(side, given, relations).square().sum(-1)  # (batch,)

    def n3_norm(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        return super().n3_norm(heads, relations, tails) + F.embedding(relations, self.relation).abs().pow(3).sum()

    def _goal(self, side: Side, given: Tensor, relations: Tensor) -> Tensor:
        """Where the answer should be: h + r, or t - r.  # (batch, dim)"""
        x, r = self.entity_dropout(self.entity(given)), F.embedding(relations, self.relation)
        return x + r if side == "tail" else x - r
