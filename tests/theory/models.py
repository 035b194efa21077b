"""Models whose matrices are known by hand."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from relwalk.models import RelWalk


def turn(degrees: float) -> Tensor:
    """A rotation of the plane."""
    a = math.radians(degrees)
    return torch.tensor([[math.cos(a), -math.sin(a)], [math.sin(a), math.cos(a)]])


def with_matrices(M: Tensor, *, entities: int = 5, soft_R1: Tensor | None = None, seed: int = 0) -> RelWalk:
    """A RelWalk with the given products M; soft when R1 is given too, so that M = R1 R2ᵀ for orthogonal R1."""
    model = RelWalk(
        entities,
        len(M),
        M.shape[-1],
        generator=torch.Generator().manual_seed(seed),
        orthogonality="exact" if soft_R1 is None else "soft",
    )
    with torch.no_grad():
        model.R2.copy_(M.mT if soft_R1 is None else M.mT @ soft_R1)
        if soft_R1 is not None:
            model.free_R1.copy_(soft_R1)
    return model
