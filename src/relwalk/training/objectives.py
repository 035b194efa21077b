"""What a step minimises. An objective is one class, with settings of its own, and one line in OBJECTIVES.

One against false triples says its loss from scores alone: `positive` (batch,) and `negative` (batch, count); `scale`
turns a score into a log-probability (1/2d for RelWalk); a margin is in units of the score.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from relwalk.space import Between
from relwalk.training.all_entities import AllEntities
from relwalk.training.bce import BinaryCrossEntropy
from relwalk.training.common import setting
from relwalk.training.likelihood import Likelihood
from relwalk.training.negative_sampling import LARGEST_MARGIN, Hinge, NegativeSampling, SamplingSettings


class Margin(Hinge):
    """Σ_k max(0, margin + s_k - s): the paper's loss against every negative."""

    sparse = True

    @staticmethod
    def hinge(positive: Tensor, negative: Tensor, margin: float) -> Tensor:
        return torch.relu(margin + negative - positive.unsqueeze(1)).sum(1)


class Hardest(Hinge):
    """max(0, margin + max_k s_k - s): the hardest of the negatives alone (the paper's appendix)."""

    sparse = True
    most_moved = 1

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


class LogisticSettings(SamplingSettings):
    """Where true is parted from false."""

    margin: float = setting(
        0.0, "γ, in units of the score", panel="Objective", search=Between(0.0, 12.0), ge=0, le=LARGEST_MARGIN
    )


class Logistic(NegativeSampling):
    """-log σ(γ + s) - mean_k log σ(-γ - s_k): each triple told true or false, all negatives weighing as one.

    γ, the margin, is for scores that are never positive, as distances are; a product needs none. s is measured in
    log-probabilities, `scale * s`.
    """

    Settings: type[LogisticSettings] = LogisticSettings

    def against(self, positive: Tensor, negative: Tensor, scale: float) -> Tensor:
        assert isinstance(self.own, LogisticSettings)
        true, false = (scale * (self.own.margin + scores) for scores in (positive, negative))
        return F.softplus(-true) + (self.weights(false.detach()) * F.softplus(false)).sum(1)

    def weights(self, negative: Tensor) -> Tensor:
        """How much each negative counts; a row sums to one.  # (batch, count)"""
        return torch.full_like(negative, 1 / negative.shape[1])


class SelfAdversarialSettings(LogisticSettings):
    """Where true is parted from false, and how much the hardest negatives count."""

    margin: float = setting(
        9.0, "γ, in units of the score", panel="Objective", search=Between(0.0, 24.0), ge=0, le=LARGEST_MARGIN
    )
    temperature: float = setting(
        1.0,
        "how much more a negative counts that scores high (α); 0: all the same",
        panel="Objective",
        search=Between(0.0, 2.0),
        ge=0,
        le=1e6,
    )


class SelfAdversarial(Logistic):
    """-log σ(γ + s) - Σ_k p_k log σ(-γ - s_k), p = softmax(α s) without gradient (Sun, Deng, Nie, Tang: ICLR 2019)."""

    Settings = SelfAdversarialSettings

    def weights(self, negative: Tensor) -> Tensor:
        assert isinstance(self.own, SelfAdversarialSettings)
        return torch.softmax(self.own.temperature * negative, 1)


OBJECTIVES: dict[str, type[AllEntities] | type[NegativeSampling]] = {
    "likelihood": Likelihood,
    "bce": BinaryCrossEntropy,
    "margin": Margin,
    "hardest": Hardest,
    "mean": Mean,
    "softmax": Softmax,
    "logistic": Logistic,
    "self-adversarial": SelfAdversarial,
}
