"""Is p(t | h, R) a probability? Of answers given with confidence 0.7, are 70% right?

    confidence = max_t p(t | h, R),   p = softmax of scale · s / T over all entities but the other known answers
    ECE = Σ_bins share · |accuracy - mean confidence|           (Guo et al. 2017, equal-width bins)

Both questions of every triple count, (h, R, ?) and (?, R, t). What a run has fitted when its training ended
(probabilities.py) is judged beside the model as it is. Of a model without that, T is fitted on valid by likelihood,
which is convex in 1/T: Newton's steps; the isotonic map from confidence to accuracy is fitted on valid; both are then
applied to test. ECE is never 0 for finitely many questions: `chance` is what a perfectly calibrated
model with these confidences would show.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from scipy.optimize import isotonic_regression
from torch import Tensor

from relwalk.display import Shown
from relwalk.evaluation.estimate import Absent, Estimate, Floats, clip, estimate, resampling_weights
from relwalk.evaluation.probabilities import Probabilities
from relwalk.evaluation.score_blocks import leave_out, score_blocks
from relwalk.exponentials import exp_
from relwalk.graph.answers import SIDES, Side
from relwalk.graph.graph import Graph, Split
from relwalk.graph.lists import Ints, Lists
from relwalk.models.base import Scorer
from relwalk.progress import Count, OnProgress, part_of, silent

BINS, BOOTSTRAP = 15, 500
FITTED = 1000  # triples that one temperature is fitted on
COLDEST, HOTTEST = 1e-3, 1e3  # bounds of 1/T


@dataclass(frozen=True)
class Bin:
    """Questions whose confidence lies in (low, high]; figures are None for an empty bin."""

    low: float
    high: float
    count: int
    confidence: float | None
    accuracy: float | None


@dataclass(frozen=True)
class Reliability:
    """One way of turning scores into confidences, judged on test."""

    name: str
    ece: Estimate
    chance: float  # the ECE that perfect calibration would show on as many questions
    confidence: float
    accuracy: float
    nll: float | None  # mean -log p of the true answer; None for a map of confidences alone
    bins: tuple[Bin, ...]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        nll = f"{self.nll:8.3f}" if self.nll is not None else f"{'-':>8}"
        row = f"{self.name:12} ECE {self.ece} (chance {self.chance:.3f})"
        return f"{row:58} confidence {self.confidence:.3f}  accuracy {self.accuracy:.3f}  -log p {nll}"


@dataclass(frozen=True)
class RelationCalibration:
    """Confidence against accuracy of one relation, as fitted or as it is; None with a message without test triples."""

    relation: str
    queries: int
    confidence: float | None
    accuracy: float | None
    message: str | None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, repr=False)
class Calibration(Shown):
    """Reliability as the model is, and as fitted; or, without probabilities, with a temperature and an isotonic map."""

    temperature: float | None
    methods: tuple[Reliability, ...]
    relations: tuple[RelationCalibration, ...]
    queries: dict[str, int]
    note: str | None

    def as_dict(self) -> dict[str, Any]:
        return {
            "applies": True,
            "temperature": self.temperature,
            "methods": [m.as_dict() for m in self.methods],
            "relations": [r.as_dict() for r in self.relations],
            "queries": self.queries,
            "note": self.note,
        }

    def summary(self) -> str:
        plain = self.methods[0]
        return f"ECE {plain.ece}, confidence {plain.confidence:.3f}, accuracy {plain.accuracy:.3f}"

    def __str__(self) -> str:
        fitted = f"T = {self.temperature:.3f}, fitted on valid" if self.temperature is not None else "filtered"
        lines = [f"top answer of {self.queries['test']:,} test questions ({fitted})", *map(str, self.methods)]
        for r in self.relations:
            if r.confidence is None or r.accuracy is None:
                lines.append(f"  {clip(r.relation, 40):42}{r.message}")
            else:
                figures = f"confidence {r.confidence:.3f}  accuracy {r.accuracy:.3f}  ({r.queries:,})"
                lines.append(f"  {clip(r.relation, 40):42}{figures}")
        return "\n".join([*lines, *([self.note] if self.note else [])])


def calibration(
    model: Scorer,
    graph: Graph,
    probabilities: Probabilities | None = None,
    *,
    most: int = 4000,
    bins: int = BINS,
    seed: int = 0,
    progress: OnProgress = silent,
) -> Calibration | Absent:
    """Judge the probabilities of a model on test, before and after what valid teaches: by `probabilities` if given.

    At most `most` triples of each split are asked, drawn at random.
    """
    if len(graph.test) == 0:
        return Absent(f"graph {graph.name!r} has no test triples to ask about.")
    if probabilities is not None:
        return _as_fitted(model, graph, probabilities, most, bins, seed, progress)
    temperature, note, steps = None, None, None
    if len(graph.valid):
        some = _Sample(model, graph, "valid", min(most, FITTED), seed, part_of(progress, 0, 3, "calibration"))
        temperature = 1 / some.best_inverse_temperature()
        (fitted,) = _Sample(model, graph, "valid", most, seed, part_of(progress, 1, 3, "calibration")).answers(1.0)
        steps = isotonic(fitted.confidence, fitted.correct)
    else:
        note = "The graph has no valid triples: neither temperature nor isotonic map could be fitted."
    test = _Sample(model, graph, "test", most, seed, part_of(progress, 2, 3, "calibration"))
    plain, cooled = test.answers(1.0, 1 / (temperature or 1.0))
    methods = [_reliability("as it is", plain.confidence, plain.correct, plain.nll, bins, seed)]
    if steps is not None:
        mapped = np.interp(plain.confidence, *steps)
        methods += [
            _reliability("temperature", cooled.confidence, cooled.correct, cooled.nll, bins, seed),
            _reliability("isotonic", mapped, plain.correct, None, bins, seed),
        ]
    return Calibration(
        temperature=temperature,
        methods=tuple(methods),
        relations=_by_relation(graph, test.triples, plain),
        queries={"test": 2 * len(test.triples), "valid": 2 * min(most, len(graph.valid))},
        note=note,
    )


def _as_fitted(
    model: Scorer, graph: Graph, fitted: Probabilities, most: int, bins: int, seed: int, progress: OnProgress
) -> Calibration:
    test = _Sample(model, graph, "test", most, seed, progress)
    plain, own = test.answers(1.0, fitted)
    named = (("as it is", plain), ("as fitted", own))
    return Calibration(
        temperature=None,
        methods=tuple(_reliability(name, f.confidence, f.correct, f.nll, bins, seed) for name, f in named),
        relations=_by_relation(graph, test.triples, own),
        queries={"test": 2 * len(test.triples), "valid": 2 * fitted.facts},
        note=None,
    )


@dataclass(frozen=True, eq=False)
class _TopAnswers:
    """Of each question: the top answer's probability, whether it is the true one, -log p of the true one."""

    confidence: Floats
    correct: Floats
    nll: Floats


class _Sample:
    """Both questions of some triples of a split; scores come in blocks, so memory does not grow with them."""

    def __init__(
        self, model: Scorer, graph: Graph, split: Split, most: int, seed: int, on_progress: OnProgress = silent
    ) -> None:
        triples = graph.split(split)
        if len(triples) > most:
            triples = triples[np.sort(np.random.default_rng(seed).choice(len(triples), most, replace=False))]
        self.model, self.graph, self.triples = model, graph, triples[np.argsort(triples[:, 1], kind="stable")]
        self.on_progress = on_progress

    def blocks(self, on_progress: OnProgress) -> Iterator[tuple[Side, Ints, Tensor, Tensor]]:
        """The side, triples, log-weights (questions, entities), -inf for other known answers, and the true answers."""
        count = Count(on_progress, len(SIDES) * len(self.triples), "calibration")
        for side in SIDES:
            given, asked = (0, 2) if side == "tail" else (2, 0)
            for rows, weights in score_blocks(self.model, self.graph, side, self.triples[:, given], self.triples[:, 1]):
                triples = self.triples[rows]
                known = self.graph.known[side].lookup(triples[:, given], triples[:, 1])
                row = known.row_of_each_value()
                other = known.values != triples[row, asked]
                leave_out(weights, row[other], known.values[other])
                yield side, triples, weights, torch.from_numpy(triples[:, asked].astype(np.int64))
                count.add(len(rows))

    def answers(self, *ways: float | Probabilities) -> list[_TopAnswers]:
        """Every question answered at each temperature 1 / way, or at those that were fitted."""
        parts: list[list[Tensor]] = [[] for _ in ways]
        for side, triples, weights, truth in self.blocks(self.on_progress):
            nothing = Lists(np.zeros(len(triples) + 1, np.int64), np.zeros(0, np.int32))
            inverses = [
                torch.from_numpy(way.question_temperatures(side, triples[:, 1], weights, nothing)).to(weights)
                if isinstance(way, Probabilities)
                else torch.full((len(triples),), way)
                for way in ways
            ]
            top, best = weights.max(1)
            weights = weights.sub_(top[:, None])
            own, right = weights.gather(1, truth[:, None])[:, 0], (best == truth).to(weights)
            for part, inverse in zip(parts, inverses, strict=True):
                log_z = exp_(inverse[:, None] * weights).sum(1).log()
                part.append(torch.stack([(-log_z).exp(), right, log_z - inverse * own]).double())
        return [_TopAnswers(*torch.cat(part, 1).numpy()) for part in parts]

    def best_inverse_temperature(self, steps: int = 12) -> float:
        """Newton on β = 1/T: d/dβ of mean -log p is E_p[w] - w_true, its second derivative the variance of w."""
        beta = 1.0
        for step in range(steps):
            slope = curve = 0.0
            for _, _, weights, truth in self.blocks(part_of(self.on_progress, step, steps, "calibration")):
                w = weights - weights.amax(1, keepdim=True)
                p = torch.softmax(beta * w, 1)
                w = torch.where(w.isinf(), 0.0, w)  # its p is 0, and -inf · 0 is not a number
                mean = (p * w).sum(1)
                slope += float((mean - w.gather(1, truth[:, None])[:, 0]).double().sum())
                curve += float(((p * w.square()).sum(1) - mean.square()).double().sum())
            if not curve > 0:
                break
            # A step may at most triple or third β: the curve is flat where p is all but certain.
            new = min(max(beta - slope / curve, beta / 3, COLDEST), 3 * beta, HOTTEST)
            if abs(new - beta) < 1e-4 * beta:
                return new
            beta = new
        return beta


def isotonic(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Least squares among non-decreasing functions of x: its knots, for np.interp.  # (distinct x,) both"""
    knots, place, counts = np.unique(x, return_inverse=True, return_counts=True)
    means = np.bincount(place, y) / counts
    return knots, isotonic_regression(means, weights=counts.astype(np.float64)).x


def expected_calibration_error(
    confidence: Floats, correct: Floats, bins: int = BINS, weights: Floats | None = None
) -> float:
    """Σ over bins of share · |accuracy - mean confidence| = Σ |Σ (correct - confidence)| / n; weighted, if said."""
    weights = np.ones(len(confidence)) if weights is None else weights
    gaps = np.bincount(_bin(confidence, bins), weights * (correct - confidence), minlength=bins)
    return float(np.abs(gaps).sum() / weights.sum())


def _bin(confidence: Floats, bins: int) -> Any:
    return np.clip(np.ceil(confidence * bins).astype(np.int64) - 1, 0, bins - 1)


def _reliability(
    name: str, confidence: Floats, correct: Floats, nll: Floats | None, bins: int, seed: int
) -> Reliability:
    n, place = len(confidence), _bin(confidence, bins)
    one_hot = np.zeros((n, bins))
    one_hot[np.arange(n), place] = 1
    weights = resampling_weights(n, BOOTSTRAP, seed)
    resampled = np.abs(weights @ (one_hot * (correct - confidence)[:, None])).sum(axis=1)
    fair = np.random.default_rng(seed).random((100, n)) < confidence
    chance = np.abs((fair - confidence) @ one_hot).sum(axis=1).mean() / n
    count = one_hot.sum(axis=0)
    said, right = confidence @ one_hot, correct @ one_hot
    return Reliability(
        name=name,
        ece=estimate(expected_calibration_error(confidence, correct, bins), resampled),
        chance=float(chance),
        confidence=float(confidence.mean()),
        accuracy=float(correct.mean()),
        nll=float(nll.mean()) if nll is not None and math.isfinite(nll.mean()) else None,
        bins=tuple(
            Bin(
                i / bins,
                (i + 1) / bins,
                int(count[i]),
                float(said[i] / count[i]) if count[i] else None,
                float(right[i] / count[i]) if count[i] else None,
            )
            for i in range(bins)
        ),
    )


def _by_relation(graph: Graph, triples: Ints, found: _TopAnswers) -> tuple[RelationCalibration, ...]:
    relation = np.concatenate([triples[:, 1]] * len(SIDES))
    size = len(graph.relations)
    count = np.bincount(relation, minlength=size)
    said, right = (np.bincount(relation, x, minlength=size) for x in (found.confidence, found.correct))
    return tuple(
        RelationCalibration(name, int(n), float(c / n), float(a / n), None)
        if n
        else RelationCalibration(name, 0, None, None, "no test triples")
        for name, n, c, a in zip(graph.relations.names, count, said, right, strict=True)
    )
