"""TuckER: one core tensor for all relations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from relwalk.checks import DIM, check_number, check_whole
from relwalk.graph.answers import Side
from relwalk.models.base import ProductScorer
from relwalk.models.relation_matmul import project
from relwalk.models.tables import BatchNorm, Dropout, EntityTable
from relwalk.space import Between, Search

MOST_DROPPED = 0.99  # the highest rate of a dropout


class TuckER(ProductScorer):
    """TuckER (Balažević, Allen, Hospedales: EMNLP 2019).

    A relation is a bilinear form as in RESCAL, mixed from a few that all relations share, the slices of a core tensor:

        s = W ×₁ h ×₂ r ×₃ t = hᵀ W_r t,      W_r = Σ_j r_j W_j

    As in the paper, batch norm and dropout stand before and after the product with W_r, and dropout on W_r itself (one
    draw for a relation of a step): the question for tails is norm(norm(h)ᵀ W_r). `relation_dim` is the length of r,
    `dim` when left out.

    Heads are asked for by `reciprocal` relations, as in the paper, unless told not to: then by the transposed core.
    Batch norm is a line in each coordinate; there it is always the line that evaluation has, for heads of candidates
    are no batch.
    """

    paper = "Balažević, Allen, Hospedales: EMNLP 2019"
    formula = "hᵀ (Σ_j r_j W_j) t"
    expresses = ("symmetry", "antisymmetry", "inversion", "composition", "one-to-many")
    shared = ("core", "input_norm", "hidden_norm")

    reciprocal = True
    # Few slices are as good as many, and cheaper; Adagrad is as good as Adam, and draws entities (see `recipes`).
    usual: ClassVar[Mapping[str, Any]] = {
        "relation_dim": 32,
        "schedule": "cosine",
        "batch_size": 256,
        "l2": 0.15,
        "decay_end": 0.2,
    }
    search: ClassVar[Mapping[str, Search | None]] = {
        "dim": Between(32, 256, "powers"),
        "relation_dim": Between(8, 128, "powers"),
        "entity_dropout": None,
        "query_dropout": None,
        "input_dropout": Between(0.0, 0.5),
        "core_dropout": Between(0.0, 0.5),
        "hidden_dropout": Between(0.0, 0.6),
    }

    def __init__(
        self,
        entities: int,
        relations: int,
        dim: int,
        *,
        generator: torch.Generator,
        relation_dim: int | None = None,
        input_dropout: float = 0.2,
        core_dropout: float = 0.2,
        hidden_dropout: float = 0.3,
    ) -> None:
        super().__init__(entities, relations, dim)
        width = dim if relation_dim is None else check_whole("relation_dim", relation_dim, most=DIM)
        self.entity = EntityTable(torch.randn(entities, dim, generator=generator) / dim**0.5)
        self.relation = nn.Parameter(torch.randn(relations, width, generator=generator) / width**0.5)
        self.core = nn.Parameter(torch.randn(width, dim, dim, generator=generator) / dim**0.5)
        self.input_norm, self.hidden_norm = BatchNorm(dim), BatchNorm(dim)
        self.input_dropout = Dropout(check_number("input_dropout", input_dropout, 0, MOST_DROPPED))
        self.core_dropout = Dropout(check_number("core_dropout", core_dropout, 0, MOST_DROPPED))
        self.hidden_dropout = Dropout(check_number("hidden_dropout", hidden_dropout, 0, MOST_DROPPED))

    def score(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        return (self.queries("tail", heads, relations) * self.entity(tails)).sum(-1)  # (batch,)

    def queries(self, side: Side, given: Tensor, relations: Tensor) -> Tensor:
        if side == "tail":
            h = self.input_dropout(self.input_norm(self.entity(given)))  # (batch, dim)
            return self.hidden_dropout(self.hidden_norm(self._times(h, relations)))  # (batch, dim)  hᵀ W_r
        slope, _ = self.input_norm.line()
        return self.hidden_dropout(slope * self._turned(given, relations))  # (batch, dim)  W_r t

    def keys(self, side: Side, entities: Tensor | None = None, relations: Tensor | None = None) -> Tensor:
        return self.entity(entities)  # (candidates, dim)

    def offsets(self, side: Side, given: Tensor, relations: Tensor) -> Tensor | None:
        """What the intercepts of the norms, met by W_r t and by t, add to the scores of all heads."""
        if side == "tail":
            return None
        (_, before), (_, after) = self.input_norm.line(), self.hidden_norm.line()
        return self._turned(given, relations) @ before + self.entity(given) @ after  # (batch,)

    def n3_norm(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        return super().n3_norm(heads, relations, tails) + F.embedding(relations, self.relation).abs().pow(3).sum()

    def _turned(self, tails: Tensor, relations: Tensor) -> Tensor:
        """W_r t, where the slope of the norm that follows W_r is taken to t.  # (batch, dim)"""
        slope, _ = self.hidden_norm.line()
        return self._times(self.input_dropout(slope * self.entity(tails)), relations, transposed=True)

    def _times(self, rows: Tensor, relations: Tensor, *, transposed: bool = False) -> Tensor:
        """Each row times W_r, or its transpose, which is made once for each relation of a batch.  # (batch, dim)"""
        distinct, place = torch.unique(relations, return_inverse=True)
        forms = torch.einsum("rj,jde->rde", F.embedding(distinct, self.relation), self.core)  # (distinct, dim, dim)
        return project(rows, self.core_dropout(forms), place, transposed=transposed)
