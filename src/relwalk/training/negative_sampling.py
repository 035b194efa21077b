"""Learning from true triples against sampled false ones."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from pydantic import SerializerFunctionWrapHandler, field_validator, model_serializer, model_validator
from torch import Tensor, nn

from relwalk.checks import DIM, MOST, SEEDS
from relwalk.errors import RelWalkError, choose
from relwalk.graph.answers import Side
from relwalk.graph.graph import Graph
from relwalk.memory import FLOAT
from relwalk.models import MODELS
from relwalk.models.base import ProductScorer, Scorer
from relwalk.space import Among, Between
from relwalk.training.common import CommonSettings, ObjectiveSettings, setting
from relwalk.training.kbgan import NegativeGenerator
from relwalk.training.negatives import SAMPLERS, Negatives, uniform
from relwalk.training.regularizers import regularization

LARGEST_MARGIN = 1e6
JUDGED = 32  # rows, about, by which a batch is judged
WORTH_IT = 0.5  # share of candidates with a slope: a gradient costs two passes, and one more pass has been made
KBGAN = "kbgan"  # the sampler that is a model itself
CHOICES = (*SAMPLERS, KBGAN)


class GeneratorSettings(NamedTuple):
    """What KBGAN's generator is, all decided."""

    generator_model: str
    generator_dim: int
    generator_candidates: int
    generator_lr: float


class SamplingSettings(ObjectiveSettings):
    """Which false triples a true one is held against."""

    sampler: str = setting(
        "uniform",
        f"how false triples are drawn: {', '.join(CHOICES)}",
        panel="Objective",
        search=Among(("uniform", "bernoulli", "argument")),
    )
    negatives: int = setting(
        100, "false triples per true one", panel="Objective", search=Between(8, 256, "powers"), ge=1, le=MOST
    )
    avoid_known: bool = setting(
        False,
        "never draw a known true triple as a negative",
        panel="Objective",
        flags=("--avoid-known/--allow-known",),
    )
    generator_model: str | None = setting(
        None, "model that chooses negatives by kbgan: a product", panel="Objective", otherwise="distmult"
    )
    generator_dim: int | None = setting(
        None, "dimensions of kbgan's generator", panel="Objective", otherwise="50", ge=1, le=DIM
    )
    generator_candidates: int | None = setting(
        None,
        "entities that kbgan's generator chooses from, per true triple",
        panel="Objective",
        otherwise="20",
        ge=1,
        le=MOST,
    )
    generator_lr: float | None = setting(
        None,
        "learning rate of kbgan's generator; 0: it does not learn",
        panel="Objective",
        otherwise="by its model",
        ge=0,
    )

    @field_validator("sampler")
    @classmethod
    def _sampler_is_known(cls, name: str) -> str:
        choose("sampler", name, dict.fromkeys(CHOICES))
        return name

    @model_validator(mode="after")
    def _generator_is_kbgans(self) -> Self:
        said = [name for name in GeneratorSettings._fields if getattr(self, name) is not None]
        if said and self.sampler != KBGAN:
            raise ValueError(
                f"{said[0]} means nothing to the sampler {self.sampler}: say --sampler kbgan, or leave it out"
            )
        if self.sampler == KBGAN:
            self.generator()
        return self

    @model_serializer(mode="wrap")
    def _without_what_means_nothing(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        found: dict[str, Any] = handler(self)
        kept = self.sampler == KBGAN
        return {name: value for name, value in found.items() if kept or name not in GeneratorSettings._fields}

    def generator(self) -> GeneratorSettings:
        """KBGAN's generator, with the paper's defaults where nothing was said."""
        name = self.generator_model or "distmult"
        kind = choose("generator_model", name, MODELS)
        if not issubclass(kind, ProductScorer):
            products = ", ".join(name for name, kind in MODELS.items() if issubclass(kind, ProductScorer))
            raise RelWalkError(f"generator_model is {name}, whose scores are no product; expected one of {products}")
        return GeneratorSettings(
            name,
            self.generator_dim or 50,
            self.generator_candidates or 20,
            kind.lr if self.generator_lr is None else self.generator_lr,
        )

    def resolved(self, model: type[Scorer], options: Mapping[str, Any], entities: int, device: torch.device) -> Self:
        return self.model_copy(update=self.generator()._asdict()) if self.sampler == KBGAN else self


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
        search=Between(1.5, 1000.0, "log"),
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
    most_moved: int | None = None  # negatives of a triple that can get one; None: all
    note: str | None = None
    products: float | None = None

    def __init__(self, graph: Graph, settings: CommonSettings, own: ObjectiveSettings, device: torch.device) -> None:
        assert isinstance(own, self.Settings)
        self.positives = torch.from_numpy(graph.train.astype(np.int64))
        self.settings, self.own = settings, own
        self.negative_generator = build_negative_generator(settings, own, len(graph.entities), len(graph.relations))
        if self.negative_generator is not None:
            self.negative_generator.to(device)
        draws = SAMPLERS.get(own.sampler, uniform)  # uniform are the candidates that kbgan chooses from
        self.sampler = draws(graph, avoid_known=own.avoid_known)
        self.batch_size = settings.batch_size or -(-len(self.positives) // (settings.batches or 1))
        self.entities = len(graph.entities)

    @abstractmethod
    def against(self, positive: Tensor, negative: Tensor, scale: float) -> Tensor:
        """The loss of each positive (batch,) from its score and those of its negatives (batch, count)."""

    @property
    def few_entities(self) -> bool:
        """Whether a step is about a few of the entities alone: half of them at most, negatives that count included."""
        negatives = self.own.negatives if self.most_moved is None else self.most_moved
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

    def true_triples(self, batch: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Heads, relations and tails of a batch.  # (batch,) each"""
        heads, relations, tails = batch.unbind(1)
        return heads, relations, tails

    def loss(self, model: Scorer, batch: Tensor, generator: torch.Generator, *, decay: float = 1.0) -> Tensor:
        """The objective summed over the batch, plus regularization and what the model itself asks for."""
        device = model.device
        negatives, log_prob = self._negatives(batch, generator)
        rewards = torch.empty(negatives.entities.shape, device=device)  # (batch, count)
        total = regularization(model, self.settings, *batch.to(device).unbind(1), few=self.few_entities, decay=decay)
        sides: tuple[tuple[Side, Tensor], ...] = (("tail", negatives.tail), ("head", ~negatives.tail))
        for side, rows in sides:
            if not bool(rows.any()):  # a small batch may ask for one side alone
                continue
            triples, others = batch[rows].to(device), negatives.entities[rows].to(device)
            given, true = (triples[:, 0], triples[:, 2]) if side == "tail" else (triples[:, 2], triples[:, 0])
            candidates = torch.cat([true.unsqueeze(1), others], dim=1)
            loss, scores = self._against(model, side, given, triples[:, 1], candidates)
            total, rewards[rows] = total + loss, model.scale * scores[:, 1:].detach()
        if self.negative_generator is not None and log_prob is not None:
            total = total + _gradient_only(self.negative_generator.loss(log_prob, rewards))
        return total + model.penalty(torch.unique(batch[:, 1]).to(device))

    def _negatives(self, batch: Tensor, generator: torch.Generator) -> tuple[Negatives, Tensor | None]:
        """False triples, and their log-probabilities (batch, count) when a model chose them."""
        if self.negative_generator is None:
            return self.sampler(batch, self.own.negatives, generator), None
        candidates = self.sampler(batch, self.own.generator().generator_candidates, generator)
        return self.negative_generator.choose(batch, candidates, self.own.negatives, generator)

    def _against(
        self, model: Scorer, side: Side, given: Tensor, relations: Tensor, candidates: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The objective of questions against candidates, of which the first is the truth, and all scores.

        # (rows, 1 + count) candidates to (), (rows, 1 + count)
        """
        few = self.sparse and _scores_alike_twice(model) and self._moves_few(model, side, given, relations, candidates)
        if not few:
            scores = model.score_candidates(side, given, relations, candidates)
            return self._objective(model, scores), scores
        with torch.no_grad():
            scores = model.score_candidates(side, given, relations, candidates)
        loss, slopes = self._slopes(model, scores)
        row, place = slopes.nonzero(as_tuple=True)
        moved = _score(model, side, given[row], relations[row], candidates[row, place])
        return loss.detach() + _gradient_only((slopes[row, place] * moved).sum()), scores

    def _moves_few(self, model: Scorer, side: Side, given: Tensor, relations: Tensor, candidates: Tensor) -> bool:
        """Whether so few candidates get a slope that a second, smaller pass is worth it, judged by some of the rows."""
        rows = slice(None, None, max(1, len(given) // JUDGED))
        with torch.no_grad():
            scores = model.score_candidates(side, given[rows], relations[rows], candidates[rows])
        _, slopes = self._slopes(model, scores)
        return int(slopes.count_nonzero()) < WORTH_IT * slopes.numel()

    def _slopes(self, model: Scorer, scores: Tensor) -> tuple[Tensor, Tensor]:
        """The objective of these scores, and its slope in each of them.  # (), (rows, 1 + count)"""
        with torch.enable_grad():
            leaf = scores.requires_grad_()
            loss = self._objective(model, leaf)
        (slopes,) = torch.autograd.grad(loss, leaf)
        return loss, slopes

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


def build_negative_generator(
    settings: CommonSettings, own: ObjectiveSettings, entities: int, relations: int
) -> NegativeGenerator | None:
    """The model that chooses negatives; None for an objective or a sampler without one."""
    if not isinstance(own, SamplingSettings) or own.sampler != KBGAN:
        return None
    model, dim, _, lr = own.generator()
    seed = (settings.seed + 1) % SEEDS  # not that of the model: two of a kind would begin as the same
    sparse = settings.optimizer != "adam"
    return NegativeGenerator(model, entities, relations, dim, lr=lr, seed=seed, sparse=sparse)


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
