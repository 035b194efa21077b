"""Learning from true triples against sampled false ones."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Self

import numpy as np
import torch
from pydantic import field_validator, model_validator
from torch import Tensor, nn

from relwalk.checks import MOST
from relwalk.errors import choose
from relwalk.graph.answers import Side
from relwalk.graph.graph import Graph
from relwalk.memory import FLOAT
from relwalk.models.base import Scorer
from relwalk.training.common import CommonSettings, ObjectiveSettings, setting
from relwalk.training.negatives import SAMPLERS
from relwalk.training.regularizers import regularization

LARGEST_MARGIN = 1e6


class SamplingSettings(ObjectiveSettings):
    """Which false triples a true one is held against."""

    sampler: str = setting("uniform", f"how false triples are drawn: {', '.join(SAMPLERS)}", panel="Objective")
    negatives: int = setting(100, "false triples per true one", panel="Objective", ge=1, le=MOST)
    avoid_known: bool = setting(
        False,
        "never draw a known true triple as a negative",
        panel="Objective",
        flags=("--avoid-known/--allow-known",),
    )

    @field_validator("sampler")
    @classmethod
    def _sampler_is_known(cls, name: str) -> str:
        choose("sampler", name, SAMPLERS)
        return name


class MarginSettings(SamplingSettings):
    """By how much a true triple should be ahead: a margin, or η, how many times likelier it should be."""

    margin: float | None = setting(
        None,
        "how far ahead, in units of the score; of logistic (0) and self-adversarial (9), the γ of γ + s",
        panel="Objective",
        gt=0,
        le=LARGEST_MARGIN,
    )
    eta: float | None = setting(
        None,
        "how many times likelier a true triple should be, instead of a margin: 2d log eta for RelWalk",
        panel="Objective",
        otherwise="e, without a margin",
        gt=1,
    )

    @model_validator(mode="after")
    def _one_of_the_two(self) -> Self:
        if self.margin is not None and self.eta is not None:
            raise ValueError("margin and eta say the same thing: give one of them")
        return self

    def margin_for(self, scale: float) -> float:
        """The margin in units of the score: as it was said, or log η / scale, which is 2d log η for RelWalk."""
        return self.margin if self.margin is not None else math.log(math.e if self.eta is None else self.eta) / scale


class NegativeSampling(ABC):
    """One epoch: every true triple once, in random order, each against its own negatives."""

    Settings: type[SamplingSettings] = SamplingSettings
    sparse = False  # most negatives get no gradient: worth a second, smaller pass through the model
    note: str | None = None
    products: float | None = None

    def __init__(self, graph: Graph, settings: CommonSettings, own: ObjectiveSettings, device: torch.device) -> None:
        assert isinstance(own, self.Settings)
        self.positives = torch.from_numpy(graph.train.astype(np.int64))
        self.settings, self.own = settings, own
        self.sampler = SAMPLERS[own.sampler](graph, avoid_known=own.avoid_known)
        self.batch_size = settings.batch_size or -(-len(self.positives) // (settings.batches or 1))
        self.entities = len(graph.entities)

    @abstractmethod
    def against(self, positive: Tensor, negative: Tensor, scale: float) -> Tensor:
        """The loss of each positive (batch,) from its score and those of its negatives (batch, count)."""

    @property
    def few_entities(self) -> bool:
        """Whether a step is about a few of the entities alone: half of them at most, negatives that count included."""
        negatives = 1 if self.sparse else self.own.negatives
        return 2 * self.batch_size * (2 + negatives) <= self.entities and self.settings.optimizer != "adam"

    @property
    def triples(self) -> int:
        return len(self.positives)

    def step_bytes(self, model: Scorer) -> int:
        """What the scores of a step and their gradients take: negatives are vectors of their own."""
        return 3 * FLOAT * self.batch_size * (self.own.negatives + 1) * model.dim

    def __len__(self) -> int:
        return -(-len(self.positives) // self.batch_size)

    def batches(self, generator: torch.Generator) -> Iterator[Tensor]:
        """Batches of true triples sorted by relation, so that a model finds each relation in one run."""
        order = torch.randperm(len(self.positives), generator=generator)
        for rows in torch.split(order, self.batch_size):
            batch = self.positives[rows]
            yield batch[torch.sort(batch[:, 1], stable=True).indices]

    def loss(self, model: Scorer, batch: Tensor, generator: torch.Generator) -> Tensor:
        """The objective summed over the batch, plus regularization and what the model itself asks for."""
        device = model.device
        negatives = self.sampler(batch, self.own.negatives, generator)
        total = regularization(model, self.settings, *batch.to(device).unbind(1), few=self.few_entities)
        sides: tuple[tuple[Side, Tensor], ...] = (("tail", negatives.tail), ("head", ~negatives.tail))
        for side, rows in sides:
            if not bool(rows.any()):  # a small batch may ask for one side alone
                continue
            triples, others = batch[rows].to(device), negatives.entities[rows].to(device)
            given, true = (triples[:, 0], triples[:, 2]) if side == "tail" else (triples[:, 2], triples[:, 0])
            candidates = torch.cat([true.unsqueeze(1), others], dim=1)
            total = total + self._against(model, side, given, triples[:, 1], candidates)
        return total + model.penalty(torch.unique(batch[:, 1]).to(device))

    def _against(self, model: Scorer, side: Side, given: Tensor, relations: Tensor, candidates: Tensor) -> Tensor:
        """The objective of questions against candidates (rows, 1 + count), of which the first is the truth."""
        if not self.sparse or not _scores_alike_twice(model):
            return self._objective(model, model.score_candidates(side, given, relations, candidates))
        with torch.no_grad():
            scores = model.score_candidates(side, given, relations, candidates)
        with torch.enable_grad():
            leaf = scores.requires_grad_()
            loss = self._objective(model, leaf)
        (slopes,) = torch.autograd.grad(loss, leaf)
        row, place = slopes.nonzero(as_tuple=True)
        moved = _score(model, side, given[row], relations[row], candidates[row, place])
        return loss.detach() + _gradient_only((slopes[row, place] * moved).sum())

    def _objective(self, model: Scorer, scores: Tensor) -> Tensor:
        return self.against(scores[:, 0], scores[:, 1:], model.scale).sum()


class Hinge(NegativeSampling):
    """A loss that is zero once a true triple is ahead by the margin."""

    Settings = MarginSettings

    @staticmethod
    @abstractmethod
    def hinge(positive: Tensor, negative: Tensor, margin: float) -> Tensor:
        """The loss of each positive.  # (batch,)"""

    def against(self, positive: Tensor, negative: Tensor, scale: float) -> Tensor:
        assert isinstance(self.own, MarginSettings)
        return self.hinge(positive, negative, self.own.margin_for(scale))


def _score(model: Scorer, side: Side, given: Tensor, relations: Tensor, answers: Tensor) -> Tensor:
    if side == "tail":
        return model.score(given, relations, answers)
    return model.score(answers, relations, given)


def _scores_alike_twice(model: Scorer) -> bool:
    """Whether a triple has the same score in another batch: not with dropout, nor with batch norm."""
    normed = any(isinstance(module, nn.modules.batchnorm._BatchNorm) for module in model.modules())
    return not normed and not any(dropout.rate for dropout in model.dropouts().values())


def _gradient_only(value: Tensor) -> Tensor:
    """Zero, with the gradient of the value.

    Of a hundred negatives the hardest objective moves one: scoring those few triples again costs little, and
    spares the gradient of all the others.
    """
    return value - value.detach()
