"""What a run has learned from valid about its own scores: numbers to act on.

    share       p(t | h, R) = exp(β s_t) / Σ_e exp(β s_e), over all answers
    confidence  the chance that a new link is a fact that the graph lacks: how often such links were held-out facts

Shares of a question sum to 1: eight equally good neighbours have an eighth each. Confidences do not: each of them may
be near 1. A confidence takes it that as many facts are missing as valid has, and counts every other new link as false.
As some of those are true, it is a lower bound.

    β = γ β_R,   β_R = 1/T of the side and the relation, γ of the question such that, among new answers,
        log-odds of the first one's share at β = u log c - v log(1 - c) + w,   c its share at β_R   (Kull et al. 2017)
    log-odds of a confidence = m(a + a_R + b · x),   x: `FEATURES` of a candidate at β_R, m: a non-decreasing map

One set of a, b, m serves questions that the graph has some answer to, another those that it has none to. Nothing here
sees what moves all scores of a question alike. How it is fitted: share_fit.py, confidence_fit.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator
from torch import Tensor

from relwalk.evaluation.candidate_features import FEATURES, RISING, features, sharpened
from relwalk.graph.answers import Side
from relwalk.graph.lists import Lists

Floats = NDArray[np.float64]
Integers = NDArray[np.integer]
BLOCK = 1 << 22  # scores worked on at a time

Relation = Annotated[int, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]


class Value(BaseModel):
    """A part of run.json: frozen, and of finite numbers alone."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Temperatures(Value):
    """β_R = 1/T of the questions of one side: of relations with enough valid triples, and of all others."""

    overall: Positive
    by_relation: dict[Relation, Positive] = Field(default_factory=dict)


class FirstShare(Value):
    """How often a first answer is true, by its share c: log-odds u log c - v log(1 - c) + w."""

    u: Annotated[float, Field(ge=0)] = 1.0
    v: Annotated[float, Field(ge=0)] = 1.0
    w: float = 0.0

    def log_odds(self, c: Floats) -> Floats:
        inside = np.clip(c, 1e-12, 1 - 1e-9)
        return np.asarray(self.u * np.log(inside) - self.v * np.log1p(-inside) + self.w)


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

    def linear(self, offsets: Floats, x: Floats) -> Floats:
        """a + a_R + b · x.  # (...,)"""
        return np.asarray(self.intercept + offsets + x @ np.array(self.slopes))

    def log_odds(self, offsets: Floats, x: Floats) -> Floats:
        return np.interp(self.linear(offsets, x), self.knots, self.values)


class Quantiles(Value):
    """-log of the true answer's share among the new ones, of so many questions: ascending, of every n-th of them."""

    count: int = Field(ge=1)
    values: tuple[float, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _ascend(self) -> Self:
        if len(self.values) > self.count:
            raise ValueError(f"found {len(self.values)} values of {self.count} questions; expected at most as many")
        if any(a > b for a, b in pairwise(self.values)):
            raise ValueError("the values must ascend")
        return self

    def at(self, coverage: float) -> float:
        """The ⌈(n + 1) coverage⌉-th smallest, or the next that is kept; inf where there are too few questions."""
        place = math.ceil((self.count + 1) * coverage - 1e-9)
        if place > self.count:
            return math.inf
        return self.values[max(0, place - 1) * len(self.values) // self.count]


class Coverage(Value):
    """What the lists of one side must take: by relation where there are enough questions, of all others together."""

    others: Quantiles
    by_relation: dict[Relation, Quantiles] = Field(default_factory=dict)


class SideProbabilities(Value):
    """What holds for the questions of one side."""

    temperatures: Temperatures
    first: FirstShare
    coverage: Coverage
    asked: Odds  # of questions with a known answer
    unasked: Odds  # of those without

    def relations(self) -> set[int]:
        """Those that something is said of."""
        tables = (self.temperatures, self.coverage, self.asked, self.unasked)
        return {r for table in tables for r in table.by_relation}


class Probabilities(Value):
    """Shares, confidences and lists of a run, as fitted on valid."""

    relations: int = Field(ge=1)
    facts: int = Field(ge=1)  # held-out ones: the triples of valid
    head: SideProbabilities
    tail: SideProbabilities
    of_relations: Positive = 1.0  # β of p(R | h, t)

    @model_validator(mode="after")
    def _relations_exist(self) -> Self:
        named = max(self.head.relations() | self.tail.relations(), default=0)
        if named >= self.relations:
            raise ValueError(f"found the relation {named}; expected 0 to {self.relations - 1}")
        return self

    def side(self, side: Side) -> SideProbabilities:
        return self.tail if side == "tail" else self.head

    def inverse_temperatures(self, side: Side, relations: Integers) -> Floats:
        """β_R of each question.  # (questions,)"""
        return np.asarray(np.exp(self._tables[side][0][relations]))

    def question_temperatures(
        self, side: Side, relations: Integers, scores: Tensor, known: Lists, times: Tensor | None = None
    ) -> Floats:
        """β of each question, from its `scores` (questions, entities) and `known` answers: see `confidences`.

        # (questions,)
        """
        betas, first = self.inverse_temperatures(side, relations), self.side(side).first
        if first == FirstShare():
            return betas
        for rows in _blocks(scores):
            own = slice(rows[0], rows[-1] + 1)
            some = times[own] if times is not None else None
            betas[rows] = sharpened(scores[own], betas[rows], known.take(rows), first.log_odds, some)
        return betas

    def longest(self, side: Side, relations: Integers, coverage: float) -> Floats:
        """Of each question, -log of the least share among new answers, at β_R, that a list of `coverage` takes.

        inf where valid has too few triples to leave anything out.  # (questions,)
        """
        own = self.side(side).coverage
        bounds = np.full(self.relations, own.others.at(coverage))
        for relation, quantiles in own.by_relation.items():
            found = quantiles.at(coverage)
            bounds[relation] = found if found < math.inf else bounds[relation]
        return np.asarray(bounds[relations])

    def confidences(
        self,
        side: Side,
        relations: Integers,
        scores: Tensor,
        known: Lists,
        columns: Integers | Tensor,
        *,
        missing: int | None = None,
        times: Tensor | None = None,
    ) -> Floats:
        """How probable it is that each candidate is a fact which the graph lacks.  # (questions, columns)

        `scores` (questions, entities) are model.scale * score of all entities, also of known answers; -inf for what
        cannot be an answer. `known` are the answers that the graph has, `columns` (questions, k) the candidates asked
        about, all of them new. Where the scores are not of all entities, `times` (questions, columns of `scores`) says
        how many each of them stands for. `missing` is how many facts the graph is thought to lack, if not as many as
        valid has: the odds change in that proportion.
        """
        ids = columns.cpu().numpy() if isinstance(columns, Tensor) else np.asarray(columns)
        log_odds = np.zeros(ids.shape)
        betas = self.inverse_temperatures(side, relations)
        for rows in _blocks(scores):
            own = slice(rows[0], rows[-1] + 1)
            some = times[own] if times is not None else None
            x = features(scores[own], betas[rows], known.take(rows), ids[rows], some)
            log_odds[rows] = self._log_odds(side, relations[rows], known.lengths[rows] > 0, x)
        return self._probability(log_odds, missing)

    def confidences_from(
        self,
        side: Side,
        relations: Integers,
        asked: NDArray[np.bool_],
        features: Floats,
        *,
        missing: float | None = None,
    ) -> Floats:
        """`confidences` of single candidates from their `FEATURES`, for one who has the sums of their questions.

        `asked` says of each whether the graph has an answer to its question.  # (candidates,)
        """
        return self._probability(self._log_odds(side, relations, asked, features[:, None, :].copy())[:, 0], missing)

    def _probability(self, log_odds: Floats, missing: float | None) -> Floats:
        more = 0.0 if missing is None else math.log(missing / self.facts)
        return np.asarray(1 / (1 + np.exp(-np.maximum(log_odds + more, -700.0))))

    def confidence_of(self, side: Side, relations: Integers, asked: bool, x: Floats) -> Floats:
        """Of candidates by their features; `asked`: of questions with a known answer.  # (candidates,)"""
        log_odds = self._log_odds(side, relations, np.full(len(x), asked), x[:, None, :].copy())[:, 0]
        return np.asarray(1 / (1 + np.exp(-np.maximum(log_odds, -700.0))))

    def _log_odds(self, side: Side, relations: Integers, asked: NDArray[np.bool_], x: Floats) -> Floats:
        absent = np.isneginf(x[..., 0])
        x[absent] = 0.0
        found = np.empty(absent.shape)
        own, (_, of_asked, of_unasked) = self.side(side), self._tables[side]
        for rows, odds, offsets in ((asked, own.asked, of_asked), (~asked, own.unasked, of_unasked)):
            found[rows] = odds.log_odds(offsets[relations[rows], None], x[rows])
        found[absent] = -np.inf
        return found

    @cached_property
    def _tables(self) -> Mapping[Side, tuple[Floats, Floats, Floats]]:
        """log β_R, and the offsets of both kinds, of every relation.  # (relations,) each"""

        def dense(values: Mapping[int, float], other: float) -> Floats:
            table = np.full(self.relations, other)
            table[list(values)] = list(values.values())
            return table

        def tables(side: SideProbabilities) -> tuple[Floats, Floats, Floats]:
            betas = np.log(dense(side.temperatures.by_relation, side.temperatures.overall))
            return betas, dense(side.asked.by_relation, 0.0), dense(side.unasked.by_relation, 0.0)

        return {"head": tables(self.head), "tail": tables(self.tail)}


def _blocks(scores: Tensor) -> list[NDArray[np.int64]]:
    """Rows whose scores are worked on together."""
    size = max(1, BLOCK // max(1, scores.shape[1]))
    return [np.arange(start, min(start + size, len(scores))) for start in range(0, len(scores), size)]
