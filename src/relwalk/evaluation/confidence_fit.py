"""Confidences: how often a new link like this one is a held-out fact.

Questions of valid are asked as if the graph did not know those answers of theirs that valid holds: these candidates are
facts. All of a question's are hidden together, as eight missing neighbours would be. Beside these stand questions as
the graph leaves them, drawn from all that it has some answer to, and from all others: their candidates count as false.
Each sample is weighted for all it stands for, so that the rates are those of all questions, of which few have a missing
answer, and not those of questions that are known to have one. Candidates are the first new answers; of those after the
first `SURE` only a part is kept, with more weight.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression, minimize
from torch import Tensor

from relwalk.evaluation.candidate_features import FEATURES, RISING, features
from relwalk.evaluation.probabilities import Floats, Odds, Temperatures
from relwalk.evaluation.score_blocks import leave_out, sample, score_blocks
from relwalk.graph.answers import KnownAnswers, Side
from relwalk.graph.graph import Graph
from relwalk.graph.lists import Ints, Lists, Longs
from relwalk.models.base import Scorer

Bools = NDArray[np.bool_]
CANDIDATES, SURE, EVERY = 64, 8, 8  # new answers looked at; those kept in any case; of the others one in so many
RIDGE = 1.0  # pulls the offset of a relation to 0 like one fact at even odds
FOLDS = 3
SCARCE = 10  # facts that a regression needs
FEWEST, NEAR = 15, 8.0  # facts of a level of the map; how many times the odds of the next it may have and be joined
TAIL, BEYOND = 30.0, 3.0  # log-odds over which the map goes on, one to one, below its first knot and above its last


@dataclass(frozen=True, eq=False)
class Candidates:
    """Candidates of many questions; a row is one."""

    features: Floats  # (rows, features)
    fact: Bools  # (rows,) a hidden one
    weight: Floats  # (rows,) how many it stands for
    relation: Longs  # (rows,)
    question: Longs  # (rows,)

    def select(self, rows: Bools) -> Candidates:
        return Candidates(
            self.features[rows], self.fact[rows], self.weight[rows], self.relation[rows], self.question[rows]
        )

    @staticmethod
    def join(parts: list[Candidates]) -> Candidates:
        columns = zip(*((p.features, p.fact, p.weight, p.relation, p.question) for p in parts), strict=True)
        return Candidates(*(np.concatenate(column) for column in columns))


@dataclass(frozen=True, eq=False)
class Questions:
    """Questions of one side: what is given, which answers are hidden, and how many each stands for."""

    given: Longs
    relation: Longs
    hidden: Lists
    weight: float


def draw_questions(
    graph: Graph, side: Side, triples: Ints, most: int, rng: np.random.Generator
) -> tuple[Questions, Questions, Questions]:
    """Questions whose answers among the triples are hidden, questions with some answer, and questions with none."""
    relations, every = len(graph.relations), len(graph.entities) * len(graph.relations)
    answers, keys = KnownAnswers.from_triples(triples, side, relations), graph.known[side].keys
    some = sample(len(answers.keys), most, rng)

    def questions(drawn: Longs, hidden: Lists, count: int) -> Questions:
        return Questions(drawn // relations, drawn % relations, hidden, count / max(1, len(drawn)))

    def whole(drawn: Longs, count: int) -> Questions:
        return questions(drawn, Lists(np.zeros(len(drawn) + 1, np.int64), np.zeros(0, np.int32)), count)

    return (
        questions(answers.keys[some], answers.lists.take(some), len(answers.keys)),
        whole(keys[sample(len(keys), most, rng)], len(keys)),
        whole(_missing_keys(keys, every, most, rng), every - len(keys)),
    )


def _missing_keys(keys: Longs, every: int, most: int, rng: np.random.Generator) -> Longs:
    """Numbers below `every` that are not among the keys, drawn at random."""
    if every <= 1 << 20:
        rest = np.setdiff1d(np.arange(every), keys)
        return rest[sample(len(rest), most, rng)]
    drawn = np.unique(rng.integers(0, every, 4 * most))
    drawn = drawn[~np.isin(drawn, keys)]
    return drawn[sample(len(drawn), most, rng)]


def candidates(
    model: Scorer,
    graph: Graph,
    side: Side,
    asked: Iterable[Questions],
    temperatures: Temperatures,
    rng: np.random.Generator,
) -> tuple[Candidates, Candidates]:
    """The candidates of questions that the graph knows an answer to, and of those that it does not."""
    betas = np.full(len(graph.relations), temperatures.overall)
    betas[list(temperatures.by_relation)] = list(temperatures.by_relation.values())
    parts: list[Candidates] = []
    answered: list[Bools] = []
    first = 0
    for questions in asked:
        for rows, scores in score_blocks(model, graph, side, questions.given, questions.relation):
            relation, hidden = questions.relation[rows], questions.hidden.take(rows)
            known = _without(graph.known[side].lookup(questions.given[rows], relation), hidden)
            columns, there = _first_new(scores, known)
            fact = np.isin(
                _pairs(np.arange(len(rows))[:, None], columns), _pairs(hidden.row_of_each_value(), hidden.values)
            )
            sure = fact | (np.arange(columns.shape[1]) < SURE)
            row, place = np.nonzero((sure | (rng.random(columns.shape) * EVERY < 1)) & there)
            x = features(scores, betas[relation], known, columns)[row, place]
            weight = np.where(sure[row, place], 1.0, EVERY) * questions.weight
            parts.append(Candidates(x, fact[row, place], weight, relation[row], first + rows[row]))
            answered.append(known.lengths[row] > 0)
        first += len(questions.given)
    everything, has = Candidates.join(parts), np.concatenate(answered)
    return everything.select(has), everything.select(~has)


def _first_new(scores: Tensor, known: Lists) -> tuple[Longs, Bools]:
    """The best answers that are not known, and whether there are so many.  # (questions, candidates) both"""
    new = scores.clone()
    leave_out(new, known.row_of_each_value(), known.values)
    best = new.topk(min(CANDIDATES, new.shape[1]))
    return best.indices.numpy(), best.values.numpy() > -np.inf


def _pairs(rows: NDArray[np.integer], values: NDArray[np.integer]) -> Longs:
    """A row and a value as one number."""
    return np.asarray(rows.astype(np.int64) << 32 | values)


def _without(lists: Lists, hidden: Lists) -> Lists:
    """The lists without what is hidden of each."""
    row = lists.row_of_each_value()
    stays = ~np.isin(_pairs(row, lists.values), _pairs(hidden.row_of_each_value(), hidden.values))
    offsets = np.concatenate([[0], np.cumsum(np.bincount(row[stays], minlength=len(lists)))])
    return Lists(offsets.astype(np.int64), lists.values[stays])


def fit_odds(found: Candidates, rng: np.random.Generator) -> Odds:
    """A logistic regression with an offset for each relation, then a map fitted to what it says of unseen folds."""
    facts = int(found.fact.sum())
    if facts < SCARCE:  # all candidates have the odds that any has
        true, false = found.weight[found.fact].sum(), found.weight[~found.fact].sum()
        odds = float(np.log((true + 0.5) / (false + CANDIDATES)))
        return Odds(intercept=0.0, slopes=(1.0, *[0.0] * (len(FEATURES) - 1)), knots=(0.0,), values=(min(odds, 0.0),))
    plain = _regression(found)
    fold = rng.integers(0, FOLDS, int(found.question.max()) + 1)[found.question]
    unseen = np.empty(len(fold))
    for held in range(FOLDS):
        rest, own = found.select(fold != held), found.select(fold == held)
        fitted = _regression(rest) if int(rest.fact.sum()) >= SCARCE else plain
        unseen[fold == held] = fitted.linear(_offsets(fitted, own.relation), own.features)
    knots, values = _rising_map(unseen, found)
    return plain.model_copy(update={"knots": knots, "values": values})


def _offsets(odds: Odds, relation: Longs) -> Floats:
    table = np.zeros(int(relation.max(initial=0)) + 1)
    for r, offset in odds.by_relation.items():
        if r < len(table):
            table[r] = offset
    return table[relation]


def _regression(found: Candidates) -> Odds:
    """Weighted maximum likelihood; slopes of what rises with the score are not negative, offsets are drawn to 0."""
    weight = found.weight * (found.fact.sum() / found.weight[found.fact].sum())  # a fact counts as one
    mean, scale = found.features.mean(0), found.features.std(0) + 1e-9
    x = (found.features - mean) / scale
    kinds, place = np.unique(found.relation, return_inverse=True)
    true, count = found.fact.astype(np.float64), x.shape[1]

    def loss(p: Floats) -> tuple[float, Floats]:
        slopes, offsets = p[1 : count + 1], p[count + 1 :]
        log_odds = p[0] + x @ slopes + offsets[place]
        value = weight @ (np.logaddexp(0.0, log_odds) - true * log_odds)
        error = weight * (1 / (1 + np.exp(-log_odds)) - true)
        own = np.bincount(place, error, minlength=len(kinds)) + RIDGE * offsets
        slope = np.concatenate([[error.sum()], error @ x + 0.01 * slopes, own])
        return float(value + 0.005 * slopes @ slopes + RIDGE / 2 * offsets @ offsets), slope

    start = np.zeros(1 + count + len(kinds))
    start[0] = np.log(true @ weight / max(weight @ (1 - true), 1e-9))
    bounds = [(None, None), *[(0.0, None)] * RISING, *[(None, None)] * (len(start) - 1 - RISING)]
    p = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 300}).x
    slopes = p[1 : count + 1] / scale
    return Odds(
        intercept=float(p[0] - slopes @ mean),
        slopes=tuple(slopes.tolist()),
        by_relation=dict(zip(kinds.tolist(), p[count + 1 :].tolist(), strict=True)),
        knots=(0.0,),
        values=(0.0,),
    )


def _rising_map(linear: Floats, found: Candidates) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """From what a regression says to log-odds as they were: isotonic regression, a knot for each of its levels.

    A false candidate that was not drawn is thought to stand at the top. Levels without a fact lie below the knots.
    """
    order = np.argsort(linear)
    doubt = float(np.median(found.weight[~found.fact])) if (~found.fact).any() else 1.0
    linear = np.append(linear[order], linear[order[-1]])
    weight, fact = np.append(found.weight[order], doubt), np.append(found.fact[order], False)
    rate = isotonic_regression(fact.astype(np.float64), weights=weight).x
    level = np.concatenate([[0], np.cumsum(np.diff(rate) > 1e-12)])
    of_facts = weight * fact
    columns = (fact.astype(np.float64), of_facts, weight - of_facts, linear * of_facts)
    sums: Floats = np.stack([np.bincount(level, column) for column in columns], 1).astype(np.float64)
    knots, values = _levels(sums[sums[:, 0] > 0])
    knots = np.concatenate([[knots[0] - TAIL], knots, [knots[-1] + BEYOND]])
    values = np.concatenate([[values[0] - TAIL], values, [values[-1] + BEYOND]])
    rises = np.concatenate([[True], np.diff(knots) > 0])
    return tuple(knots[rises].tolist()), tuple(np.maximum.accumulate(values)[rises].tolist())


def _levels(sums: Floats) -> tuple[Floats, Floats]:
    """Knots and log-odds of levels, each given by facts, their weight, the weight of others, and Σ weight · place.

    From the top down, one with few facts is joined to the next if that is not far below: few facts flatter themselves.
    """
    groups = [sums[-1]]
    for level in sums[-2::-1]:
        top = groups[-1]
        near = top[1] * max(level[2], 1e-9) < NEAR * level[1] * max(top[2], 1e-9)
        if top[0] < FEWEST and near:
            groups[-1] = top + level
        else:
            groups.append(level)
    _, true, false, place = np.array(groups[::-1]).T
    return place / true, np.log(true) - np.log(np.maximum(false, 1e-9 * true))
