"""CP: an entity has one vector as head and another as tail."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from relwalk.graph.answers import Side
from relwalk.models.base import ProductScorer
from relwalk.models.tables import Dropout, EntityTable, normal_rows, squared_norms
from relwalk.space import Among, Between, Search


class CP(ProductScorer):
    """CP, the canonical polyadic decomposition (Hitchcock 1927; Lacroix, Usunier, Obozinski: ICML 2018).

    The tensor of all triples as a sum of `dim` products. What is learned of an entity as head says nothing of it as
    tail: Lacroix et al. close that gap by reciprocal relations, and hold it by the nuclear 3-norm
    (`reciprocal`, `n3`).

        s = Σ_i h_i r_i t'_i
    """

    paper = "Hitchcock 1927; Lacroix, Usunier, Obozinski: ICML 2018"
    formula = "Σ_i h_i r_i t'_i"
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

    keys_by_side = True
    lr = 0.3  # a table learns from one side alone: half as often as one for both

    def __init__(self, entities: int, relations: int, dim: int, *, generator: torch.Generator) -> None:
        super().__init__(entities, relations, dim)
        self.head = EntityTable(normal_rows(entities, dim, generator, over=dim**0.5))
        self.tail = EntityTable(normal_rows(entities, dim, generator, over=dim**0.5))
        self.relation = nn.Parameter(torch.randn(relations, dim, generator=generator))
        self.entity_dropout, self.query_dropout = Dropout(), Dropout()

    def score(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        return (self.head(heads) * self._r(relations) * self.tail(tails)).sum(-1)  # (batch,)

    def queries(self, side: Side, given: Tensor, relations: Tensor) -> Tensor:
        x = self.entity_dropout((self.head if side == "tail" else self.tail)(given))  # (batch, dim)
        return self.query_dropout(x * self._r(relations))  # (batch, dim)

    def keys(self, side: Side, entities: Tensor | None = None, relations: Tensor | None = None) -> Tensor:
        return (self.tail if side == "tail" else self.head)(entities)  # (candidates, dim)

    def l2_norm(self, head_times: Tensor, tail_times: Tensor, entities: Tensor | None = None) -> Tensor:
        as_head, as_tail = squared_norms(self.head(entities)), squared_norms(self.tail(entities))
        return torch.sum(head_times * as_head + tail_times * as_tail)

    def n3_norm(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        h, r, t = (x.abs().pow(3).sum() for x in (self.head(heads), self._r(relations), self.tail(tails)))
        return h + r + t

    def dura(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        h, r, t = (x.square() for x in (self.head(heads), self._r(relations), self.tail(tails)))
        return ((h + t) * (1 + r)).sum()

    def _r(self, relations: Tensor) -> Tensor:
        return F.embedding(relations, self.relation)  # (batch, dim)
