"""What a step minimises, from scores alone.

    OBJECTIVES[name].loss(positive, negative, scale, margin) -> loss of each positive  # (batch,)

`positive` (batch,) and `negative` (batch, count) are scores; `scale` turns a score into a log-probability
(1/2d for RelWalk); `margin` is in units of the score: 2d log η, where η is how many times likelier than a false
triple a true one should be. An objective is one function here and one line in OBJECTIVES.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Objective:
    loss: Callable[[Tensor, Tensor, float, float], Tensor]
    sparse: bool  # most negatives get no gradient: worth a second, smaller pass through the model


def margin(positive: Tensor, negative: Tensor, scale: float, margin: float) -> Tensor:
    """Σ_k max(0, margin + s_k - s): the paper's loss against every negative."""
    return torch.relu(margin + negative - positive.unsqueeze(1)).sum(1)


def hardest(positive: Tensor, negative: Tensor, scale: float, margin: float) -> Tensor:
    """max(0, margin + max_k s_k - s): the hardest of the negatives alone (the paper's appendix)."""
    return torch.relu(margin + negative.amax(1) - positive)


def mean(positive: Tensor, negative: Tensor, scale: float, margin: float) -> Tensor:
    """max(0, margin + mean_k s_k - s): the negatives averaged before the hinge (the authors' code)."""
    return torch.relu(margin + negative.mean(1) - positive)


def softmax(positive: Tensor, negative: Tensor, scale: float, margin: float) -> Tensor:
    """-log of the positive's share of exp(scale * s) among itself and its negatives."""
    logits = scale * torch.cat([positive.unsqueeze(1), negative], dim=1)
    return torch.logsumexp(logits, 1) - logits[:, 0]


OBJECTIVES: dict[str, Objective] = {
    "margin": Objective(margin, sparse=True),
    "hardest": Objective(hardest, sparse=True),
    "mean": Objective(mean, sparse=False),
    "softmax": Objective(softmax, sparse=False),
}
