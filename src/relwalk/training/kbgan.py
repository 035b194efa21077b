"""KBGAN (Cai, Wang: NAACL 2018): a second model learns which negatives are hard for the one that is trained.

For each true triple some candidates are drawn uniformly; the second model, the *generator*, scores them, and the
negatives are drawn from the softmax of its scores:

    p(k) = exp(scale * g_k) / Σ_j exp(scale * g_j)

The model that is trained, the *discriminator*, learns against them and says how near the truth it found each, its score
s_k. That is the reward of the generator, which is trained by REINFORCE (Williams 1992):

    loss = -Σ_k (s_k - b) log p(k),  b the running mean of rewards
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from relwalk.graph.answers import Side
from relwalk.models import ProductScorer, build_model
from relwalk.training.negatives import Negatives

REMEMBERED_STEPS = 100  # that the running mean of rewards is about


class Chosen(NamedTuple):
    """Negatives, and how likely the generator was to draw each."""

    negatives: Negatives
    log_prob: Tensor  # (batch, count) with a gradient to the generator alone


class NegativeGenerator(nn.Module):
    """A product model that chooses negatives, and the running mean of what it earned by them."""

    mean_reward: Tensor
    steps: Tensor  # that the mean was made of

    def __init__(
        self, model: str, entities: int, relations: int, dim: int, *, lr: float, seed: int, sparse: bool = False
    ) -> None:
        super().__init__()
        self.lr = lr
        made = build_model(model, entities, relations, dim, seed=seed, options={})
        assert isinstance(made, ProductScorer), f"{model} is no product: the settings refuse it"
        self.model = made
        for table in made.tables():
            table.sparse = sparse
        self.register_buffer("mean_reward", torch.zeros(()))
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))

    def choose(self, positives: Tensor, candidates: Negatives, count: int, generator: torch.Generator) -> Chosen:
        """`count` of the candidates of each positive, drawn from the softmax of their scores, with replacement."""
        log_prob = self.log_prob(positives, candidates)  # (batch, candidates)
        uniform = torch.rand(len(positives), count, generator=generator).to(log_prob.device)
        below = log_prob.detach().exp().cumsum(1)  # (batch, candidates)
        drawn = torch.searchsorted(below, uniform * below[:, -1:]).clamp_max(below.shape[1] - 1)  # (batch, count)
        entities = candidates.entities.gather(1, drawn.to(candidates.entities.device))
        return Chosen(Negatives(entities, candidates.tail), log_prob.gather(1, drawn))

    def log_prob(self, positives: Tensor, candidates: Negatives) -> Tensor:
        """log p of each candidate among those of its positive.  # (batch, candidates)"""
        device = self.model.device
        parts, order = [], []
        sides: tuple[tuple[Side, Tensor, int], ...] = (("tail", candidates.tail, 0), ("head", ~candidates.tail, 2))
        for side, rows, place in sides:
            triples, entities = positives[rows].to(device), candidates.entities[rows].to(device)
            parts.append(self.model.score_candidates(side, triples[:, place], triples[:, 1], entities))
            order.append(rows.nonzero()[:, 0])
        scores = torch.cat(parts)[torch.argsort(torch.cat(order)).to(device)]
        return torch.log_softmax(self.model.scale * scores, 1)

    def loss(self, log_prob: Tensor, rewards: Tensor) -> Tensor:
        """REINFORCE over the negatives of a step, both (batch, count); the mean of rewards goes on by this step."""
        rewards = rewards.detach()
        advantage = rewards - (self.mean_reward if self.steps else rewards.mean())
        with torch.no_grad():
            self.steps += 1
            self.mean_reward += (rewards.mean() - self.mean_reward) / self.steps.clamp_max(REMEMBERED_STEPS)
        return -(advantage * log_prob).sum()
