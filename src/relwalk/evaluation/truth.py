"""The probability that a triple is true, from its score: logistic regression on labelled triples (Platt 1999).

    log-odds = a (s - θ_R) / spread + b + logit(base rate) - logit(share of true ones among the labelled)

θ_R is the threshold of the relation. What a and b are fitted to is told with thresholds of other folds of valid, which
are not as good as on the triples that chose them. The base rate is how many of all the triples asked about are true.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from relwalk.evaluation.calibration import BINS, expected_calibration_error
from relwalk.evaluation.metrics import Floats

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Truth:
    """How a score above or below the threshold of its relation becomes a probability; with a base rate."""

    slope: float  # not negative: a higher score is never less probable
    intercept: float
    spread: float
    labelled: float  # share of true ones among the triples that it was fitted on
    base_rate: float

    def probability(self, margins: Floats) -> Floats:
        """Of scores less their thresholds.  # (triples,)"""
        shift = _logit(self.base_rate) - _logit(self.labelled)
        log_odds = np.clip(self.slope * margins / self.spread + self.intercept + shift, -700, 700)
        return np.asarray(1 / (1 + np.exp(-log_odds)))

    def as_dict(self) -> dict[str, Any]:
        return {"base_rate": self.base_rate, "labelled_share": self.labelled}


def fit_truth(margins: Floats, labels: Bools, base_rate: float | None) -> Truth:
    """Maximum likelihood, with a pull of one triple to no slope; the base rate is the labelled share unless said."""
    spread = float(margins.std()) or 1.0
    z, true = margins / spread, labels.astype(np.float64)
    x = np.stack([z, np.ones(len(z))], 1)

    def loss(p: Floats) -> tuple[float, Floats]:
        log_odds = x @ p
        value = np.sum(np.logaddexp(0.0, log_odds) - true * log_odds) + p @ p / 2
        return float(value), x.T @ (1 / (1 + np.exp(-log_odds)) - true) + p

    slope, intercept = minimize(loss, np.zeros(2), jac=True, method="L-BFGS-B", bounds=[(0, None), (None, None)]).x
    # As if there were one more of each kind: never quite 0 or 1.
    labelled = float((true.sum() + 1) / (len(true) + 2))
    return Truth(float(slope), float(intercept), spread, labelled, labelled if base_rate is None else base_rate)


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
