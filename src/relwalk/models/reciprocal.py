"""Reciprocal relations: the head is asked for as the tail of the relation's inverse."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from relwalk.models.base import ProductScorer, Queries


class Reciprocal(ProductScorer):
    """A second set of relations, R⁻¹ beside R (Lacroix, Usunier, Obozinski: ICML 2018; Kazemi, Poole: NeurIPS 2018).

    (h, R, ?) is asked of R, and (?, R, t) of R⁻¹ as (t, R⁻¹, ?), each with weights of its own, which nothing ties to
    each other. A triple then has two scores; the one given for it is their mean:

        s = (f(h, R, t) + f(t, R⁻¹, h)) / 2
    """

    def __init__(self, base: ProductScorer) -> None:
        super().__init__(base.entities, base.relations // 2, base.dim)
        self.base, self.scale, self.lr = base, base.scale, base.lr

    @property
    def title(self) -> str:
        return f"{self.base.title} with reciprocal relations"

    @property
    def entity(self) -> nn.Parameter:  # type: ignore[override]
        return self.base.entity

    @property
    def table(self) -> Tensor:
        return self.base.table

    @contextmanager
    def using(self, table: Tensor) -> Iterator[None]:
        with self.base.using(table):
            yield

    def score(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        there = self.base.score(heads, relations, tails)
        return (there + self.base.score(tails, relations + self.relations, heads)) / 2  # (batch,)

    def tail_queries(self, heads: Tensor, relations: Tensor) -> Queries:
        return self.base.tail_queries(heads, relations)

    def head_queries(self, relations: Tensor, tails: Tensor) -> Queries:
        return self.base.tail_queries(tails, relations + self.relations)

    def score_relations(self, heads: Tensor, tails: Tensor) -> Tensor:
        there, back = self.base.score_relations(heads, tails), self.base.score_relations(tails, heads)
        return (there[:, : self.relations] + back[:, self.relations :]) / 2  # (batch, relations)

    def cubes(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        there = self.base.cubes(heads, relations, tails)
        return (there + self.base.cubes(tails, relations + self.relations, heads)) / 2

    def penalty(self, relations: Tensor) -> Tensor:
        return self.base.penalty(torch.cat([relations, relations + self.relations]))

    def orthogonal(self) -> list[nn.Parameter]:
        return self.base.orthogonal()
