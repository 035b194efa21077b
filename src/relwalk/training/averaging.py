"""The mean of the weights over epochs, often better than any of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from relwalk.mapped import MEMORY, Room, blocks
from relwalk.models.base import Scorer
from relwalk.models.orthogonal import nearest_orthogonal


class Average:
    """Stochastic weight averaging (Izmailov et al., UAI 2018): the mean of the weights at the end of some epochs.

    The mean of orthogonal matrices is replaced by the orthogonal matrix next to it.
    """

    def __init__(self, room: Room = MEMORY) -> None:
        self.room = room
        self.count = 0
        self.mean: dict[str, Tensor] = {}

    @torch.no_grad()
    def add(self, model: Scorer) -> None:
        self.count += 1
        for name, weights in model.state_dict().items():
            if name in self.mean and weights.is_floating_point():
                for mean, rows in zip(blocks(self.mean[name]), blocks(weights), strict=True):
                    mean += (rows - mean) / self.count
            else:  # the first, or a count that a batch norm keeps
                self.mean[name] = self.room.copy(weights)

    def weights(self, model: Scorer) -> dict[str, Tensor]:
        orthogonal = {id(weights) for weights in model.orthogonal()}
        kept = {name for name, weights in model.named_parameters() if id(weights) in orthogonal}
        return {name: nearest_orthogonal(mean) if name in kept else mean for name, mean in self.mean.items()}

    @contextmanager
    def within(self, model: Scorer) -> Iterator[None]:
        """Within, the model has the averaged weights."""
        own = {name: self.room.copy(weights) for name, weights in model.state_dict().items()}
        model.load_state_dict(self.weights(model))
        try:
            yield
        finally:
            model.load_state_dict(own)
