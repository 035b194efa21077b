"""Orthogonal matrices: where they start, how they are kept, how far they are from being so."""

from __future__ import annotations

import torch
from torch import Tensor

from relwalk.errors import choose

TOLERANCE = 1e-6  # what `nearest_orthogonal` leaves of max |RᵀR - I|, in float32


def random_signs(count: int, dim: int, generator: torch.Generator) -> Tensor:
    """Diagonal matrices of random signs: commuting involutions of both determinants.  # (count, dim, dim)

    They learn far better than random rotations: all relations start in one shared basis.
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
    value exceeds sqrt(3). Matrices that a step threw further than that go through an SVD.
    """
    bound = _norm_bound(matrices)
    far = (bound >= 1.0) & bound.isfinite()  # what is not a number stays so, for the trainer to find
    if bool(far.any()):
        u, _, vh = torch.linalg.svd(matrices[far])
        matrices = matrices.clone()
        matrices[far] = u @ vh
    for _ in range(most_steps):
        off = defect(matrices)
        if float(off.abs().amax()) <= TOLERANCE:
            break
        matrices = torch.baddbmm(matrices, matrices, off, alpha=-0.5)
    return matrices


def _norm_bound(matrices: Tensor) -> Tensor:
    """An upper bound of the spectral norm of RᵀR - I: below 1, Newton-Schulz converges.  # (count,)"""
    return defect(matrices).abs().sum(-1).amax(-1)
