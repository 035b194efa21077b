"""RESCAL: a relation is any bilinear form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from relwalk.graph.answers import Side
from relwalk.models.base import ProductScorer
from relwalk.models.relation_matmul import project
from relwalk.models.tables import Dropout, EntityTable, normal_rows
from relwalk.space import Between, Search


class RESCAL(ProductScorer):
    """RESCAL (Nickel, Tresp, Kriegel: ICML 2011).

    A relation is a matrix without constraint; RelWalk with exact orthogonality is RESCAL with an orthogonal one and
    the norms of the entities added.

        s = hᵀ M t
    """

    paper = "Nickel, Tresp, Kriegel: ICML 2011"
    formula = "hᵀ M t"
    expresses = ("symmetry", "antisymmetry", "inversion", "composition", "one-to-many")
    # A path of DURA serves dense graphs by its weak end, sparse ones by its strong one (compared in `recipes`).
    usual: ClassVar[Mapping[str, Any]] = {"l2": 0.0, "dura": 0.05, "decay_end": 0.1, "batch_size": 256}
    search: ClassVar[Mapping[str, Search | None]] = {
        "dim": Between(32, 256, "powers"),
        "l2": None,
        "dura": Between(0.005, 0.2, "log"),
    }

    def __init__(self, entities: int, relations: int, dim: int, *, generator: torch.Generator) -> None:
        super().__init__(entities, relations, dim)
        self.entity = EntityTable(normal_rows(entities, dim, generator, over=dim**0.5))
        self.M = nn.Parameter(torch.randn(relations, dim, dim, generator=generator) / dim**0.5)
        self.entity_dropout, self.query_dropout = Dropout(), Dropout()

    def score(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        return (self._turn("tail", self.entity(heads), relations) * self.entity(tails)).sum(-1)  # (batch,)

    def queries(self, side: Side, given: Tensor, relations: Tensor) -> Tensor:
        x = self.entity_dropout(self.entity(given))  # (batch, dim)
        return self.query_dropout(self._turn(side, x, relations))  # (batch, dim)

    def keys(self, side: Side, entities: Tensor | None = None, relations: Tensor | None = None) -> Tensor:
        return self.entity(entities)  # (candidates, dim)

    def dura(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        h, t = self.entity(torch.stack([heads, tails]))  # taken together: one gradient of the whole table
        ahead, back = self._turn("tail", h, relations), self._turn("head", t, relations)  # Mᵀh, M t
        return sum((x.square().sum() for x in (h, t, ahead, back)), start=h.new_zeros(()))

    def _turn(self, side: Side, x: Tensor, relations: Tensor) -> Tensor:
        """Mᵀh when the tail is asked, M t when the head is.  # (batch, dim)"""
        return project(x, self.M, relations, transposed=side == "head")
