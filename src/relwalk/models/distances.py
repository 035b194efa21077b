"""L1 distances to many candidates, in memory of the size of the answer."""

from __future__ import annotations

import torch
from torch import Tensor


def l1_distances(goals: Tensor, points: Tensor) -> Tensor:
    """Σ_i |goal_i - point_i| of each goal (batch, dim) to every point.  # (batch, n)

    `points` are (n, dim), the same for every goal, or (batch, n, dim), its own for each. No difference of two vectors
    is kept, neither here nor for the gradient: `cdist` makes them again on the way back.
    """
    if points.dim() == 2:
        return torch.cdist(goals, points, p=1.0)
    return torch.cdist(goals.unsqueeze(1), points, p=1.0).squeeze(1)
