"""Unstructured: entities that are linked lie together, by whatever relation."""

from __future__ import annotations

import torch
from torch import Tensor

from relwalk.graph.answers import Side
from relwalk.models.base import ProductScorer
from relwalk.models.tables import (
    Dropout,
    EntityTable,
    and_squared_norms,
    normal_rows,
    with_constant,
    with_squared_norms,
)


class Unstructured(ProductScorer):
    """The unstructured model, UM (Bordes, Glorot, Weston, Bengio: AISTATS 2012, Machine Learning 2014).

    TransE without translations: relations have no weights, so what it reaches is what can be known without them. The
    entity that is given is its own best answer.

        s = -||h - t||² = [2 h, -1] · [t, ||t||²] - ||h||²
    """

    paper = "Bordes, Glorot, Weston, Bengio: AISTATS 2012"
    formula = "-||h - t||²"
    expresses = ("symmetry",)
    # Nothing is usual but the defaults. Valid MRR on the graphs of `TransE.usual`, d = 64, 30 epochs, seed 0:
    #
    #     l2 .15                        .221  .061  .153
    #     l2 .1 falling to .001         .212  .061  .156
    #     the same, batches of 256      .211  .062  .156
    #     the same, lr .3               .211  .059  .155

    def __init__(self, entities: int, relations: int, dim: int, *, generator: torch.Generator) -> None:
        super().__init__(entities, relations, dim)
        self.entity = EntityTable(normal_rows(entities, dim, generator, over=dim**0.5))
        self.entity_dropout, self.query_dropout = Dropout(), Dropout()

    def score(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        return -(self.entity(heads) - self.entity(tails)).square().sum(-1)  # (batch,)

    def queries(self, side: Side, given: Tensor, relations: Tensor) -> Tensor:
        x = self.entity_dropout(self.entity(given))  # (batch, dim)
        return with_constant(2 * self.query_dropout(x), -1.0)  # (batch, dim + 1)

    def keys(self, side: Side, entities: Tensor | None = None, relations: Tensor | None = None) -> Tensor:
        return with_squared_norms(self.entity(entities))  # (candidates, dim + 1)

    def key_parts(self, side: Side) -> tuple[Tensor, ...]:
        return and_squared_norms(self.entity())  # (entities, dim), (entities, 1)

    def offsets(self, side: Side, given: Tensor, relations: Tensor) -> Tensor:
        return -self.entity_dropout(self.entity(given)).square().sum(-1)  # (batch,)
