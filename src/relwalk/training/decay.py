"""What keeps the vectors small: frequency-weighted L2 and the N3 norm."""

from __future__ import annotations

import torch
from torch import Tensor

from relwalk.models.base import Scorer, squared_norms
from relwalk.training.settings import TrainingSettings


def decay(model: Scorer, settings: TrainingSettings, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
    """l2 (||h||² + ||t||²) + n3 (Σ|h|³ + Σ|t|³ + ...) summed over the triples of a step.

    Every triple counts, so frequent entities are held more firmly. For orthogonal relations the L2 term is what DURA
    (Zhang et al., NeurIPS 2020) becomes. Vectors are measured in the units in which the score is a log-probability
    (√d for RelWalk), so that one weight serves every dimension.
    """
    unit = 2 * model.scale
    total = torch.zeros((), device=heads.device)
    if settings.l2:
        times = torch.bincount(torch.cat([heads, tails]), minlength=len(model.table))
        total = total + settings.l2 * unit * (times * squared_norms(model.table)).sum()
    if settings.n3:
        total = total + settings.n3 * unit**1.5 * model.cubes(heads, relations, tails)
    return total
