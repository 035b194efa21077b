"""The keys of all entities, kept while the weights stay: to make them costs more than the product of one question."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import torch
from torch import Tensor

from relwalk.graph.answers import Side
from relwalk.models.base import ProductScorer, Scorer, as_product

KEPT = 1 << 23  # numbers, 32 MB
FEW = 4  # questions


class KeyCache:
    """The keys of all entities on a side, made anew when a weight has changed since, as parts that stand side by side:
    what a table has needs no copy."""

    def __init__(self, model: Scorer) -> None:
        self.model = model
        self._made: dict[Side, tuple[object, tuple[Tensor, ...]]] = {}

    def products(self, side: Side, queries: Tensor) -> Tensor:
        """Queries times the keys.  # (batch, entities)"""
        parts = self.parts(side)
        own = torch.split(queries, [part.shape[1] for part in parts], 1)
        if 1 < len(queries) <= FEW:  # a product of so few rows takes two or three times as long as of as many columns
            scores = (parts[0] @ own[0].T).T.contiguous()
        else:
            scores = own[0] @ parts[0].T
        for query, part in zip(own[1:], parts[1:], strict=True):
            scores.addmm_(query, part.T)
        return scores

    @torch.no_grad()
    def parts(self, side: Side) -> tuple[Tensor, ...]:
        """(entities, width) each; not for a side where they depend on the relation."""
        model = as_product(self.model)
        assert model is not None and model.shares_keys(side)
        side = side if model.keys_by_side else "tail"
        weights = [(weight.data_ptr(), weight._version) for weight in model.parameters()]
        if side not in self._made or self._made[side][0] != weights:
            self._made[side] = weights, tuple(part.detach() for part in model.key_parts(side))
        return self._made[side][1]


class KeyBlocks:
    """The keys of candidates of a model whose entities go by blocks, to be gone through many times.

    So many as fit into `KEPT` numbers are made once; more of them are made each time, and never held together.
    """

    def __init__(self, model: ProductScorer, side: Side, entities: Tensor | None, relation: Tensor | None) -> None:
        self.model, self.side, self.entities, self.relation = model, side, entities, relation
        self._kept: list[Tensor] | None = None

    def __len__(self) -> int:
        return self.model.entities if self.entities is None else len(self.entities)

    def __iter__(self) -> Iterator[Tensor]:
        if self._kept is not None:
            return iter(self._kept)
        blocks = self.model.key_blocks(self.side, self.entities, self.relation)
        if len(self) * (self.model.dim + 1) > KEPT:
            return blocks
        self._kept = list(blocks)
        return iter(self._kept)

    @cached_property
    def longest(self) -> Tensor:
        """The length of the longest key."""
        return torch.stack([longest_vector(keys) for keys in self]).amax()


def longest_vector(*parts: Tensor) -> Tensor:
    """The length of the longest row of parts that stand side by side."""
    lengths = torch.stack([torch.linalg.vector_norm(part, dim=1) for part in parts])  # (parts, rows)
    longest: Tensor = lengths.square_().sum(0).amax().sqrt()  # vector_norm is slow along columns
    return longest
