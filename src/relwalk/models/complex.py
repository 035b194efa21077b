"""ComplEx: a relation weighs and turns complex coordinates."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from relwalk.errors import RelWalkError
from relwalk.models.base import ProductScorer, Queries


class ComplEx(ProductScorer):
    """ComplEx (Trouillon, Welbl, Riedel, Gaussier, Bouchard: ICML 2016).

    DistMult over the complex numbers: conjugating the tail lets a relation be asymmetric. The first half of a vector
    holds the real parts, the second the imaginary ones, so `dim` real numbers are dim / 2 complex ones.

        s = Re Σ_i h_i r_i conj(t_i)
    """

    def __init__(self, entities: int, relations: int, dim: int, *, generator: torch.Generator) -> None:
        super().__init__(entities, relations, dim)
        if dim % 2:
            raise RelWalkError(f"ComplEx needs an even dim (real and imaginary parts); found {dim}")
        self.entity = nn.Parameter(torch.randn(entities, dim, generator=generator) / dim**0.5)
        self.relation = nn.Parameter(torch.randn(relations, dim, generator=generator))

    def score(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        return (self.tail_queries(heads, relations).vectors * self.vectors(tails)).sum(-1)  # (batch,)

    def tail_queries(self, heads: Tensor, relations: Tensor) -> Queries:
        a, b = self.vectors(heads).chunk(2, -1)
        c, d = F.embedding(relations, self.relation).chunk(2, -1)
        return Queries(torch.cat([a * c - b * d, a * d + b * c], -1))  # (batch, dim)  h r

    def head_queries(self, relations: Tensor, tails: Tensor) -> Queries:
        a, b = self.vectors(tails).chunk(2, -1)
        c, d = F.embedding(relations, self.relation).chunk(2, -1)
        return Queries(torch.cat([a * c + b * d, b * c - a * d], -1))  # (batch, dim)  conj(r) t

    def cubes(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        parts = (self.vectors(heads), F.embedding(relations, self.relation), self.vectors(tails))
        return sum((_moduli(x).pow(3).sum() for x in parts), start=parts[0].new_zeros(()))


def _moduli(x: Tensor) -> Tensor:
    """|a + ib| of each coordinate; the little under the root keeps its slope finite at zero."""
    a, b = x.chunk(2, -1)
    return (a.square() + b.square() + 1e-12).sqrt()  # (batch, dim / 2)
