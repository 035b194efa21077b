"""TransD: a translation between entities that each relation and each entity move along one direction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from relwalk.graph.answers import Side
from relwalk.models.base import ProductScorer
from relwalk.models.norms import divide_rows, norms, shortened
from relwalk.models.tables import Dropout, EntityTable, normal_rows, squared_norms


class TransD(ProductScorer):
    """TransD (Ji, He, Xu, Liu, Zhao: ACL 2015), with entities and relations of one dimension.

    Entities and relations have a second vector each, e_p and r_p, which make the matrix that projects this entity for
    this relation, M_re = r_p e_pᵀ + I. With a = e_p · e the projection is e + a r_p:

        s = -||h_r + r - t_r||²,    h_r = h + a_h r_p,    t_r = t + a_t r_p

    Multiplied out, with g = h_r + r, a candidate's part of it does not depend on the relation, and the score of all
    entities is one product for all relations:

        s = [2g, -2r_p, 2g·r_p, -||r_p||², -1] · [t, a_t t, a_t, a_t², ||t||²] - ||g||²

    `bounded_norms`: in the paper no entity, relation or projected entity is longer than 1. After every step ||r||,
    ||r_p|| <= 1 and ||e|| + |a| <= 1 then, so that ||e + a r_p|| <= 1 for every relation at once. No two points are
    further apart than 3, and no answer exp(9) times likelier than another: too little for a likelihood.
    """

    paper = "Ji, He, Xu, Liu, Zhao: ACL 2015"
    formula = "-||h + (h_p·h) r_p + r - t - (t_p·t) r_p||²"
    expresses = ("symmetry", "antisymmetry", "inversion", "composition", "one-to-many")
    # Valid MRR on the graphs of `TransE.usual`, d = 64, 20 epochs, seed 0:
    #
    #     unit norms, l2 .15            .514  .176  .190
    #     l2 .03                        .591  .221  .194
    #     l2 .03, lr .3                 .558  .215  .177
    #     l2 .1 falling to .001         .596  .225  .193
    usual: ClassVar[Mapping[str, Any]] = {"bounded_norms": False, "l2": 0.1, "decay_end": 0.01}

    def __init__(
        self, entities: int, relations: int, dim: int, *, generator: torch.Generator, bounded_norms: bool = True
    ) -> None:
        super().__init__(entities, relations, dim)
        self.constrained = bounded_norms
        self.entity, self.entity_projection = (
            EntityTable(normal_rows(entities, dim, generator, over=dim**0.5)) for _ in range(2)
        )
        self.relation, self.relation_projection = (
            nn.Parameter(torch.randn(relations, dim, generator=generator) / dim**0.5) for _ in range(2)
        )
        self.entity_dropout, self.query_dropout = Dropout(), Dropout()
        if bounded_norms:
            self.constrain()

    @torch.no_grad()
    def constrain(self, entities: Tensor | None = None) -> None:
        for vectors in (self.relation, self.relation_projection):
            vectors.copy_(shortened(vectors))
        e = self.entity(entities)
        divide_rows(self.entity, entities, (norms(e) + self._along(entities, e).abs()).clamp(min=1.0))

    def score(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        h, t = (self._project(x, self.entity(x), relations) for x in (heads, tails))
        return -(h + F.embedding(relations, self.relation) - t).square().sum(-1)  # (batch,)

    def queries(self, side: Side, given: Tensor, relations: Tensor) -> Tensor:
        g, r_p = self.query_dropout(self._goal(side, given, relations)), self._r_p(relations)  # (batch, dim)
        along = (g * r_p).sum(-1, keepdim=True)
        last = [2 * along, -squared_norms(r_p).unsqueeze(1), -torch.ones_like(along)]
        return torch.cat([2 * g, -2 * r_p, *last], -1)  # (batch, 2 dim + 3)

    def keys(self, side: Side, entities: Tensor | None = None, relations: Tensor | None = None) -> Tensor:
        t = self.entity(entities)
        a = self._along(entities, t)
        return torch.cat([t, a * t, a, a.square(), squared_norms(t).unsqueeze(1)], -1)  # (candidates, 2 dim + 3)

    def offsets(self, side: Side, given: Tensor, relations: Tensor) -> Tensor:
        return -self._goal(side, given, relations).square().sum(-1)  # (batch,)

    def n3_norm(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        vectors = torch.cat([F.embedding(relations, self.relation), self._r_p(relations)])
        return super().n3_norm(heads, relations, tails) + vectors.abs().pow(3).sum()

    def _goal(self, side: Side, given: Tensor, relations: Tensor) -> Tensor:
        """Where the projected answer should be: h_r + r, or t_r - r.  # (batch, dim)"""
        x = self._project(given, self.entity_dropout(self.entity(given)), relations)
        r = F.embedding(relations, self.relation)
        return x + r if side == "tail" else x - r

    def _project(self, entities: Tensor, e: Tensor, relations: Tensor) -> Tensor:
        return e + self._along(entities, e) * self._r_p(relations)  # (batch, dim)  (r_p e_pᵀ + I) e

    def _along(self, entities: Tensor | None, e: Tensor) -> Tensor:
        """a = e_p · e, how far an entity moves along r_p.  # (entities, 1)"""
        return (self.entity_projection(entities) * e).sum(-1, keepdim=True)

    def _r_p(self, relations: Tensor) -> Tensor:
        return F.embedding(relations, self.relation_projection)  # (batch, dim)
