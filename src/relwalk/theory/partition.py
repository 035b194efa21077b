"""The partition function of a knowledge vector: log Z_c = log Σ_e exp(e·c), over all entities or groups of them."""

from __future__ import annotations

import torch
from torch import Tensor

BLOCK = 1 << 24  # exponentials held at a time: 64 MB


@torch.no_grad()
def log_partition(entities: Tensor, directions: Tensor, groups: Tensor | None = None, block: int = BLOCK) -> Tensor:
    """log Z of every direction, in double precision.  # (directions,), or (groups, directions)

    `groups` (groups, entities) weighs the entities, so that the sums over several sets of them are one product;
    each must weigh at least one. The largest exponent is taken out of each direction: no norm overflows.
    """
    weights = torch.ones(1, len(entities)) if groups is None else groups.float()
    size = max(1, block // len(entities))
    parts = []
    for some in torch.split(directions, size):
        x = entities @ some.T  # (entities, some)
        top = x.amax(0)
        sums = weights @ x.sub_(top).exp_()  # (groups, some)
        # A group that is e^87 below the largest entity is lost to float32; it keeps the least sum there is.
        parts.append(sums.clamp(min=torch.finfo(torch.float32).tiny).double().log_() + top)
    result = torch.cat(parts, 1)
    return result[0] if groups is None else result
