"""Binary cross-entropy over all entities: every entity is, or is not, an answer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor

from relwalk.errors import RelWalkError
from relwalk.graph.graph import Graph
from relwalk.memory import FLOAT
from relwalk.models.base import Scorer
from relwalk.space import Between
from relwalk.training.all_entities import AllEntities, AllEntitiesSettings
from relwalk.training.common import CommonSettings, ObjectiveSettings, setting
from relwalk.training.sigmoid import ROWS, bce_loss
from relwalk.training.softmax import Targets


class BceSettings(AllEntitiesSettings):
    """As ConvE's paper has them."""

    label_smoothing: float = setting(
        0.1,
        "share of an answer spread over all entities",
        panel="Objective",
        otherwise="0, of bce 0.1",
        search=Between(0.0, 0.2),
        ge=0,
        lt=1,
    )

    def resolved(self, model: type[Scorer], options: Mapping[str, Any], entities: int, device: torch.device) -> Self:
        if model.nonnegative:
            raise RelWalkError(
                f"bce takes scores for log-odds, and those of {model.__name__} are never below zero: to it, nothing is "
                "false. Say --objective likelihood, or take another --model."
            )
        return super().resolved(model, options, entities, device)


class BinaryCrossEntropy(AllEntities):
    """The objective of ConvE (Dettmers, Minervini, Stenetorp, Riedel: AAAI 2018), known as KvsAll.

    A question has the label 1 for each of its answers in train and 0 for every other entity, smoothed by ε. With
    p = σ(score + β) its loss is

        -Σ_e y_e log p_e + (1 - y_e) log(1 - p_e),      y_e = (1 - ε) [e is an answer] + ε / entities,

    summed over entities and questions. The paper takes the mean, the same up to a factor; of the sum, an answer's part
    is a number about 1, as of likelihood, so that weight decay means the same. β is the log-odds of the mean label: a
    score of zero means that nothing is known. The paper has no β; from p = 1/2 for every entity, a model first learns
    at length that hardly any is an answer.
    """

    Settings = BceSettings
    sees_offsets = True

    def __init__(self, graph: Graph, settings: CommonSettings, own: ObjectiveSettings, device: torch.device) -> None:
        super().__init__(graph, settings, own, device)
        answers = len(self.answers.values) / max(1, len(self.given))  # of a question, in the mean
        mean = (1 - self.own.label_smoothing) * answers / self.entities + self.own.label_smoothing / self.entities
        self.shift = math.log(mean / (1 - mean)) if 0 < mean < 1 else 0.0  # β

    def product_loss(
        self, queries: Tensor, keys: tuple[Tensor, ...], targets: Targets, log_weights: Tensor | None
    ) -> Tensor:
        targets, spread = self._smoothed(targets)
        queries = F.pad(queries, (0, 1), value=self.shift)  # (rows, width + 1)
        all_keys = torch.cat([*keys, keys[0].new_ones(len(keys[0]), 1)], 1)
        return bce_loss(queries, all_keys, targets, self.workspace, spread=spread, log_weights=log_weights)

    def score_loss(self, scores: Tensor, targets: Targets, log_weights: Tensor | None) -> Tensor:
        scores = scores + self.shift
        (rows, columns, added), spread = self._smoothed(targets)
        labels = scores.new_full(scores.shape, spread).index_put_((rows, columns), added + spread)
        if log_weights is None:
            return F.binary_cross_entropy_with_logits(scores, labels, reduction="sum")
        times = scores.new_zeros(scores.shape)  # that an entity counts in a row
        times[:, : len(log_weights)] = log_weights.exp()
        times[rows, columns] = 1.0
        return F.binary_cross_entropy_with_logits(scores, labels, times, reduction="sum")

    def step_bytes(self, model: Scorer) -> int:
        tile = min(self.batch_size, ROWS) * self.workspace.tile
        return FLOAT * (2 * tile + model.step_numbers(self.batch_size, self.candidates or self.entities))

    def _smoothed(self, targets: Targets) -> tuple[Targets, float]:
        """The targets with 1 - ε in place of 1, and what every entity gets of the rest."""
        smoothing = self.own.label_smoothing
        return targets._replace(weights=(1 - smoothing) * targets.weights), smoothing / self.entities
