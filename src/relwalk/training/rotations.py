"""Adagrad for orthogonal matrices: steps along rotations, one adaptive rate per matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from relwalk.models.orthogonal import nearest_orthogonal

SMALL = 0.004  # (I - A + A²/2) is orthogonal up to A⁴/4, so to 4e-6 while ||A²|| is below this
POLISH_EVERY = 8  # steps after which rounding is taken out
FARTHEST = 1.0  # ||ηA|| of one step at most: the first ones, with nothing to compare with, would go anywhere


class OrthogonalAdagrad(torch.optim.Optimizer):
    """Keeps stacks of orthogonal matrices (count, d, d) orthogonal while it follows their gradient G.

    The part of G that leads along the orthogonal group is R A with A = (RᵀG - GᵀR) / 2, skew. The step is

        R <- R (I - ηA + η²A²/2),      η = lr √d / sqrt(Σ over steps of ||A||²),

    a rotation up to fourth order, and the nearest orthogonal matrix to it where it is not a small one. The rate is one
    number per matrix: a rate per entry would depend on the basis, and would turn a small rotation into a large change
    that is none. Matrices without a gradient are not touched.
    """

    def __init__(self, parameters: Iterable[Tensor], lr: float) -> None:
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for matrices in group["params"]:
                if matrices.grad is not None:
                    self._rotate(matrices, matrices.grad, group["lr"])

    def _rotate(self, matrices: Tensor, gradient: Tensor, lr: float) -> None:
        state: dict[str, Any] = self.state[matrices]
        if not state:
            state["step"] = torch.zeros(())
            state["sum"] = torch.zeros(len(matrices), device=matrices.device)
        state["step"] += 1
        touched = torch.linalg.vector_norm(gradient.flatten(1), dim=1).nonzero().squeeze(1)
        if len(touched) == 0:
            return
        R, G = matrices.index_select(0, touched), gradient.index_select(0, touched)
        A = R.mT @ G
        A = (A - A.mT) / 2  # (touched, d, d)
        size = A.square().sum((1, 2))
        noise = 1e-8 * G.square().sum((1, 2))  # a gradient that leads off the group leaves only rounding in A
        state["sum"][touched] += size + noise
        rate = lr * A.shape[-1] ** 0.5 / (state["sum"][touched].sqrt() + 1e-10)
        A *= torch.minimum(rate, FARTHEST / (size.sqrt() + 1e-10)).view(-1, 1, 1)
        square = A @ A
        turned = torch.baddbmm(R, R, A.sub_(square, alpha=0.5), alpha=-1)
        matrices[touched] = self._polish(turned, torch.linalg.matrix_norm(square), int(state["step"]))

    def _polish(self, turned: Tensor, size: Tensor, step: int) -> Tensor:
        """Make orthogonal what a step left less than so: large rotations now, rounding every few steps."""
        if step % POLISH_EVERY == 0:
            return nearest_orthogonal(turned)
        large = (size > SMALL).nonzero().squeeze(1)
        if len(large):
            turned[large] = nearest_orthogonal(turned[large])
        return turned
