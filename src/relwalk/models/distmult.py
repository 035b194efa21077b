"""DistMult: a relation weighs the coordinates."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from relwalk.models.base import ProductScorer, Queries


class DistMult(ProductScorer):
    """DistMult (Yang, Yih, He, Gao, Deng: ICLR 2015).

    A relation is a diagonal matrix: it says how much each coordinate of head and tail should agree. Symmetric.

        s = Σ_i h_i r_i t_i
    """

    def __init__(self, entities: int, relations: int, dim: int, *, generator: torch.Generator) -> None:
        super().__init__(entities, relations, dim)
        self.entity = nn.Parameter(torch.randn(entities, dim, generator=generator) / dim**0.5)
        self.relation = nn.Parameter(torch.randn(relations, dim, generator=generator))

    def score(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        return (self.vectors(heads) * F.embedding(relations, self.relation) * self.vectors(tails)).sum(-1)  # (batch,)

    def tail_queries(self, heads: Tensor, relations: Tensor) -> Queries:
        return Queries(self.vectors(heads) * F.embedding(relations, self.relation))  # (batch, dim)

    def head_queries(self, relations: Tensor, tails: Tensor) -> Queries:
        return Queries(self.vectors(tails) * F.embedding(relations, self.relation))  # (batch, dim)

    def cubes(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        return super().cubes(heads, relations, tails) + F.embedding(relations, self.relation).abs().pow(3).sum()
