"""Scores made a block of rows at a time, so that what is held on the way does not grow with the batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

NUMBERS = 1 << 22  # held at a time, about


def in_blocks(
    function: Callable[..., Tensor], rows: Sequence[Tensor], shared: Sequence[Tensor] = (), *, numbers: int
) -> Tensor:
    """`function(*rows, *shared)`, whose rows do not depend on each other, a block of rows at a time.

    `numbers` is how many the function makes on the way to one row of its result. They are not kept for the gradient:
    a block is made again on the way back.
    """
    size = max(1, NUMBERS // max(1, numbers))
    parts = zip(*(torch.split(x, size) for x in rows), strict=True)
    made: list[Tensor] = [_MadeAgain.apply(function, *part, *shared) for part in parts]  # type: ignore[no-untyped-call]
    return made[0] if len(made) == 1 else torch.cat(made)


class _MadeAgain(torch.autograd.Function):
    """Keeps what goes into a function, and computes the rest a second time for the gradient."""

    @staticmethod
    def forward(ctx: Any, function: Callable[..., Tensor], *tensors: Tensor) -> Tensor:
        ctx.function = function
        ctx.save_for_backward(*tensors)
        return function(*tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        needed: tuple[bool, ...] = ctx.needs_input_grad[1:]
        leaves = [x.detach().requires_grad_(n) for x, n in zip(ctx.saved_tensors, needed, strict=True)]
        with torch.enable_grad():
            again = ctx.function(*leaves)
        found = iter(torch.autograd.grad(again, [x for x in leaves if x.requires_grad], grads[0]))
        return (None, *(next(found) if n else None for n in needed))
