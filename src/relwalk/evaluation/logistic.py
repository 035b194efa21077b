"""Logistic regression with an offset for each of many groups, by Newton's steps.

    log-odds = x·a + b_group,      loss = Σ weight (log(1 + exp(log-odds)) - true log-odds) + Σ ridge a² / 2
                                          + group_ridge Σ b² / 2

Some slopes a may not become negative. The offsets are as many as there are relations, but each has a second derivative
with itself and the slopes alone: a step is solved for the few slopes first (the Schur complement).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Floats = NDArray[np.float64]
STEPS, HALVINGS = 50, 30
NEAR = 1e-4  # a step that moves no slope and no offset further is the last: Newton has then met the minimum to 1e-8


@dataclass(frozen=True, eq=False)
class LogisticRegression:
    """Rows with their weights, to be fitted."""

    x: Floats  # (rows, slopes)
    group: NDArray[np.int64]  # (rows,)
    true: Floats  # (rows,) 0 or 1
    weight: Floats  # (rows,)
    ridge: Floats  # (slopes,)
    group_ridge: float
    not_negative: NDArray[np.bool_]  # (slopes,)

    def solve(self, start: Floats) -> tuple[Floats, Floats]:
        """Slopes and offsets of the least loss, from slopes to start with."""
        slopes, offsets = start, np.zeros(int(self.group.max()) + 1)
        loss = self._loss(slopes, offsets)
        for _ in range(STEPS):
            step_slopes, step_offsets = self._newton_step(slopes, offsets)
            length = 1.0
            for _ in range(HALVINGS):
                new_slopes, new_offsets = self._move(slopes, length * step_slopes), offsets + length * step_offsets
                if (new_loss := self._loss(new_slopes, new_offsets)) <= loss:
                    break
                length /= 2
            else:
                break
            moved = max(np.abs(new_slopes - slopes).max(), np.abs(new_offsets - offsets).max())
            slopes, offsets, loss = new_slopes, new_offsets, new_loss
            if moved < NEAR:
                break
        return slopes, offsets

    def _move(self, slopes: Floats, step: Floats) -> Floats:
        moved = slopes + step
        return np.where(self.not_negative, np.maximum(moved, 0.0), moved)

    def _loss(self, slopes: Floats, offsets: Floats) -> float:
        log_odds = self.x @ slopes + offsets[self.group]
        value = self.weight @ (np.logaddexp(0.0, log_odds) - self.true * log_odds)
        return float(value + self.ridge @ slopes**2 / 2 + self.group_ridge * offsets @ offsets / 2)

    def _newton_step(self, slopes: Floats, offsets: Floats) -> tuple[Floats, Floats]:
        p = expit(self.x @ slopes + offsets[self.group])
        error, curve = self.weight * (p - self.true), self.weight * p * (1 - p)  # (rows,)
        of_slopes = error @ self.x + self.ridge * slopes
        of_groups = self._by_group(error) + self.group_ridge * offsets
        curved = curve[:, None] * self.x
        mixed = np.stack([self._by_group(column) for column in curved.T])  # (slopes, groups)
        own = self._by_group(curve) + self.group_ridge  # (groups,)
        free = ~(self.not_negative & (slopes <= 0) & (of_slopes > 0))  # the others stay at 0
        ratio = mixed[free] / own  # (free, groups)
        schur = (self.x.T @ curved + np.diag(self.ridge))[np.ix_(free, free)] - ratio @ mixed[free].T
        schur[np.diag_indices_from(schur)] += 1e-9
        step = np.zeros_like(slopes)
        step[free] = -np.linalg.solve(schur, of_slopes[free] - ratio @ of_groups)
        return step, -(of_groups + step @ mixed) / own

    def _by_group(self, values: Floats) -> Floats:
        return np.asarray(np.bincount(self.group, values, minlength=int(self.group.max()) + 1), np.float64)
