"""All that speaks for a triple in one number: a logistic regression of its features, for each relation.

    log-odds = a·x + a_R·x + b_R,      x: `triple_features`, standardised on valid

The shared slopes a are fitted to all labelled triples of valid, then those of a relation that has enough of them, held
near the shared ones by a ridge. A triple of valid is judged by a fit to the other folds, so that thresholds and
probabilities are told with figures as good as new triples will have.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from relwalk.evaluation.logistic import LogisticRegression
from relwalk.evaluation.metrics import Floats
from relwalk.evaluation.triple_features import triple_features
from relwalk.graph.graph import Graph
from relwalk.graph.lists import Ints
from relwalk.models.base import Scorer
from relwalk.progress import Count

Bools = NDArray[np.bool_]
RIDGE = 3.0  # on slopes of standardised features; on valid of FB13 0.3 to 30 came to the same within 0.002
FREE = 0.01  # of the shared log-odds in the fit of a relation: they count as they are found
FEWEST = 20  # true and false triples of a relation, each, for slopes of its own
FOLDS = 5


@dataclass(frozen=True, eq=False)
class Combination:
    """From the features of triples to log-odds."""

    mean: Floats  # (features,)
    deviation: Floats  # (features,)
    slopes: Floats  # (relations, features)
    offsets: Floats  # (relations,)

    def log_odds(self, triples: Ints, features: Floats) -> Floats:
        """Of each triple.  # (triples,)"""
        relation, x = triples[:, 1], (features - self.mean) / self.deviation
        return np.asarray((x * self.slopes[relation]).sum(1) + self.offsets[relation])


def fit_combination(triples: Ints, features: Floats, labels: Bools, relations: int) -> Combination:
    """Slopes that all relations share, and their own where a relation has enough triples."""
    mean, deviation = features.mean(0), features.std(0)
    deviation = np.where(deviation > 1e-9, deviation, 1.0)
    x, true = (features - mean) / deviation, labels.astype(np.float64)
    shared, offset = _solve(x, true, np.full(x.shape[1], RIDGE))
    slopes, offsets = np.tile(shared, (relations, 1)), np.full(relations, offset)
    for relation in np.unique(triples[:, 1]).tolist():
        own = triples[:, 1] == relation
        if min(labels[own].sum(), (~labels[own]).sum()) < FEWEST:
            continue
        together = x[own] @ shared + offset
        a, b = _solve(np.column_stack([together, x[own]]), true[own], np.array([FREE, *[RIDGE] * x.shape[1]]))
        slopes[relation], offsets[relation] = a[0] * shared + a[1:], a[0] * offset + b
    return Combination(mean, deviation, slopes, offsets)


def _solve(x: Floats, true: Floats, ridge: Floats) -> tuple[Floats, float]:
    ones, none = np.ones(len(x)), np.zeros(x.shape[1], bool)
    regression = LogisticRegression(x, np.zeros(len(x), np.int64), true, ones, ridge, 1e-6, none)
    slopes, offsets = regression.solve(np.zeros(x.shape[1]))
    return slopes, float(offsets[0])


def combined_scores(
    model: Scorer, graph: Graph, valid: tuple[Ints, Bools], seed: int, count: Count
) -> tuple[Floats, Callable[[Ints], Floats]]:
    """The log-odds of the labelled triples of valid, each by the other folds, and of any triples by all of valid."""
    triples, labels = valid
    relations = len(graph.relations)
    features = triple_features(model, graph, triples, count)
    fold = np.random.default_rng([seed, FOLDS, len(triples)]).permutation(len(triples)) % FOLDS
    judged = np.empty(len(triples))
    for held in range(FOLDS):
        own = fold == held
        rest = ~own if not own.all() else own
        fitted = fit_combination(triples[rest], features[rest], labels[rest], relations)
        judged[own] = fitted.log_odds(triples[own], features[own])
    whole = fit_combination(triples, features, labels, relations)

    def scores(asked: Ints) -> Floats:
        return whole.log_odds(asked, triple_features(model, graph, asked, count))

    return judged, scores
