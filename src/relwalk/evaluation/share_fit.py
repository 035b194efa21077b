"""Shares: so that the first answer is right as often as its share says, and a list holds the answer as promised.

    minimise over β_R  Σ -log(c if the first answer is true, else 1 - c),   c = share of the first answer at β_R

over valid questions, both sides apart, other known answers left out. A relation's own β counts its questions beside
n₀ of the side's mean question; n₀ is chosen on folds of valid, and may be endless: then no relation has its own.
What remains between c and how often it is right is fitted to what the folds were told unseen (`FirstShare`), and so
are the shares of true answers, whose quantiles make lists of any coverage (split conformal prediction).
Σ_e exp(β s_e) is kept of each question for a grid of β, a quarter octave apart: one squaring gives the next octave.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor

from relwalk.evaluation.probabilities import Coverage, FirstShare, Floats, Quantiles, Temperatures
from relwalk.evaluation.score_blocks import BLOCK, leave_out, score_blocks
from relwalk.graph.answers import Side
from relwalk.graph.graph import Graph
from relwalk.graph.lists import Ints, Lists, Longs
from relwalk.models.base import Scorer

OCTAVES, STEPS = 13, 4  # the grid of β: from a quarter over the height of a usual first answer on
FOLDS = 5
PRIORS = (3.0, 10.0, 30.0, 100.0, 300.0)  # n₀ to choose from, or none
LEAST = 10  # triples of a relation that has a temperature of its own
MAPPED = 100  # questions that the map of first shares needs
LISTED, KEPT, KEPT_OF_RELATION = 100, 200, 100  # questions of a relation with lists of its own; quantiles kept


@dataclass(frozen=True, eq=False)
class FirstAnswers:
    """Of each question: its first answer, and the true one, at every temperature."""

    relation: Ints  # (questions,)
    correct: Floats  # (questions,) a share of 1 where several are level
    gap: Floats  # (questions,) the true answer's score less the first one's, at most 0
    log_z: Floats  # (questions, grid) log Σ_e exp(β (s_e - s_first))
    log_betas: Floats  # (grid,)

    def at(self, log_betas: Floats) -> Floats:
        """log Σ at a β of its own for each question, interpolated.  # (questions,)"""
        step = self.log_betas[1] - self.log_betas[0]
        place = np.clip((log_betas - self.log_betas[0]) / step, 0, len(self.log_betas) - 1)
        low = np.minimum(place.astype(np.int64), len(self.log_betas) - 2)
        rows, part = np.arange(len(place)), place - low
        return np.asarray(self.log_z[rows, low] * (1 - part) + self.log_z[rows, low + 1] * part)

    def confidence(self, log_betas: Floats) -> Floats:
        """The share of the first answer of each question."""
        return np.exp(-self.at(log_betas))

    def log_share(self, log_betas: Floats) -> Floats:
        """log share of the true answer of each question."""
        return np.asarray(np.exp(log_betas) * self.gap - self.at(log_betas))

    def losses(self) -> Floats:
        """-log of what the first answer's share gave to what happened.  # (questions, grid)"""
        c = np.clip(np.exp(-self.log_z), 1e-6, 1 - 1e-6)
        right = self.correct[:, None]
        return np.asarray(-right * np.log(c) - (1 - right) * np.log1p(-c))


@dataclass(frozen=True)
class Shares:
    """What is fitted about the shares of one side."""

    temperatures: Temperatures
    first: FirstShare
    coverage: Coverage


def first_answers(model: Scorer, graph: Graph, side: Side, triples: Ints) -> FirstAnswers:
    """The questions of triples of valid or test, filtered, answered at a grid of temperatures."""
    given, asked = (0, 2) if side == "tail" else (2, 0)
    table = _Table(triples[:, 1])
    for rows, scores in score_blocks(model, graph, side, triples[:, given], triples[:, 1]):
        known = graph.known[side].lookup(triples[rows, given], triples[rows, 1])
        table.add(rows, scores, known, triples[rows, asked])
    return table.found()


def first_relations(model: Scorer, graph: Graph, triples: Ints) -> FirstAnswers:
    """The same of the questions (h, ?, t), whose candidates are the relations."""
    table, tails = _Table(triples[:, 1]), graph.known["tail"]
    size = max(1, BLOCK // (len(graph.relations) * model.dim))
    for rows in (np.arange(i, min(i + size, len(triples))) for i in range(0, len(triples), size)):
        h, _, t = torch.from_numpy(triples[rows].astype(np.int64)).to(model.device).T
        with torch.no_grad():
            scores = model.score_relations(h, t).float().cpu() * model.scale
        known = tails.relations_between(triples[rows, 0], triples[rows, 2])
        table.add(rows, scores, known, triples[rows, 1])
    return table.found()


class _Table:
    """First answers, filled in block by block."""

    def __init__(self, relation: Ints) -> None:
        self.relation = relation
        self.correct, self.gap = np.empty(len(relation)), np.empty(len(relation))
        self.log_z = np.empty((len(relation), OCTAVES * STEPS))
        self.betas: Floats | None = None

    def add(self, rows: Longs, scores: Tensor, known: Lists, truths: Ints) -> None:
        """Scores are changed: known answers but for the true one leave, and the greatest becomes 0."""
        truth = torch.from_numpy(truths.astype(np.int64))[:, None]
        own = scores.gather(1, truth)
        leave_out(scores, known.row_of_each_value(), known.values)
        scores.scatter_(1, truth, own)
        top = scores.amax(1, keepdim=True)
        level = (scores == top).sum(1)
        self.correct[rows] = ((own == top)[:, 0].double() / level).numpy()
        self.gap[rows] = (own - top)[:, 0].double().numpy()
        if self.betas is None:
            self.betas = _grid(scores, top)
        self.log_z[rows] = _log_sums(scores.sub_(top), self.betas)

    def found(self) -> FirstAnswers:
        assert self.betas is not None
        return FirstAnswers(self.relation, self.correct, self.gap, self.log_z, np.log(self.betas))


def _grid(scores: Tensor, top: Tensor) -> Floats:
    """Temperatures that suit the scores, whatever their unit: set by how far first answers stand above the mean."""
    finite = scores.isfinite()
    mean = scores.masked_fill(~finite, 0).sum(1) / finite.sum(1).clamp(min=1)
    height = float((top[:, 0] - mean).median())
    unit = 0.25 / height if height > 0 else 1.0
    return np.asarray(unit * 2.0 ** (np.arange(OCTAVES * STEPS) / STEPS))


def _log_sums(w: Tensor, betas: Floats) -> Floats:
    """log Σ_e exp(β w_e) at every β of the grid.  # (questions, grid)"""
    found = np.empty((len(w), len(betas)))
    for first in range(STEPS):
        x = torch.exp(w * float(betas[first]))
        for place in range(first, len(betas), STEPS):
            found[:, place] = x.sum(1).double().log().numpy()
            x.square_()
    return found


def fit_shares(answers: FirstAnswers, rng: np.random.Generator) -> Shares:
    """Temperatures of the side and of its relations, the map of first shares, and the quantiles of true ones."""
    losses, relation = answers.losses(), answers.relation
    fold = rng.permutation(len(relation)) % FOLDS
    unseen = {prior: np.empty(len(relation), np.int64) for prior in (None, *PRIORS)}  # places told without the fold
    for held in range(FOLDS):
        own = fold == held
        rest = ~own if not own.all() else own
        for prior, places in unseen.items():
            places[own] = _places(*_best(losses[rest], relation[rest], prior), relation[own])
    every = np.arange(len(relation))
    prior = min(unseen, key=lambda p: float(losses[every, unseen[p]].sum()))
    overall, own_places = _best(losses, relation, prior)
    betas = np.exp(answers.log_betas)
    log_betas = answers.log_betas[unseen[prior]]
    return Shares(
        Temperatures(overall=float(betas[overall]), by_relation={r: float(betas[i]) for r, i in own_places.items()}),
        _fit_first(answers.confidence(log_betas), answers.correct),
        _fit_coverage(-answers.log_share(log_betas), relation),
    )


def best_temperature(answers: FirstAnswers) -> float:
    """One β for all questions."""
    return float(np.exp(answers.log_betas[answers.losses().mean(0).argmin()]))


def _best(losses: Floats, relation: NDArray[np.integer], prior: float | None) -> tuple[int, dict[int, int]]:
    """Places in the grid: of all questions, and of each relation with enough of them."""
    mean = losses.mean(0)
    overall = int(mean.argmin())
    if prior is None:
        return overall, {}
    kinds, place, counts = np.unique(relation, return_inverse=True, return_counts=True)
    sums = np.zeros((len(kinds), losses.shape[1]))
    np.add.at(sums, place, losses)
    best = (sums + prior * mean).argmin(1)
    return overall, {int(kinds[i]): int(best[i]) for i in np.flatnonzero(counts >= LEAST)}


def _places(overall: int, own: dict[int, int], relation: NDArray[np.integer]) -> Longs:
    table = np.full(int(max([*own, *relation.tolist(), 0])) + 1, overall)
    table[list(own)] = list(own.values())
    return np.asarray(table[relation])


def _fit_first(share: Floats, correct: Floats) -> FirstShare:
    """How often first answers were right by their shares: maximum likelihood, rising."""
    if len(share) < MAPPED:
        return FirstShare()
    c = np.clip(share, 1e-6, 1 - 1e-6)
    x = np.stack([np.log(c), -np.log1p(-c), np.ones(len(c))], 1)

    def loss(p: Floats) -> tuple[float, Floats]:
        """With a pull of one question to the identity."""
        log_odds, away = x @ p, p - start
        value = np.sum(np.logaddexp(0.0, log_odds) - correct * log_odds) + away @ away / 2
        return float(value), x.T @ (1 / (1 + np.exp(-log_odds)) - correct) + away

    start = np.array([1.0, 1.0, 0.0])
    bounds = [(0.0, None), (0.0, None), (None, None)]
    u, v, w = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x.tolist()
    return FirstShare(u=u, v=v, w=w)


def _fit_coverage(values: Floats, relation: NDArray[np.integer]) -> Coverage:
    """Relations with enough questions stand for themselves, the others together; all together if they are few."""
    large = np.bincount(relation) >= LISTED
    rest = values[~large[relation]]
    own = {int(r): _quantiles(values[relation == r], KEPT_OF_RELATION) for r in np.flatnonzero(large)}
    return Coverage(others=_quantiles(rest if len(rest) >= LISTED else values, KEPT), by_relation=own)


def _quantiles(values: Floats, most: int) -> Quantiles:
    count, kept = len(values), min(most, len(values))
    places = np.ceil(np.arange(1, kept + 1) * count / kept - 1e-9).astype(np.int64) - 1
    found = np.ceil(np.sort(values)[places] * 1e5) / 1e5  # never less than it was
    return Quantiles(count=count, values=tuple(np.minimum(found, 1e9).tolist()))
