"""TransE: a relation is a translation."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from relwalk.models.base import ProductScorer, Queries, squared_norms


class TransE(ProductScorer):
    """TransE (Bordes, Usunier, García-Durán, Weston, Yakhnenko: NIPS 2013), with the squared L2 distance.

    Adding the relation to the head should lead to the tail. Squared, the distance to all entities is one product:

        s = -||h + r - t||² = 2 (h + r)·t - ||t||² - ||h + r||²
    """

    def __init__(self, entities: int, relations: int, dim: int, *, generator: torch.Generator) -> None:
        super().__init__(entities, relations, dim)
        self.entity = nn.Parameter(torch.randn(entities, dim, generator=generator) / dim**0.5)
        self.relation = nn.Parameter(torch.randn(relations, dim, generator=generator) / dim**0.5)

    def score(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        moved = self.vectors(heads) + F.embedding(relations, self.relation)  # (batch, dim)
        return -(moved - self.vectors(tails)).square().sum(-1)  # (batch,)

    def tail_queries(self, heads: Tensor, relations: Tensor) -> Queries:
        return _nearest_to(self.vectors(heads) + F.embedding(relations, self.relation))

    def head_queries(self, relations: Tensor, tails: Tensor) -> Queries:
        return _nearest_to(self.vectors(tails) - F.embedding(relations, self.relation))

    def cubes(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        return super().cubes(heads, relations, tails) + F.embedding(relations, self.relation).abs().pow(3).sum()


def _nearest_to(x: Tensor) -> Queries:
    """-||x - e||² for every entity e."""
    return Queries(2 * x, _minus_squared_norms, -x.square().sum(-1))


def _minus_squared_norms(e: Tensor) -> Tensor:
    return -squared_norms(e)
