"""The probability that a triple is true, from its score: isotonic regression on labelled triples.

    log-odds = m(s - θ_R) + logit(base rate) - logit(share of true ones among the labelled),   m: a non-decreasing map

θ_R is the threshold of the relation. What m is fitted to is told with thresholds of other folds of valid, which are not
as good as on the triples that chose them. The base rate is how many of all the triples asked about are true.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from relwalk.evaluation.calibration import BINS, expected_calibration_error
from relwalk.evaluation.metrics import Floats

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Truth:
    """How a score above or below the threshold of its relation becomes a probability; with a base rate."""

    knots: tuple[float, ...]  # of the map, straight between them and level beyond
    values: tuple[float, ...]  # log-odds, not falling
    labelled: float  # share of true ones among the triples that it was fitted on
    base_rate: float

    def probability(self, margins: Floats) -> Floats:
        """Of scores less their thresholds.  # (triples,)"""
        shift = _logit(self.base_rate) - _logit(self.labelled)
        return np.asarray(1 / (1 + np.exp(-np.interp(margins, self.knots, self.values) - shift)))

    def as_dict(self) -> dict[str, Any]:
        return {"base_rate": self.base_rate, "labelled_share": self.labelled}


def fit_truth(margins: Floats, labels: Bools, base_rate: float | None) -> Truth:
    """Levels of the isotonic map are its knots; the base rate is the labelled share unless said.

    One more true triple is thought to stand at the bottom and a false one at the top: nothing is quite true or false.
    """
    order = np.argsort(margins, kind="stable")
    x = np.concatenate([margins[order[:1]], margins[order], margins[order[-1:]]])
    true = np.concatenate([[1.0], labels[order].astype(np.float64), [0.0]])
    rate = isotonic_regression(true).x
    level = np.concatenate([[0], np.cumsum(np.diff(rate) > 1e-12)])
    counts = np.bincount(level)
    knots, share = np.bincount(level, x) / counts, np.bincount(level, true) / counts
    rises = np.concatenate([[True], np.diff(knots) > 0])
    values = np.log(share) - np.log1p(-share)
    labelled = float((labels.sum() + 1) / (len(labels) + 2))
    known = labelled if base_rate is None else base_rate
    return Truth(tuple(knots[rises].tolist()), tuple(values[rises].tolist()), labelled, known)


def truth_error(p: Floats, labels: Bools, base_rate: float | None) -> tuple[float, float]:
    """ECE and Brier score; with a base rate, true and false triples are weighted to it."""
    weights = np.ones(len(p))
    share = labels.mean()
    if base_rate is not None and 0 < share < 1:
        weights = np.where(labels, base_rate / share, (1 - base_rate) / (1 - share))
    ece = expected_calibration_error(p, labels.astype(np.float64), BINS, weights)
    return ece, float(np.average((p - labels) ** 2, weights=weights))


def _logit(p: float) -> float:
    return float(np.log(p) - np.log1p(-p))
