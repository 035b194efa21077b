"""DistMult: a relation weighs the coordinates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from relwalk.graph.answers import Side
from relwalk.models.base import ProductScorer
from relwalk.models.tables import Dropout, EntityTable, normal_rows
from relwalk.space import Among, Between, Search


class DistMult(ProductScorer):
    """DistMult (Yang, Yih, He, Gao, Deng: ICLR 2015).

    A relation is a diagonal matrix: it says how much each coordinate of head and tail should agree. Symmetric.

        s = Σ_i h_i r_i t_i
    """

    paper = "Yang, Yih, He, Gao, Deng: ICLR 2015"
    formula = "Σ_i h_i r_i t_i"
    expresses = ("symmetry", "one-to-many")
    # A path of DURA serves dense graphs by its weak end, sparse ones by its strong one (compared in `recipes`).
    usual: ClassVar[Mapping[str, Any]] = {"l2": 0.0, "dura": 0.05, "decay_end": 0.1, "batch_size": 256}
    search: ClassVar[Mapping[str, Search | None]] = {
        "l2": None,
        "dura": Between(0.005, 0.2, "log"),
        "reciprocal": Among((False, True)),
    }

    def __init__(self, entities: int, relations: int, dim: int, *, generator: torch.Generator) -> None:
        super().__init__(entities, relations, dim)
        self.entity = EntityTable(normal_rows(entities, dim, generator, over=dim**0.5))
        self.relation = nn.Parameter(torch.randn(relations, dim, generator=generator))
        self.entity_dropout, self.query_dropout = Dropout(), Dropout()

    def score(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        return (self.entity(heads) * F.embedding(relations, self.relation) * self.entity(tails)).sum(-1)  # (batch,)

    def queries(self, side: Side, given: Tensor, relations: Tensor) -> Tensor:
        x = self.entity_dropout(self.entity(given))  # (batch, dim)
        return self.query_dropout(x * F.embedding(relations, self.relation))  # (batch, dim)

    def keys(self, side: Side, entities: Tensor | None = None, relations: Tensor | None = None) -> Tensor:
        return self.entity(entities)  # (candidates, dim)

    def n3_norm(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        return super().n3_norm(heads, relations, tails) + F.embedding(relations, self.relation).abs().pow(3).sum()

    def dura(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        both = self.entity(torch.stack([heads, tails])).square().sum(0)  # together: one gradient of the whole table
        return (both * (1 + F.embedding(relations, self.relation).square())).sum()
