"""The partition function of a knowledge vector, over all entities or groups of them.

    log Z_c = log Σ_e exp(e·c);      E_c Z_c = Σ_e B(|e|),      E_c Z_c² = Σ_(e, e') B(|e + e'|),

with B the exact spherical integral. Long vectors make Z_c so heavy-tailed that its mean over a thousand directions
is the luck of one of them: the exact moments are then the only ones to trust.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from relwalk.evaluation.estimate import Floats, own_generator
from relwalk.theory.sphere import log_integral, log_sphere_integral

BLOCK = 1 << 18  # exponentials held at a time: 1 MB, which the cache of a core holds
PAIRS = 1 << 19  # pairs of entities held at a time: 2 MB, near the core; 64 MB take three times as long


@torch.no_grad()
def log_partition(entities: Tensor, directions: Tensor, groups: Tensor | None = None, block: int = BLOCK) -> Tensor:
    """log Z of every direction, in double precision.  # (directions,), or (groups, directions)

    `groups` (groups, entities) weighs the entities, so that the sums over several sets of them are one product;
    each must weigh at least one. The largest exponent is taken out of each direction: no norm overflows.
    """
    weights = None if groups is None else groups.float().T
    size = max(1, block // len(entities))
    parts = []
    for some in torch.split(directions, size):
        x = some @ entities.T  # (some, entities)
        top = x.amax(1, keepdim=True)
        x.sub_(top).exp_()
        sums = x.sum(1, keepdim=True) if weights is None else x @ weights  # (some, groups)
        # A group that is e^87 below the largest entity is lost to float32; it keeps the least sum there is.
        parts.append(sums.clamp(min=torch.finfo(torch.float32).tiny).double().log_() + top)
    result = torch.cat(parts).T
    return result[0] if groups is None else result


def log_terms(entities: Tensor, blocks: int = 1) -> Floats:
    """log B(|e|) of every entity, of several blocks Σ_b log B(|e_b|): what it adds to E_c Z_c.  # (entities,)"""
    return log_integral(entities, blocks)


def log_mean_partition(entities: Tensor, blocks: int = 1) -> float:
    """log E_c Z_c, exactly."""
    return float(torch.logsumexp(torch.from_numpy(log_terms(entities, blocks)), 0))


def relative_variance(
    entities: Tensor, *, blocks: int = 1, pairs: int = 5000, knots: int = 20_000, seed: int = 0
) -> tuple[float, float]:
    """(floor², slope) of eps²(n) = floor² + slope / n, the relative variance of Z_c over n of these entities.

    With b the mean of B(|e|), q that of B(|e + e'|) / B(|e|) B(|e'|) over pairs (weighted so), and w that of
    B(2|e|) / b²: floor² = q - 1, slope = w - q. All pairs of a sample are one product; B is read off a table.
    """
    n, dim = entities.shape
    log_b = log_mean_partition(entities, blocks) - math.log(n)
    w = math.exp(min(700.0, log_mean_partition(2 * entities, blocks) - math.log(n) - 2 * log_b))
    chosen = entities[torch.randperm(n, generator=own_generator(seed, "pairs"))[:pairs]]
    if len(chosen) < 2:
        return 0.0, w - 1
    parts = chosen.view(-1, blocks, dim // blocks).transpose(0, 1) / math.sqrt(blocks)  # (blocks, chosen, width)
    squared = parts.square().sum(-1)  # (blocks, chosen)
    longest = 2 * float(squared.max().sqrt()) * (1 + 1e-6) + 1e-12
    table = torch.from_numpy(log_sphere_integral(np.linspace(0, longest, knots + 1), dim // blocks)).float()
    total, size = 0.0, max(1, PAIRS // (blocks * len(chosen)))
    for some, own in zip(torch.split(parts, size, dim=1), torch.split(squared, size, dim=1), strict=True):
        both = own.unsqueeze(2) + squared.unsqueeze(1)  # (blocks, some, chosen)
        norm = torch.baddbmm(both, some, parts.mT, alpha=2).clamp_(min=0).sqrt_()
        place = norm.mul_(knots / longest).clamp_(max=knots - 1e-3)
        low = place.long()
        logs = torch.lerp(table[low], table[low + 1], place - low).sum(0)
        total += float((logs - 2 * log_b).exp_().double().sum())
    twice = log_terms(2 * chosen, blocks) - 2 * log_b
    total -= float(np.exp(np.minimum(twice, 700)).sum())  # an entity with itself is no pair
    b = np.exp(log_terms(chosen, blocks) - log_b)
    q = total / float(b.sum() ** 2 - (b**2).sum())
    return q - 1, w - q
