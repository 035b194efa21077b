"""RESCAL: a relation is any bilinear form."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from relwalk.models.base import ProductScorer, Queries
from relwalk.models.grouped import project


class RESCAL(ProductScorer):
    """RESCAL (Nickel, Tresp, Kriegel: ICML 2011).

    A relation is a matrix without constraint; RelWalk with exact orthogonality is RESCAL with an orthogonal one and
    the norms of the entities added.

        s = hᵀ M t
    """

    def __init__(self, entities: int, relations: int, dim: int, *, generator: torch.Generator) -> None:
        super().__init__(entities, relations, dim)
        self.entity = nn.Parameter(torch.randn(entities, dim, generator=generator) / dim**0.5)
        self.M = nn.Parameter(torch.randn(relations, dim, dim, generator=generator) / dim**0.5)

    def score(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        return (project(self.vectors(heads), self.M, relations) * self.vectors(tails)).sum(-1)  # (batch,)

    def tail_queries(self, heads: Tensor, relations: Tensor) -> Queries:
        return Queries(project(self.vectors(heads), self.M, relations))  # (batch, dim)  Mᵀh

    def head_queries(self, relations: Tensor, tails: Tensor) -> Queries:
        return Queries(project(self.vectors(tails), self.M, relations, transposed=True))  # (batch, dim)  M t
