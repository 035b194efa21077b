"""Orthogonal matrices: where they start, how they are kept, how far they are from being so."""

from __future__ import annotations

import torch
from torch import Tensor

from relwalk.errors import choose

TOLERANCE = 4e-6  # the most that `nearest_orthogonal` leaves of ||RᵀR - I||, but for rounding


def random_signs(count: int, dim: int, generator: torch.Generator) -> Tensor:
    """Diagonal matrices of random signs: commuting involutions of both determinants.  # (count, dim, dim)

    All relations start in one shared basis. Whether that helps depends on the graph and the optimiser.
    """
    signs = torch.randint(0, 2, (count, dim), generator=generator).mul_(2).sub_(1)
    return torch.diag_embed(signs.to(torch.get_default_dtype()))


def random_rotations(count: int, dim: int, generator: torch.Generator) -> Tensor:
    """Uniform on O(d), both components: QR of Gaussian matrices with the sign ambiguity removed."""
    q, r = torch.linalg.qr(torch.randn(count, dim, dim, generator=generator))
    return torch.as_tensor(q * r.diagonal(dim1=-2, dim2=-1).sign().unsqueeze(-2))


def identities(count: int, dim: int, generator: torch.Generator) -> Tensor:
    return torch.eye(dim).repeat(count, 1, 1)


STARTS = {"signs": random_signs, "rotations": random_rotations, "identity": identities}


def start(name: str, count: int, dim: int, generator: torch.Generator) -> Tensor:
    """The matrices a training begins with.  # (count, dim, dim)"""
    return choose("start", name, STARTS)(count, dim, generator)


def block_diagonal(matrices: Tensor) -> Tensor:
    """Stacks of blocks (count, blocks, width, width) as one matrix each, zero elsewhere; others as they are.

    # (count, dim, dim)
    """
    if matrices.dim() == 3:
        return matrices
    count, blocks, width, _ = matrices.shape
    whole = matrices.new_zeros(count, blocks, width, blocks, width)
    each = torch.arange(blocks, device=matrices.device)
    whole[:, each, :, each] = matrices.transpose(0, 1)
    return whole.view(count, blocks * width, blocks * width)


def defect(matrices: Tensor) -> Tensor:
    """RᵀR - I, zero when R is orthogonal.  # (..., dim, dim)"""
    return matrices.mT @ matrices - torch.eye(matrices.shape[-1], dtype=matrices.dtype, device=matrices.device)


def soft_penalty(matrices: Tensor) -> Tensor:
    """||RᵀR - I||² summed over the matrices: the paper's regulariser."""
    return defect(matrices).square().sum()


@torch.no_grad()
def nearest_orthogonal(matrices: Tensor, most_steps: int = 12) -> Tensor:
    """The orthogonal matrix next to each given one (its polar factor).  # (..., dim, dim)

    Newton-Schulz, R <- R (3I - RᵀR) / 2, needs products only and converges quadratically while no singular
    value exceeds sqrt(3). Matrices further off than that go through an SVD. A step is made only for those that
    still need it.
    """
    result = matrices.flatten(0, -3).clone()
    pending = torch.arange(len(result), device=matrices.device)
    for _ in range(most_steps):
        current = result.index_select(0, pending) if len(pending) < len(result) else result
        off = defect(current)
        size = torch.linalg.matrix_norm(off)  # (pending,) Frobenius: at least the spectral norm
        far = (size >= 0.9) & size.isfinite()  # what is not a number stays so, for the trainer to find
        closer = torch.baddbmm(current, current, off, alpha=-0.5)
        if bool(far.any()):
            closer[far] = _polar_factor(current[far])
        result[pending] = closer
        pending = pending[far | (0.75 * size.square() > TOLERANCE)]  # what the step left of the defect
        if len(pending) == 0:
            break
    return result.view(matrices.shape)


def _polar_factor(matrices: Tensor) -> Tensor:
    u, _, vh = torch.linalg.svd(matrices)
    return torch.as_tensor(u @ vh)
