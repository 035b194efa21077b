"""A block of questions with the sums that turn the score of any candidate into its share and its confidence."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from relwalk.discovery.best import Doubles, Links
from relwalk.errors import RelWalkError
from relwalk.evaluation.probabilities import Probabilities
from relwalk.evaluation.scores import Scores
from relwalk.exponentials import exp_
from relwalk.graph.answers import Side
from relwalk.graph.graph import Graph
from relwalk.graph.lists import Ints, Lists, Longs


@dataclass(frozen=True)
class Judge:
    """What a logit, β · scale · s, is worth: the confidence of a run that is calibrated, else the share."""

    probabilities: Probabilities | None
    missing: float | None  # facts that the graph is thought to lack; None: as many as valid has

    def inverse_temperatures(self, side: Side, relation: Ints) -> Doubles:
        if self.probabilities is None:
            return np.ones(len(relation))
        return self.probabilities.inverse_temperatures(side, relation)


@dataclass(frozen=True, eq=False)
class JudgedBlock:
    """Questions of one side. `table` holds the logits of all entities, or of those that this process has, -inf for what
    is no new answer; the sums are over all."""

    judge: Judge
    scores: Scores
    given: Ints
    relation: Ints
    table: Tensor  # (entities here, questions)
    best: Doubles  # (questions,) the greatest logit of a new answer, -inf for none
    log_new: Doubles  # log Σ exp over the new answers
    log_all: Doubles  # over all entities
    mean: Doubles  # of the logits of all entities
    spread: Doubles  # their standard deviation
    known: Lists  # the known answers of each question
    known_logits: Doubles  # of all of them, one list after the other

    @property
    def side(self) -> Side:
        return self.scores.side

    @cached_property
    def known_mean(self) -> Doubles:
        """The mean logit of the known answers to each question; 0 without any."""
        sums = np.bincount(self.known.row_of_each_value(), self.known_logits, minlength=len(self.known))
        return sums / np.maximum(self.known.lengths, 1)

    def worth(self, rows: Longs, logits: Doubles) -> Doubles:
        """Of new answers to the questions in these rows, by their logits."""
        probabilities = self.judge.probabilities
        if probabilities is None:
            return rounded(self.share(rows, logits))
        known = self.known.lengths[rows]
        asked = known > 0
        features = np.stack(
            [
                np.minimum(logits - self.log_new[rows], 0.0),
                logits - self.mean[rows],
                np.where(asked, np.maximum(logits, -1e9) - self.known_mean[rows], 0.0),
                np.log1p(known),
                self.spread[rows],
            ],
            -1,
        )
        return rounded(
            probabilities.confidences_from(self.side, self.relation[rows], asked, features, missing=self.judge.missing)
        )

    def share(self, rows: Longs, logits: Doubles) -> Doubles:
        found: Doubles = np.exp(logits - self.log_all[rows])
        return found

    def links(self, rows: Longs, answers: Ints, logits: Doubles, worth: Doubles, ranks: Ints) -> Links:
        share = self.share(rows, logits)
        return Links.from_answers(self.side, self.given[rows], self.relation[rows], answers, worth, share, ranks)

    def unstrike(self) -> None:
        """Put the logits of known answers back into the table."""
        rows = as_tensor(self.known.row_of_each_value(), self.table)
        self.table[as_tensor(self.known.values, self.table), rows] = torch.from_numpy(self.known_logits).to(self.table)

    def logits(self, rows: Longs, answers: NDArray[np.integer]) -> Doubles:
        return as_array(self.scores.pick_true(self.table, self.scores.places(answers), rows))


def judged_block(
    judge: Judge, graph: Graph, scores: Scores, given: Ints, relation: Ints, table: Tensor, work: Tensor
) -> JudgedBlock:
    """From the scores of all entities, which are written over; `work` is room for as many numbers again.

    Several processes judge together, each from the scores of its own entities.
    """
    side, together, scale = scores.side, scores.together, scores.model.scale
    known = graph.known[side].lookup(given, relation)
    table.mul_(torch.from_numpy(scale * judge.inverse_temperatures(side, relation)).to(table))
    top = together.largest(table.amax(0))
    if not bool(top.isfinite().all()):
        raise RelWalkError("the model gives scores that are not numbers: it cannot discover. Train it again.")
    torch.sub(table, top, out=work)  # at most 0
    own = np.flatnonzero(~graph.has_loops[relation])  # these are not answers to questions about themselves
    own_at = _cells(scores.places(given[own]), own, table)
    work[own_at] = 0.0
    entities = len(graph.entities) - np.bincount(own, minlength=len(given))
    mean = as_array(together.sum(work.sum(0))) / np.maximum(entities, 1)
    lengths = torch.linalg.vector_norm(work, dim=0).double()
    squares = as_array(together.sum(lengths**2)) / np.maximum(entities, 1)
    known_place, row = scores.places(known.values), known.row_of_each_value()
    heights = as_array(scores.pick_true(work, known_place, row))
    known_at = _cells(known_place, row, table)
    work[own_at] = work[known_at] = table[own_at] = table[known_at] = -torch.inf
    best = together.largest(table.amax(0))
    shift = torch.where(best.isneginf(), 0.0, best - top)  # sums are of differences to the best new answer
    total = as_array(together.sum(exp_(work.sub_(shift)).sum(0).masked_fill_(best.isneginf(), 0.0)))
    highest = as_array(top)
    with np.errstate(divide="ignore"):
        log_new = highest + as_array(shift) + np.log(total)
    log_all = log_new.copy()
    np.logaddexp.at(log_all, row, highest[row] + heights)
    return JudgedBlock(
        judge,
        scores,
        given,
        relation,
        table,
        as_array(best),
        log_new,
        log_all,
        highest + mean,
        np.sqrt(np.maximum(squares - mean**2, 0.0)),
        known,
        highest[row] + heights,
    )


def _cells(places: Longs, questions: Longs, table: Tensor) -> tuple[Tensor, Tensor]:
    """Those cells of a table that are here."""
    here = places < len(table)
    return as_tensor(places[here], table), as_tensor(questions[here], table)


def rounded(values: Doubles) -> Doubles:
    """To the precision of float32: what is equal is then equal to the bit, wherever in an array it was computed."""
    return values.astype(np.float32).astype(np.float64)


def as_array(values: Tensor) -> Doubles:
    return values.double().cpu().numpy()


def as_tensor(array: NDArray[np.integer], like: Tensor) -> Tensor:
    return torch.from_numpy(array.astype(np.int64)).to(like.device)
