"""Hidden dimensions: orthogonal matrices that are larger than the vectors of the entities.

A walker may think in more dimensions than entities have coordinates in. A relation then turns coordinate i of a head by
an angle θ_i towards a hidden dimension of its own, and coordinate i of a tail by φ_i towards another one:

    R1ᵀh = [cos θ h, sin θ h, 0],      R2ᵀt = [Mᵀ(cos φ t), 0, sin φ t],      M orthogonal.

Both keep all lengths, and all that head and tail have to do with each other is hᵀ diag(cos θ) M diag(cos φ) t: a matrix
that need not be orthogonal, in the corner of one that is. What is here writes that larger matrix out.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

RADIANS = 0.1  # of an angle of 1: rates that suit the vectors of entities then suit angles as well


def random_angles(relations: int, dim: int, generator: torch.Generator) -> Tensor:
    """Where angles start: anywhere from 0 to π, so that coordinates count for anything from 1 to -1."""
    return torch.rand(relations, dim, generator=generator).mul_(math.pi / RADIANS)  # (relations, dim)


def visible(angles: Tensor) -> Tensor:
    """What stays visible of coordinates that are turned by such angles: cos θ.  # as `angles`"""
    return torch.cos(RADIANS * angles)


def same_lengths(e: Tensor) -> Tensor:
    """Vectors with one more coordinate, which makes all as long as the longest.  # (entities, ..., width + 1)"""
    squares = e.square().sum(-1, keepdim=True)  # (entities, ..., 1)
    return torch.cat([e, (squares.max(0).values - squares).clamp_min(0).sqrt()], -1)


def one_more(angles: Tensor, matrices: Tensor) -> tuple[Tensor, Tensor]:
    """Angles and matrices for one more coordinate, of which nothing is visible.  # (..., width + 1), squares of that"""
    away = angles.new_full((*angles.shape[:-1], 1), math.pi / 2 / RADIANS)
    larger = torch.nn.functional.pad(matrices, (0, 1, 0, 1))
    larger[..., -1, -1] = 1.0
    return torch.cat([angles, away], -1), larger


def unfolded(M: Tensor, head_angles: Tensor, tail_angles: Tensor) -> Tensor:
    """The whole orthogonal matrix of what is visible, hidden for heads and hidden for tails, as many of each.

    # M (..., width, width), angles (..., width), the result (..., 3 width, 3 width)
    """
    width = M.shape[-1]
    eye = torch.eye(width, dtype=M.dtype, device=M.device).expand_as(M)
    middle = torch.zeros(*M.shape[:-2], 3, width, 3, width, dtype=M.dtype, device=M.device)
    middle[..., 0, :, 0, :], middle[..., 1, :, 1, :], middle[..., 2, :, 2, :] = M, eye, eye
    middle = middle.reshape(*M.shape[:-2], 3 * width, 3 * width)
    return turned(head_angles, 1) @ middle @ turned(tail_angles, 2).mT


def turned(angles: Tensor, towards: int) -> Tensor:
    """Turns what is visible towards the hidden coordinates, the first (1) or the second (2) as many.

    # angles (..., width), the result (..., 3 width, 3 width)
    """
    cosines, sines = visible(angles), torch.sin(RADIANS * angles)
    width = angles.shape[-1]
    i = torch.arange(width, device=angles.device)
    whole = torch.eye(3 * width, dtype=angles.dtype, device=angles.device).repeat(*angles.shape[:-1], 1, 1)
    j = i + towards * width
    whole[..., i, i], whole[..., j, j] = cosines, cosines
    whole[..., i, j], whole[..., j, i] = sines, -sines
    return whole
