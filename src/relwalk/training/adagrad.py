"""Adagrad for gradients that name the rows they are about, with a rate per entry or one per row."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch
from torch import Tensor


class RowAdagrad(torch.optim.Optimizer):
    """x <- x - lr g / sqrt(Σ over steps of g²) (Duchi, Hazan, Singer 2011), of dense gradients and of sparse ones.

    A sparse gradient moves the rows it names and costs what they cost. With `rowwise`, g² is replaced by its mean over
    a row: a memory of one number per entity instead of d.
    """

    def __init__(
        self, parameters: Iterable[Any], lr: float = 0.1, *, rowwise: bool = False, fused: bool = False
    ) -> None:
        super().__init__(parameters, {"lr": lr})
        self.rowwise = rowwise

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for weights in group["params"]:
                if weights.grad is not None:
                    self._move(weights, weights.grad, group["lr"])

    def _move(self, weights: Tensor, gradient: Tensor, lr: float) -> None:
        state = self.state[weights]
        if not state:
            state["sum"] = weights.new_zeros(len(weights)) if self.rowwise else torch.zeros_like(weights)
        if gradient.is_sparse:
            gradient = gradient.coalesce()
            rows, values = gradient.indices()[0], gradient.values()
            sums = state["sum"].index_select(0, rows) + self._squares(values)
            state["sum"].index_copy_(0, rows, sums)
            weights.index_add_(0, rows, self._scaled(values, sums), alpha=-lr)
        else:
            state["sum"] += self._squares(gradient)
            weights.sub_(self._scaled(gradient, state["sum"]), alpha=lr)

    def _squares(self, gradient: Tensor) -> Tensor:
        return gradient.flatten(1).square().mean(1) if self.rowwise else gradient.square()

    def _scaled(self, gradient: Tensor, sums: Tensor) -> Tensor:
        rate = sums.sqrt() + 1e-10
        return gradient / (rate.view(-1, *[1] * (gradient.dim() - 1)) if self.rowwise else rate)


RowwiseAdagrad = partial(RowAdagrad, rowwise=True)
