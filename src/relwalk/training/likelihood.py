"""Maximum likelihood: p(t | h, R) and p(h | R, t) over all entities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from relwalk.errors import RelWalkError
from relwalk.graph.graph import Graph
from relwalk.models.base import Scorer
from relwalk.together import ALONE, Together
from relwalk.training.all_entities import AllEntities, AllEntitiesSettings
from relwalk.training.common import CommonSettings, ObjectiveSettings, setting
from relwalk.training.softmax import Targets, softmax_loss

RELATION_PAIRS = 256  # pairs (h, t) of a step whose relation is asked as well
RELATION_NUMBERS = 1 << 25  # held for that at most: pairs x relations x d


class LikelihoodSettings(AllEntitiesSettings):
    """What is asked beside answers."""

    relation_weight: float = setting(0.0, "weight of -log p(R | h, t) beside the answers", panel="Objective", ge=0)

    def resolved(self, model: type[Scorer], options: Mapping[str, Any], entities: int, device: torch.device) -> Self:
        settings = super().resolved(model, options, entities, device)
        if settings.candidates_per_step and self.label_smoothing:
            raise RelWalkError(
                "label_smoothing spreads answers over all entities, which a step with sampled candidates does not see. "
                "Leave it out, or say --candidates-per-step 0."
            )
        return settings


class Likelihood(AllEntities):
    """-log p of every answer, summed: the exact softmax over all entities, or an estimate from a sample."""

    Settings = LikelihoodSettings

    def __init__(self, graph: Graph, settings: CommonSettings, own: ObjectiveSettings, device: torch.device) -> None:
        super().__init__(graph, settings, own, device)
        shares = np.bincount(graph.train[:, 1], minlength=len(graph.relations)) / len(graph.train)
        self.prior = torch.from_numpy(shares).float().to(device)  # p(R), (relations,)

    def product_loss(
        self,
        queries: Tensor,
        keys: tuple[Tensor, ...],
        targets: Targets,
        log_weights: Tensor | None,
        together: Together = ALONE,
        all_keys: int | None = None,
    ) -> Tensor:
        """With several processes, the part of the one that has these keys (`softmax_loss`)."""
        return softmax_loss(
            queries,
            keys,
            targets,
            self.workspace,
            smoothing=self.own.label_smoothing,
            log_weights=log_weights,
            together=together,
            all_keys=all_keys,
        )

    def score_loss(self, scores: Tensor, targets: Targets, log_weights: Tensor | None) -> Tensor:
        rows, columns, weights = targets
        summed = scores
        if log_weights is not None:
            added = scores.new_full(scores.shape, -torch.inf)
            added[:, : len(log_weights)] = log_weights
            added[rows, columns] = 0.0
            summed = scores + added
        log_z = torch.logsumexp(summed, -1)  # (rows,)
        hits = (weights * (log_z[rows] - scores[rows, columns])).sum()
        if not self.own.label_smoothing:
            return hits
        totals = weights.new_zeros(len(scores)).index_add_(0, rows, weights)
        spread = (totals * (log_z - scores.mean(-1))).sum()
        return (1 - self.own.label_smoothing) * hits + self.own.label_smoothing * spread

    def extra_loss(self, model: Scorer, triples: tuple[Tensor, ...], generator: torch.Generator) -> Tensor:
        """-log p(R | h, t) of the step's triples, estimated from some of them: each costs relations x d x width of a
        block. By Bayes' rule p(R | h, t) ~ p(h, t | R) p(R), and p(R) is its share of train."""
        assert isinstance(self.own, LikelihoodSettings)
        if not self.own.relation_weight:
            return super().extra_loss(model, triples, generator)
        heads, relations, tails = triples
        most = max(1, min(RELATION_PAIRS, RELATION_NUMBERS // (model.relations * model.dim)))
        some = torch.randperm(len(heads), generator=generator)[:most].to(heads.device)
        log_prob = model.log_prob_relations(heads[some], tails[some], self.prior)
        truth = log_prob.gather(1, relations[some].unsqueeze(1)).sum()
        return -self.own.relation_weight * len(heads) / len(some) * truth
