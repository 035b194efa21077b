"""Temperatures: so that the first answer is right as often as its share says.

    minimise over β  Σ -log(c if the first answer is true, else 1 - c),   c = share of the first answer at β

over valid questions, both sides apart, other known answers left out. A relation's own β counts its questions beside
n₀ of the side's mean question; n₀ is chosen on folds of valid, and may be endless: then no relation has its own.
Σ_e exp(β s_e) is kept of each question for a grid of β, a quarter octave apart: one squaring gives the next octave.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from relwalk.evaluation.probabilities import Floats, Temperatures
from relwalk.evaluation.score_blocks import leave_out, score_blocks
from relwalk.graph.answers import Side
from relwalk.graph.graph import Graph
from relwalk.graph.lists import Ints
from relwalk.models.base import Scorer

OCTAVES, STEPS = 13, 4  # the grid of β: from a quarter over the height of a usual first answer on
FOLDS = 5
PRIORS = (3.0, 10.0, 30.0, 100.0, 300.0)  # n₀ to choose from, or none
LEAST = 10  # triples of a relation that has a temperature of its own


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


def first_answers(model: Scorer, graph: Graph, side: Side, triples: Ints) -> FirstAnswers:
    """The questions of triples of valid or test, filtered, answered at a grid of temperatures."""
    given, asked = (0, 2) if side == "tail" else (2, 0)
    correct, gap = np.empty(len(triples)), np.empty(len(triples))
    log_z, betas = np.empty((len(triples), OCTAVES * STEPS)), None
    for rows, scores in score_blocks(model, graph, side, triples[:, given], triples[:, 1]):
        truth = torch.from_numpy(triples[rows, asked].astype(np.int64))[:, None]
        own = scores.gather(1, truth)
        known = graph.known[side].lookup(triples[rows, given], triples[rows, 1])
        leave_out(scores, known.row_of_each_value(), known.values)
        scores.scatter_(1, truth, own)
        top = scores.amax(1, keepdim=True)
        level = (scores == top).sum(1)
        correct[rows] = ((own == top)[:, 0].double() / level).numpy()
        gap[rows] = (own - top)[:, 0].double().numpy()
        betas = _grid(scores, top) if betas is None else betas
        log_z[rows] = _log_sums(scores.sub_(top), betas)
    assert betas is not None
    return FirstAnswers(triples[:, 1], correct, gap, log_z, np.log(betas))


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


def fit_temperatures(answers: FirstAnswers, rng: np.random.Generator) -> Temperatures:
    """β of the side, and of every relation that has enough triples to gain by one of its own."""
    losses = answers.losses()
    relation = answers.relation
    fold = rng.permutation(len(relation)) % FOLDS
    judged: dict[float | None, float] = dict.fromkeys((None, *PRIORS), 0.0)
    for held in range(min(FOLDS, len(relation))):
        seen, unseen = fold != held, fold == held
        if not seen.any():
            continue
        for prior in judged:
            overall, own = _best(losses[seen], relation[seen], prior)
            place = np.full(int(relation.max()) + 1, overall)
            place[list(own)] = list(own.values())
            judged[prior] += float(losses[unseen, place[relation[unseen]]].sum())
    prior = min(judged, key=lambda p: judged[p])
    overall, own = _best(losses, relation, prior)
    betas = np.exp(answers.log_betas)
    return Temperatures(overall=float(betas[overall]), by_relation={r: float(betas[i]) for r, i in own.items()})


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
