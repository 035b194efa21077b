"""ComplEx: a relation weighs and turns complex coordinates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from relwalk.errors import RelWalkError
from relwalk.graph.answers import Side
from relwalk.models.base import ProductScorer
from relwalk.models.tables import Dropout, EntityTable, moduli, normal_rows
from relwalk.space import Among, Between, Search


class ComplEx(ProductScorer):
    """ComplEx (Trouillon, Welbl, Riedel, Gaussier, Bouchard: ICML 2016).

    DistMult over the complex numbers: conjugating the tail lets a relation be asymmetric. The first half of a vector
    holds the real parts, the second the imaginary ones, so `dim` real numbers are dim / 2 complex ones.

        s = Re Σ_i h_i r_i conj(t_i)
    """

    paper = "Trouillon, Welbl, Riedel, Gaussier, Bouchard: ICML 2016"
    formula = "Re Σ_i h_i r_i conj(t_i)"
    expresses = ("symmetry", "antisymmetry", "inversion", "one-to-many")
    # A path of DURA serves dense graphs by its weak end, sparse ones by its strong one (compared in `recipes`).
    usual: ClassVar[Mapping[str, Any]] = {
        "reciprocal": True,
        "l2": 0.0,
        "dura": 0.05,
        "decay_end": 0.1,
        "batch_size": 256,
    }
    search: ClassVar[Mapping[str, Search | None]] = {
        "l2": None,
        "dura": Between(0.005, 0.2, "log"),
        "reciprocal": Among((False, True)),
    }

    def __init__(self, entities: int, relations: int, dim: int, *, generator: torch.Generator) -> None:
        super().__init__(entities, relations, dim)
        if dim % 2:
            raise RelWalkError(f"ComplEx needs an even dim (real and imaginary parts); found {dim}")
        self.entity = EntityTable(normal_rows(entities, dim, generator, over=dim**0.5))
        self.relation = nn.Parameter(torch.randn(relations, dim, generator=generator))
        self.entity_dropout, self.query_dropout = Dropout(), Dropout()

    def score(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        h, r, t = (torch.complex(*x.chunk(2, -1)) for x in (self.entity(heads), self._r(relations), self.entity(tails)))
        return (h * r * t.conj()).sum(-1).real  # (batch,)

    def queries(self, side: Side, given: Tensor, relations: Tensor) -> Tensor:
        a, b = self.entity_dropout(self.entity(given)).chunk(2, -1)
        c, d = self._r(relations).chunk(2, -1)
        if side == "tail":
            return self.query_dropout(torch.cat([a * c - b * d, a * d + b * c], -1))  # (batch, dim)  h r
        return self.query_dropout(torch.cat([a * c + b * d, b * c - a * d], -1))  # (batch, dim)  conj(r) t

    def keys(self, side: Side, entities: Tensor | None = None, relations: Tensor | None = None) -> Tensor:
        return self.entity(entities)  # (candidates, dim)

    def n3_norm(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        parts = (self.entity(heads), self._r(relations), self.entity(tails))
        return sum((moduli(x).pow(3).sum() for x in parts), start=parts[0].new_zeros(()))

    def dura(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        both = moduli(self.entity(torch.stack([heads, tails]))).square().sum(0)  # one gradient of the whole table
        return (both * (1 + moduli(self._r(relations)).square())).sum()

    def _r(self, relations: Tensor) -> Tensor:
        return F.embedding(relations, self.relation)  # (batch, dim)
