"""Hidden dimensions: orthogonal matrices that are larger than the vectors of the entities.

A walker may think in more dimensions than entities have coordinates in. A relation then turns coordinate i of a head by
an angle θ_i towards a hidden dimension of its own, and coordinate i of a tail by φ_i towards another one:

    R1ᵀh = [cos θ h, sin θ h, 0],      R2ᵀt = [M(cos φ t), 0, sin φ t],      M orthogonal.

Both keep all lengths, and all that head and tail have to do with each other is hᵀ diag(cos θ) M diag(cos φ) t: a matrix
that need not be orthogonal, in the corner of one that is. What is here writes that larger matrix out.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

EVENING = 16  # coordinates that even out lengths, at most: with few, Z depends on how much of c they have
RADIANS = 0.1  # of an angle of 1: rates that suit the vectors of entities then suit angles as well


def random_angles(relations: int, dim: int, generator: torch.Generator) -> Tensor:
    """Where angles start: anywhere from 0 to π, so that coordinates count for anything from 1 to -1."""
    return torch.rand(relations, dim, generator=generator).mul_(math.pi / RADIANS)  # (relations, dim)


def visible(angles: Tensor) -> Tensor:
    """What stays visible of coordinates that are turned by such angles: cos θ.  # as `angles`"""
    return torch.cos(RADIANS * angles)


def turned_away(angles: Tensor) -> Tensor:
    """What of them is hidden: sin θ.  # as `angles`"""
    return torch.sin(RADIANS * angles)


def evening(width: int) -> int:
    """How many coordinates even out lengths, beside so many others."""
    return min(width, EVENING)


def same_lengths(e: Tensor) -> Tensor:
    """Vectors with more coordinates, which make all as long as the longest: [e, √(max ||e||² - ||e||²) u], in equal
    parts of all blocks.

    u is a direction at random: were it the same for all, Z would depend on whether c is near it, and p(h, t | R) be
    that of the vectors without. No score sees it.

    # e (entities, blocks, width), the result (entities, blocks, width + more)
    """
    entities, blocks, width = e.shape
    squares = e.square().sum((1, 2), keepdim=True)
    missing = ((squares.max() - squares).clamp_min(0) / blocks).sqrt()  # (entities, 1, 1)
    u = torch.randn(entities, blocks, evening(width), generator=torch.Generator().manual_seed(0)).to(e)
    return torch.cat([e, missing * u / u.norm(dim=-1, keepdim=True)], -1)


def with_evening(M: Tensor, head_angles: Tensor, tail_angles: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The same with the coordinates that even out lengths, of which nothing is visible.

    # (..., width + more, width + more), (..., width + more) twice
    """
    width = M.shape[-1]
    more = evening(width)
    larger = F.pad(M, (0, more, 0, more))
    larger.diagonal(dim1=-2, dim2=-1)[..., width:] = 1.0
    head, tail = (F.pad(angles, (0, more), value=math.pi / 2 / RADIANS) for angles in (head_angles, tail_angles))
    return larger, head, tail


def unfolded(M: Tensor, head_angles: Tensor, tail_angles: Tensor) -> Tensor:
    """R1 R2ᵀ of what is visible, hidden for heads and hidden for tails, as many of each: an orthogonal matrix.

        [  cos θ M cos φ   sin θ   -cos θ M sin φ ]
        [ -sin θ M cos φ   cos θ    sin θ M sin φ ]
        [          sin φ       0            cos φ ]

    # M (..., width, width), angles (..., width), the result (..., 3 width, 3 width)
    """
    width = M.shape[-1]
    i = torch.arange(width, device=M.device)
    cos, sin = visible(head_angles), turned_away(head_angles)
    of_tails = visible(tail_angles).unsqueeze(-2), turned_away(tail_angles).unsqueeze(-2)  # of columns
    whole = M.new_zeros(*M.shape[:-2], 3, width, 3, width)
    for row, of_heads in enumerate((cos, -sin)):
        turned = of_heads.unsqueeze(-1) * M
        whole[..., row, :, 0, :], whole[..., row, :, 2, :] = turned * of_tails[0], -turned * of_tails[1]
    whole[..., 0, i, 1, i], whole[..., 1, i, 1, i] = sin, cos
    whole[..., 2, i, 0, i], whole[..., 2, i, 2, i] = turned_away(tail_angles), visible(tail_angles)
    return whole.view(*M.shape[:-2], 3 * width, 3 * width)


def unfolded_bias(v: Tensor, head_angles: Tensor) -> Tensor:
    """R1 [v, 0, 0], where R1 is turned back to the identity: [cos θ v, -sin θ v, 0].  # (..., 3 width)"""
    return torch.cat([visible(head_angles) * v, -turned_away(head_angles) * v, torch.zeros_like(v)], -1)
