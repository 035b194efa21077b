"""Logistic regression by Newton's steps finds what a general minimiser finds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from relwalk.evaluation.logistic import Floats, LogisticRegression

SLOPES, GROUPS = 6, 12


@pytest.mark.parametrize("seed", range(6))
def test_it_is_the_least_loss_within_the_bounds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = 800
    x = np.column_stack([np.ones(rows), rng.normal(size=(rows, SLOPES - 1))])
    group = rng.integers(0, GROUPS, rows)
    log_odds = x @ np.array([-2.0, *rng.normal(size=SLOPES - 1)]) + rng.normal(size=GROUPS)[group]
    regression = LogisticRegression(
        x=x,
        group=group,
        true=(rng.random(rows) < 1 / (1 + np.exp(-log_odds))).astype(np.float64),
        weight=rng.choice([1.0, 8.0, 300.0], rows),
        ridge=np.array([0.0, *[0.01] * (SLOPES - 1)]),
        group_ridge=1.0,
        not_negative=np.arange(SLOPES) % 2 == 1,
    )

    def loss(p: Floats) -> float:
        return regression._loss(p[:SLOPES], p[SLOPES:])

    bounds = [(0.0 if low else None, None) for low in regression.not_negative] + [(None, None)] * GROUPS
    general = minimize(loss, np.zeros(SLOPES + GROUPS), method="L-BFGS-B", bounds=bounds, options={"maxfun": 10**6})
    slopes, offsets = regression.solve(np.zeros(SLOPES))
    assert bool((slopes[regression.not_negative] >= 0).all())
    assert loss(np.concatenate([slopes, offsets])) <= general.fun * (1 + 1e-9)


def test_rows_that_a_line_divides_stay_finite() -> None:
    x = np.column_stack([np.ones(20), np.linspace(-1, 1, 20)])
    regression = LogisticRegression(
        x, np.zeros(20, np.int64), (x[:, 1] > 0).astype(np.float64), np.ones(20), np.array([0.0, 0.01]), 1.0, x[0] > 2
    )
    slopes, offsets = regression.solve(np.zeros(2))
    assert np.isfinite(slopes).all() and np.isfinite(offsets).all() and slopes[1] > 5
