"""The keys of all entities, kept while the weights stay: to make them costs more than the product of one question."""

from __future__ import annotations

import torch
from torch import Tensor

from relwalk.graph.answers import Side
from relwalk.models.base import Scorer, as_product


class KeyCache:
    """`of(side)` are the keys of all entities on that side, made anew when a weight has changed since."""

    def __init__(self, model: Scorer) -> None:
        self.model = model
        self._made: dict[Side, tuple[object, Tensor]] = {}

    @torch.no_grad()
    def for_side(self, side: Side) -> Tensor:
        """(entities, width); not for a side where they depend on the relation."""
        model = as_product(self.model)
        assert model is not None and model.shares_keys(side)
        side = side if model.keys_by_side else "tail"
        weights = [(weight.data_ptr(), weight._version) for weight in model.parameters()]
        if side not in self._made or self._made[side][0] != weights:
            self._made[side] = weights, model.keys(side)
        return self._made[side][1]
