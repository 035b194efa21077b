"""What a step minimises. An objective is one class, with settings of its own, and one line in OBJECTIVES.

One against false triples says its loss from scores alone: `positive` (batch,) and `negative` (batch, count); `scale`
turns a score into a log-probability (1/2d for RelWalk); a margin is in units of the score.
"""

from __future__ import annotations

import torch
from torch import Tensor

from relwalk.training.all_entities import AllEntities
from relwalk.training.bce import BinaryCrossEntropy
from relwalk.training.likelihood import Likelihood
from relwalk.training.negative_sampling import Hinge, NegativeSampling


class Margin(Hinge):
    """Σ_k max(0, margin + s_k - s): the paper's loss against every negative."""

    sparse = True

    @staticmethod
    def hinge(positive: Tensor, negative: Tensor, margin: float) -> Tensor:
        return torch.relu(margin + negative - positive.unsqueeze(1)).sum(1)


class Hardest(Hinge):
    """max(0, margin + max_k s_k - s): the hardest of the negatives alone (the paper's appendix)."""

    sparse = True

    @staticmethod
    def hinge(positive: Tensor, negative: Tensor, margin: float) -> Tensor:
        return torch.relu(margin + negative.amax(1) - positive)


class Mean(Hinge):
    """max(0, margin + mean_k s_k - s): the negatives averaged before the hinge (the authors' code)."""

    @staticmethod
    def hinge(positive: Tensor, negative: Tensor, margin: float) -> Tensor:
        return torch.relu(margin + negative.mean(1) - positive)


class Softmax(NegativeSampling):
    """-log of the positive's share of exp(scale * s) among itself and its negatives."""

    def against(self, positive: Tensor, negative: Tensor, scale: float) -> Tensor:
        logits = scale * torch.cat([positive.unsqueeze(1), negative], dim=1)
        return torch.logsumexp(logits, 1) - logits[:, 0]


OBJECTIVES: dict[str, type[AllEntities] | type[NegativeSampling]] = {
    "likelihood": Likelihood,
    "bce": BinaryCrossEntropy,
    "margin": Margin,
    "hardest": Hardest,
    "mean": Mean,
    "softmax": Softmax,
}
