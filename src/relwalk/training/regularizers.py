"""What keeps the vectors small: frequency-weighted L2 and the N3 norm."""

from __future__ import annotations

import torch
from torch import Tensor

from relwalk.models.base import Scorer
from relwalk.training.common import CommonSettings


def regularization(
    model: Scorer, settings: CommonSettings, heads: Tensor, relations: Tensor, tails: Tensor, *, few: bool
) -> Tensor:
    """l2 (||h||² + ||t||²) + n3 (Σ|h|³ + Σ|t|³ + ...) summed over the triples of a step.

    Every triple counts, so frequent entities are held more firmly. For orthogonal relations the L2 term is what DURA
    (Zhang et al., NeurIPS 2020) becomes. Vectors are measured in the units in which the score is a log-probability
    (√d for RelWalk), so that one weight serves every dimension. `few` says that the step is about a few of the
    entities, and should cost what those cost.
    """
    unit = 2 * model.scale
    total = torch.zeros((), device=heads.device)
    if settings.l2:
        total = total + settings.l2 * unit * _weighted_norms(model, torch.cat([heads, tails]), few)
    if settings.n3:
        total = total + settings.n3 * unit**1.5 * model.n3_norm(heads, relations, tails)
    return total


def _weighted_norms(model: Scorer, entities: Tensor, few: bool) -> Tensor:
    """Σ ||e||² over the entities, each as often as it is named."""
    if few:
        distinct, times = torch.unique(entities, return_counts=True)
        norms = model.squared_norms(distinct)
    else:
        times, norms = torch.bincount(entities, minlength=model.entities), model.squared_norms()
    return torch.sum(times * norms)
