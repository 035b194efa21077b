"""Reciprocal relations: the head is asked for as the tail of the relation's inverse."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from relwalk.graph.answers import Side
from relwalk.models.base import ProductScorer, Scorer, as_product


class Reciprocal(Scorer):
    """A second set of relations, R⁻¹ beside R (Lacroix, Usunier, Obozinski: ICML 2018; Kazemi, Poole: NeurIPS 2018).

    (h, R, ?) is asked of R, and (?, R, t) of R⁻¹ as (t, R⁻¹, ?), each with weights of its own, which nothing ties to
    each other. A triple then has two scores; the one given for it is their mean:

        s = (f(h, R, t) + f(t, R⁻¹, h)) / 2
    """

    def __init__(self, base: Scorer) -> None:
        super().__init__(base.entities, base.relations // 2, base.dim)
        self.base, self.scale, self.lr = base, base.scale, base.lr
        self.constrained, self.grows = base.constrained, base.grows

    @property
    def title(self) -> str:
        return f"{self.base.title} with reciprocal relations"

    def score(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        there = self.base.score(heads, relations, tails)
        return (there + self.base.score(tails, relations + self.relations, heads)) / 2  # (batch,)

    def score_candidates(
        self, side: Side, given: Tensor, relations: Tensor, candidates: Tensor | None = None
    ) -> Tensor:
        return self.base.score_candidates("tail", given, self._asked(side, relations), candidates)

    def _asked(self, side: Side, relations: Tensor) -> Tensor:
        return relations if side == "tail" else relations + self.relations

    def score_relations(self, heads: Tensor, tails: Tensor) -> Tensor:
        there, back = self.base.score_relations(heads, tails), self.base.score_relations(tails, heads)
        return (there[:, : self.relations] + back[:, self.relations :]) / 2  # (batch, relations)

    def l2_norm(self, head_times: Tensor, tail_times: Tensor, entities: Tensor | None = None) -> Tensor:
        times = (head_times + tail_times) / 2  # (h, R, t) and (t, R⁻¹, h): each is a head once and a tail once
        return self.base.l2_norm(times, times, entities)

    def l2_of_relations(self, relations: Tensor) -> Tensor:
        there = self.base.l2_of_relations(relations)
        return (there + self.base.l2_of_relations(relations + self.relations)) / 2

    def n3_norm(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        return self.base.n3_norm(*self._both(heads, relations, tails)) / 2

    def dura(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        return self.base.dura(*self._both(heads, relations, tails)) / 2

    def _both(self, heads: Tensor, relations: Tensor, tails: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(h, R, t), then (t, R⁻¹, h)."""
        return torch.cat([heads, tails]), torch.cat([relations, relations + self.relations]), torch.cat([tails, heads])

    def penalty(self, relations: Tensor) -> Tensor:
        return self.base.penalty(torch.cat([relations, relations + self.relations]))

    def constrain(self, entities: Tensor | None = None) -> None:
        self.base.constrain(entities)

    def grow(self, heads: Tensor, relations: Tensor, tails: Tensor, generator: torch.Generator) -> None:
        self.base.grow(*self._both(heads, relations, tails), generator)

    def orthogonal(self) -> list[nn.Parameter]:
        return self.base.orthogonal()


class ReciprocalProduct(Reciprocal, ProductScorer):
    """The same of a model whose scores are products."""

    base: ProductScorer

    def __init__(self, base: ProductScorer) -> None:
        super().__init__(base)
        self.keys_by_relation = not base.shares_keys("tail")

    def queries(self, side: Side, given: Tensor, relations: Tensor) -> Tensor:
        return self.base.queries("tail", given, self._asked(side, relations))

    def keys(self, side: Side, entities: Tensor | None = None, relations: Tensor | None = None) -> Tensor:
        return self.base.keys("tail", entities, None if relations is None else self._asked(side, relations))

    def key_parts(self, side: Side) -> tuple[Tensor, ...]:
        return self.base.key_parts("tail")

    def offsets(self, side: Side, given: Tensor, relations: Tensor) -> Tensor | None:
        return self.base.offsets("tail", given, self._asked(side, relations))


def with_inverses(base: Scorer) -> Reciprocal:
    """The model with reciprocal relations; the second half of its relations become the inverses of the first."""
    product = as_product(base)
    return Reciprocal(base) if product is None else ReciprocalProduct(product)
