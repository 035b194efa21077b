"""The unit sphere of R^d: where the knowledge vector c lives.

    E_c exp(v·c) = Γ(d/2) (2/|v|)^(d/2-1) I_(d/2-1)(|v|) = 0F1(; d/2; |v|²/4),      c uniform,

which for |v|² << d^(3/2) is nearly exp(|v|²/2d): the step of the theorem. The next term of its logarithm is
-|v|⁴ / (4 d² (d + 2)). Directions can also be drawn from the density that is tilted by exp(v·c), the von
Mises-Fisher distribution: that is where exp(v·c) has its mass when |v| is large and uniform draws miss it.

Several walkers (`blocks` of RelWalk) have a part of c each, uniform on a sphere of radius 1/√blocks, so that |c| = 1
and exp(|v|²/2d) stays: what is said above then holds of every part v_b/√blocks, and the logarithms add up.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from scipy.special import gammaln, ive
from torch import Tensor

from relwalk.errors import RelWalkError
from relwalk.evaluation.estimate import Floats


def uniform_directions(count: int, dim: int, generator: torch.Generator, blocks: int = 1) -> Tensor:
    """Points drawn uniformly from the unit sphere, or from a product of smaller ones.  # (count, dim)"""
    return _joined(_unit(torch.randn(count, blocks, dim // blocks, generator=generator)))


def log_integral(v: Tensor, blocks: int = 1) -> Floats:
    """log E_c exp(v·c) of every row of v.  # (rows,)"""
    parts = _parted(v.double(), blocks)  # (rows, blocks, width)
    return np.asarray(log_sphere_integral(parts.norm(dim=-1).numpy(), parts.shape[-1]).sum(-1))


def _parted(v: Tensor, blocks: int) -> Tensor:
    """The parts of vectors that meet unit vectors: v·c = Σ_b (v_b/√blocks)·u_b.  # (..., blocks, width)"""
    return v.reshape(*v.shape[:-1], blocks, -1) / math.sqrt(blocks)


def _joined(directions: Tensor) -> Tensor:
    """A direction for every block as one vector of length 1.  # (..., dim)"""
    return directions.flatten(-2) / math.sqrt(directions.shape[-2])


def log_sphere_integral(norms: Floats, dim: int) -> Floats:
    """log E_c exp(v·c) for vectors of the given norms, exact to rounding at any dimension.

    `ive` carries e^(-x), so it never overflows; where it underflows (|v| far below d) the series of 0F1 is short.
    """
    if dim < 1:
        raise RelWalkError(f"a sphere of dimension {dim}: expected at least 1")
    x = np.asarray(norms, np.float64)
    order = dim / 2 - 1
    result = np.zeros_like(x)
    bessel = np.where(x > 0, ive(order, x), 0.0)
    direct = np.isfinite(bessel) & (bessel > 1e-280)
    at = x[direct]
    result[direct] = gammaln(dim / 2) - order * np.log(at / 2) + np.log(bessel[direct]) + at
    rest = ~direct & (x > 0)
    result[rest] = _log_series(x[rest], dim)
    return result


def _log_series(x: Floats, dim: int) -> Floats:
    """log Σ_k (x²/4)^k / (k! (d/2)_k): all terms are positive, so logarithms lose nothing."""
    if len(x) == 0:
        return x
    largest = float(x.max())
    peak = (math.hypot(dim / 2, largest) - dim / 2) / 2  # where the terms begin to shrink
    k = np.arange(int(peak + 12 * math.sqrt(peak + 1)) + 40)
    terms = 2 * np.outer(np.log(x / 2), k) - gammaln(k + 1) - gammaln(dim / 2 + k) + gammaln(dim / 2)
    top = terms.max(axis=1, keepdims=True)
    return np.asarray(top[:, 0] + np.log(np.exp(terms - top).sum(axis=1)))


def drawn_directions(bias: Tensor | None, count: int, dim: int, generator: torch.Generator, blocks: int = 1) -> Tensor:
    """Knowledge vectors of a relation: uniform, or drawn towards its bias.  # (count, dim)"""
    if bias is None:
        return uniform_directions(count, dim, generator, blocks)
    return tilted_directions(bias.unsqueeze(0), count, generator, blocks)[0]


def tilted_directions(v: Tensor, count: int, generator: torch.Generator, blocks: int = 1) -> Tensor:
    """Directions with density proportional to exp(v·c), for each row of v.  # (rows, count, dim)"""
    parts = _parted(v, blocks)  # (rows, blocks, width)
    drawn = _tilted(parts.flatten(0, 1), count, generator)
    return _joined(drawn.view(*parts.shape[:2], count, -1).transpose(1, 2))


def _tilted(v: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """The same on one sphere: Wood's rejection (1994) for the component w along v; the rest is uniform in the
    directions square to v."""
    rows, dim = v.shape
    kappa = v.norm(dim=-1, keepdim=True).double()  # (rows, 1)
    axis = torch.where(kappa > 0, v / kappa.clamp(min=1e-30), torch.eye(1, dim).to(v)).to(v.dtype)
    if dim == 1:  # two points: +1 with odds e^(2 kappa)
        plus = torch.rand(rows, count, generator=generator) < torch.sigmoid(2 * kappa)
        return axis.unsqueeze(1) * torch.where(plus, 1.0, -1.0).unsqueeze(-1).to(v.dtype)
    w = _tilted_heights(kappa.expand(rows, count).flatten(), dim, generator).view(rows, count, 1)
    across = _unit(torch.randn(rows, count, dim, generator=generator, dtype=v.dtype))
    across = _square_to(across, axis.unsqueeze(1))
    return w.to(v.dtype) * axis.unsqueeze(1) + (1 - w.square()).clamp(min=0).sqrt().to(v.dtype) * across


def _tilted_heights(kappa: Tensor, dim: int, generator: torch.Generator) -> Tensor:
    m = dim - 1
    b = m / (2 * kappa + (4 * kappa.square() + m * m).sqrt())
    x0 = (1 - b) / (1 + b)
    bar = kappa * x0 + m * torch.log1p(-x0.square())
    w = torch.zeros_like(kappa)
    pending = torch.arange(len(kappa))
    while len(pending):
        k, b_, x_ = kappa[pending], b[pending], x0[pending]
        # (1 + first coordinate of a uniform direction) / 2 is Beta((d-1)/2, (d-1)/2), the proposal's law.
        z = (1 + uniform_directions(len(pending), dim, generator)[:, 0].double()) / 2
        u = torch.rand(len(pending), generator=generator, dtype=torch.float64).clamp(min=1e-300)
        height = (1 - (1 + b_) * z) / (1 - (1 - b_) * z)
        accepted = k * height + m * torch.log1p(-x_ * height) - bar[pending] >= u.log()
        w[pending[accepted]] = height[accepted]
        pending = pending[~accepted]
    return w


def displaced(c: Tensor, step: float, generator: torch.Generator, blocks: int = 1) -> Tensor:
    """c' with |c' - c| = step, in a uniformly random direction: the slow walk, of all blocks alike.  # (..., dim)"""
    if not 0 <= step <= 2:
        raise RelWalkError(f"step size {step}: two points of the unit sphere are from 0 to 2 apart")
    if c.shape[-1] == 1 or step == 0:  # a sphere of two points has no small steps
        return c
    angle = 2 * math.asin(step / 2)
    u = c.reshape(*c.shape[:-1], blocks, -1) * math.sqrt(blocks)  # (..., blocks, width) unit vectors
    across = _square_to(torch.randn(u.shape, generator=generator, dtype=c.dtype), u)
    return _joined(math.cos(angle) * u + math.sin(angle) * across)


def _square_to(x: Tensor, axis: Tensor) -> Tensor:
    return _unit(x - (x * axis).sum(-1, keepdim=True) * axis)


def _unit(x: Tensor) -> Tensor:
    return torch.as_tensor(x / x.norm(dim=-1, keepdim=True).clamp(min=1e-30))
