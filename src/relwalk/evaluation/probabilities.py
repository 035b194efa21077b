"""What a run has learned from valid about its own scores: numbers to act on.

    share       p(t | h, R) = exp(β s_t) / Σ_e exp(β s_e), over all answers; β = 1/T of the side and the relation
    confidence  the chance that a new link is a fact that the graph lacks: how often such links were held-out facts

Shares of a question sum to 1: eight equally good neighbours have an eighth each. Confidences do not: each of them may
be near 1. A confidence takes it that as many facts are missing as valid has, and counts every other new link as false.
As some of those are true, it is a lower bound.

    log-odds of confidence = m(a + a_R + b · x)     x: `FEATURES` of a candidate, m: a non-decreasing map

One set of numbers serves questions that the graph has some answer to, another those that it has none to. Nothing here
sees what moves all scores of a question alike.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator
from torch import Tensor

from relwalk.graph.answers import Side
from relwalk.graph.lists import Lists

Floats = NDArray[np.float64]
BLOCK = 1 << 22  # scores worked on at a time
FEATURES = (
    "log share among the new answers",
    "height above the mean of all entities",
    "height above the mean of the known answers; 0 without any",
    "log(1 + known answers)",
    "spread of the scores of all entities",
)
RISING = 3  # the first features grow with the score, and their slopes are not negative: so does the confidence

Relation = Annotated[int, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]


class Value(BaseModel):
    """A part of run.json: frozen, and of finite numbers alone."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Temperatures(Value):
    """β = 1/T of the questions of one side: of relations with enough valid triples, and of all others."""

    overall: Positive
    by_relation: dict[Relation, Positive] = Field(default_factory=dict)


class Odds(Value):
    """Log-odds of being a held-out fact, from the features of a candidate."""

    intercept: float
    slopes: tuple[float, ...] = Field(min_length=len(FEATURES), max_length=len(FEATURES))
    by_relation: dict[Relation, float] = Field(default_factory=dict)  # what is added for a relation
    knots: tuple[float, ...] = Field(min_length=1)  # the map: straight between knots, level beyond them
    values: tuple[float, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _rises(self) -> Self:
        if len(self.knots) != len(self.values):
            raise ValueError(f"found {len(self.knots)} knots and {len(self.values)} values; expected as many")
        if any(a >= b for a, b in pairwise(self.knots)) or any(a > b for a, b in pairwise(self.values)):
            raise ValueError("the knots must rise, and the values must not fall")
        if min(self.slopes[:RISING]) < 0:
            raise ValueError(f"the first {RISING} slopes must not be negative")
        return self

    def linear(self, offsets: Floats, features: Floats) -> Floats:
        """a + a_R + b · x.  # (...,)"""
        return np.asarray(self.intercept + offsets + features @ np.array(self.slopes))

    def log_odds(self, offsets: Floats, features: Floats) -> Floats:
        return np.interp(self.linear(offsets, features), self.knots, self.values)


class SideProbabilities(Value):
    """What holds for the questions of one side."""

    temperatures: Temperatures
    asked: Odds  # of questions with a known answer
    unasked: Odds  # of those without


class Probabilities(Value):
    """Shares and confidences of a run, as fitted on valid."""

    relations: int = Field(ge=1)
    facts: int = Field(ge=1)  # held-out ones: the triples of valid
    head: SideProbabilities
    tail: SideProbabilities

    @model_validator(mode="after")
    def _relations_exist(self) -> Self:
        for side in (self.head, self.tail):
            for table in (side.temperatures.by_relation, side.asked.by_relation, side.unasked.by_relation):
                if table and max(table) >= self.relations:
                    raise ValueError(f"found the relation {max(table)}; expected 0 to {self.relations - 1}")
        return self

    def side(self, side: Side) -> SideProbabilities:
        return self.tail if side == "tail" else self.head

    def inverse_temperatures(self, side: Side, relations: NDArray[np.integer]) -> Floats:
        """β of each question, by its relation.  # (questions,)"""
        return np.asarray(np.exp(self._tables[side][0][relations]))

    def confidences(
        self,
        side: Side,
        relations: NDArray[np.integer],
        scores: Tensor,
        known: Lists,
        columns: NDArray[np.integer] | Tensor,
        *,
        missing: int | None = None,
    ) -> Floats:
        """How probable it is that each candidate is a fact which the graph lacks.  # (questions, columns)

        `scores` (questions, entities) are model.scale * score of all entities, also of known answers; -inf for what
        cannot be an answer. `known` are the answers that the graph has, `columns` (questions, k) the candidates asked
        about, all of them new. `missing` is how many facts the graph is thought to lack, if not as many as valid has:
        the odds change in that proportion.
        """
        ids = columns.cpu().numpy() if isinstance(columns, Tensor) else np.asarray(columns)
        result = np.zeros(ids.shape)
        betas = self.inverse_temperatures(side, relations)
        size = max(1, BLOCK // max(1, scores.shape[1]))
        for start in range(0, len(ids), size):
            rows = np.arange(start, min(start + size, len(ids)))
            result[rows] = self._confidences(
                side, relations[rows], betas[rows], scores[start : start + size], known.take(rows), ids[rows]
            )
        return self._probability(result, missing)

    def confidences_from(
        self,
        side: Side,
        relations: NDArray[np.integer],
        asked: NDArray[np.bool_],
        features: Floats,
        *,
        missing: float | None = None,
    ) -> Floats:
        """`confidences` of single candidates from their `FEATURES`, for one who has the sums of their questions.

        `asked` says of each whether the graph has an answer to its question.  # (candidates,)
        """
        return self._probability(self._log_odds(side, relations, asked, features), missing)

    def _probability(self, log_odds: Floats, missing: float | None) -> Floats:
        more = 0.0 if missing is None else math.log(missing / self.facts)
        return np.asarray(1 / (1 + np.exp(-(log_odds + more))))

    def _confidences(
        self,
        side: Side,
        relations: NDArray[np.integer],
        betas: Floats,
        scores: Tensor,
        known: Lists,
        columns: NDArray[np.integer],
    ) -> Floats:
        """Log-odds of a block of questions.  # (questions, columns)"""
        x = features(scores, betas, known, columns)
        return self._log_odds(side, relations[:, None], known.lengths > 0, x)

    def _log_odds(self, side: Side, relations: NDArray[np.integer], asked: NDArray[np.bool_], x: Floats) -> Floats:
        """Of candidates by their features, -inf for one without a score; questions stand along the first axis."""
        absent = np.isneginf(x[..., 0])
        x = np.where(absent[..., None], 0.0, x)
        log_odds = np.empty(x.shape[:-1])
        own = self.side(side)
        for rows, odds, offsets in (
            (asked, own.asked, self._tables[side][1]),
            (~asked, own.unasked, self._tables[side][2]),
        ):
            log_odds[rows] = odds.log_odds(offsets[relations[rows]], x[rows])
        return np.where(absent, -np.inf, log_odds)

    @cached_property
    def _tables(self) -> Mapping[Side, tuple[Floats, Floats, Floats]]:
        """log β, and the offsets of both kinds, of every relation.  # (relations,) each"""

        def dense(values: Mapping[int, float], other: float) -> Floats:
            table = np.full(self.relations, other)
            table[list(values)] = list(values.values())
            return table

        def of(side: SideProbabilities) -> tuple[Floats, Floats, Floats]:
            betas = np.log(dense(side.temperatures.by_relation, side.temperatures.overall))
            return betas, dense(side.asked.by_relation, 0.0), dense(side.unasked.by_relation, 0.0)

        return {"head": of(self.head), "tail": of(self.tail)}


def features(scores: Tensor, betas: Floats, known: Lists, columns: NDArray[np.integer]) -> Floats:
    """The `FEATURES` of candidates, from the scores of all entities; -inf for one that has no score.

    # (questions, columns, features)
    """
    device, count = scores.device, len(columns)
    w = scores - scores.amax(1, keepdim=True)
    w *= torch.from_numpy(betas).to(w).unsqueeze(1)  # (questions, entities), at most 0
    row, place = (torch.from_numpy(a.astype(np.int64)).to(device) for a in (known.row_of_each_value(), known.values))
    of_known = w[row, place].double().cpu().numpy()
    own = w.gather(1, torch.from_numpy(columns.astype(np.int64)).to(device)).double().cpu().numpy()
    finite = w.isfinite()
    entities = finite.sum(1).clamp_(min=1)
    filled = w.masked_fill(~finite, 0.0)
    mean = filled.sum(1) / entities
    spread = ((filled.square().sum(1) / entities - mean.square()).clamp_(min=0)).sqrt()
    w[row, place] = -torch.inf
    new = _log_sum(w)
    number = known.lengths
    seen = np.isfinite(of_known)
    rows = known.row_of_each_value()[seen]
    counted = np.maximum(np.bincount(rows, minlength=count), 1)
    of_known_mean = np.bincount(rows, of_known[seen], minlength=count) / counted
    found = np.empty((*columns.shape, len(FEATURES)))
    found[..., 0] = np.minimum(own - new[:, None], 0.0)
    found[..., 1] = own - mean.double().cpu().numpy()[:, None]
    found[..., 2] = np.where(number > 0, 1.0, 0.0)[:, None] * (np.maximum(own, -1e9) - of_known_mean[:, None])
    found[..., 3] = np.log1p(number)[:, None]
    found[..., 4] = spread.double().cpu().numpy()[:, None]
    found[np.isneginf(own)] = -np.inf
    return found


def _log_sum(w: Tensor) -> Floats:
    """log Σ exp of each row; hardly above -inf where nothing is left."""
    top = w.amax(1, keepdim=True).clamp(min=-1e9)
    return (top.squeeze(1).double() + (w - top).exp_().sum(1).double().clamp_(min=1e-30).log()).cpu().numpy()
