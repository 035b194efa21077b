"""TransR: a translation in a space of the relation's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from relwalk.checks import check_whole
from relwalk.graph.answers import Side
from relwalk.models.base import ProductScorer
from relwalk.models.norms import divide_rows, norms, shortened
from relwalk.models.relation_matmul import project
from relwalk.models.tables import Dropout, EntityTable, with_constant, with_squared_norms
from relwalk.space import Between, Search


class TransR(ProductScorer):
    """TransR (Lin, Liu, Sun, Liu, Zhu: AAAI 2015).

    A relation has a matrix that leads entities into its own space, where it is a translation:

        s = -||h M + r - t M||² = [2 (h M + r), -1] · [t M, ||t M||²] - ||h M + r||²

    `bounded_norms`: in the paper no entity, relation or projected entity is longer than 1. The first two are shortened
    after every step then, and h M and t M wherever they are made: a rule about all pairs of an entity and a matrix
    cannot be left to a step. A likelihood has too little room in it (see `TransD`).

    The matrices start as identities: as TransE, which the paper trains first. `relation_dim` is the dimension of the
    relation's space; beyond dim it would add a constant to all scores of a relation, and nothing else.
    """

    paper = "Lin, Liu, Sun, Liu, Zhu: AAAI 2015"
    search: ClassVar[Mapping[str, Search | None]] = {"dim": Between(32, 256, "powers")}
    formula = "-||h M + r - t M||²"
    expresses = ("symmetry", "antisymmetry", "inversion", "composition", "one-to-many")

    # Keys are made for each relation of a step: large batches make them less often. Valid MRR on the graphs of
    # `TransE.usual`, d = 32, 12 s of a busy core (in brackets 12 epochs), seed 0:
    #
    #     unit norms, batch 1024, l2 .15            (.159)
    #     batch 1024, l2 .15                  .585          .187
    #     batch 1024, l2 .03                        (.184)
    #     batch 4096, l2 .03                         .178
    #     batch 4096, l2 .15, lr .3                  .157
    #     batch 2048, l2 .1                   .584   .193
    #     softmax, 64 negatives, l2 .03       .462   .175   .177
    usual: ClassVar[Mapping[str, Any]] = {"dim": 32, "bounded_norms": False, "l2": 0.1, "batch_size": 2048}

    keys_by_relation = True

    def __init__(
        self,
        entities: int,
        relations: int,
        dim: int,
        *,
        generator: torch.Generator,
        relation_dim: int | None = None,
        bounded_norms: bool = True,
    ) -> None:
        super().__init__(entities, relations, dim)
        self.constrained = bounded_norms
        width = dim if relation_dim is None else check_whole("relation_dim", relation_dim, most=dim)
        self.entity = EntityTable(torch.randn(entities, dim, generator=generator) / dim**0.5)
        self.relation = nn.Parameter(torch.randn(relations, width, generator=generator) / width**0.5)
        self.projection = nn.Parameter(torch.eye(dim, width).repeat(relations, 1, 1))
        self.entity_dropout, self.query_dropout = Dropout(), Dropout()
        if bounded_norms:
            self.constrain()

    @torch.no_grad()
    def constrain(self, entities: Tensor | None = None) -> None:
        self.relation.copy_(shortened(self.relation))
        divide_rows(self.entity, entities, norms(self.entity(entities)).clamp(min=1.0))

    def score(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        h, t = (self._project(self.entity(x), relations) for x in (heads, tails))  # (batch, relation_dim)
        return -(h + F.embedding(relations, self.relation) - t).square().sum(-1)  # (batch,)

    def queries(self, side: Side, given: Tensor, relations: Tensor) -> Tensor:
        goal = self.query_dropout(self._goal(side, given, relations))
        return with_constant(2 * goal, -1.0)  # (batch, relation_dim + 1)

    def keys(self, side: Side, entities: Tensor | None = None, relations: Tensor | None = None) -> Tensor:
        assert relations is not None  # keys_by_relation
        return with_squared_norms(self._project(self.entity(entities), relations))  # (candidates, relation_dim + 1)

    def offsets(self, side: Side, given: Tensor, relations: Tensor) -> Tensor:
        return -self._goal(side, given, relations).square().sum(-1)  # (batch,)

    def n3_norm(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        return super().n3_norm(heads, relations, tails) + F.embedding(relations, self.relation).abs().pow(3).sum()

    def _goal(self, side: Side, given: Tensor, relations: Tensor) -> Tensor:
        """Where the projected answer should be: h M + r, or t M - r.  # (batch, relation_dim)"""
        x = self._project(self.entity_dropout(self.entity(given)), relations)
        r = F.embedding(relations, self.relation)
        return x + r if side == "tail" else x - r

    def _project(self, e: Tensor, relations: Tensor) -> Tensor:
        moved = project(e, self.projection, relations)  # (batch, relation_dim)
        return shortened(moved) if self.constrained else moved
