"""How much of the time a trial gets, and how many epochs that is.

A trial is a number of epochs, not a time, so that its settings repeat it to the bit: a few steps are measured first.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from relwalk.checks import MOST
from relwalk.evaluation.tuning import Trial
from relwalk.experiment import VALIDATION_BY_TIME, train
from relwalk.graph.graph import Graph
from relwalk.planning import plan
from relwalk.runs.checkpoint import Epoch, Progress

FIRST = 0.5  # share of the budget that the default recipe may take
AIM = 30  # trials that a search has, when nothing else bounds their number
LONGER = 1.5  # times what the default recipe took: what a trial may take for a slower model
LEAST_LEFT = 0.02  # share of the budget below which no trial is begun
PROBE = 0.02  # share of a trial's time that its pace is measured for
SHORTEST, LONGEST = 0.05, 5.0  # seconds of that
CURVE = 10  # validations that a trial has, at least, so that its curve can be judged
SAFETY = 0.9  # of its share that a trial plans to use


def share_of(left: float, budget: float, trials: Sequence[Trial], wanted: int | None, processes: int) -> float | None:
    """The seconds that the next trial may take; None when there are to be no more.

    What earlier trials did not use goes to later ones.
    """
    number = len(trials)
    if wanted is not None and number >= wanted:
        return None
    if number == 0:
        return FIRST * budget
    if left < LEAST_LEFT * budget:
        return None
    if wanted is not None:
        return min(left, left * processes / (wanted - number))
    return min(left, max(LONGER * trials[0].seconds, left / AIM))


class Pace:
    """Watches a training for how long its steps and validations take."""

    def __init__(self) -> None:
        self.began = time.perf_counter()
        self.marks: list[tuple[float, float]] = []  # time and epochs, with their fraction, after each step
        self.validating = 0.0
        self.validation = 0.0  # seconds of the last one

    def step(self, epoch: int, step: int, steps: int, loss: float) -> None:
        self.marks.append((time.perf_counter() - self.validating, epoch - 1 + step / steps))

    def epoch(self, record: Epoch, progress: Progress) -> None:
        if record.validation_seconds is not None:
            self.validation = record.validation_seconds
            self.validating += record.validation_seconds

    @property
    def seconds(self) -> float:
        """Of an epoch. The first step, which has the warming up, counts only where it is the only one."""
        (last, epochs), (first, before) = self.marks[-1], self.marks[0]
        if len(self.marks) == 1:
            first, before = self.began, 0.0
        return max(last - first, 1e-9) / (epochs - before)

    def epochs_in(self, share: float, every: int, most: int) -> int:
        """How many fit into so many seconds with a validation every so many of them."""
        return max(1, min(most, int(SAFETY * share / (self.seconds + self.validation / every))))


def plan_epochs(graph: Graph, settings: dict[str, Any], share: float, **watched: Any) -> dict[str, int]:
    """Epochs, validations and patience of a trial that fit into its share of the time, and no more than it would have.

    `settings` are those of its training. What was given by hand stays.
    """
    training = plan(graph, **settings).training
    every, epochs = training.validate_every, training.epochs
    pace = _measured(graph, settings, share, watched) if "epochs" not in settings else None
    if pace is not None:
        epochs = pace.epochs_in(share, every, training.epochs)
    found = {"epochs": epochs}
    if "validate_every" not in settings and epochs // CURVE < every:
        shorter = max(1, epochs // CURVE)
        found["validate_every"] = shorter
        if pace is not None:
            found["epochs"] = pace.epochs_in(share, shorter, training.epochs)
        if "patience" not in settings:
            found["patience"] = min(MOST, -(-training.patience * every // shorter))  # as many epochs as before
    return found


def _measured(graph: Graph, settings: dict[str, Any], share: float, watched: dict[str, Any]) -> Pace:
    pace = Pace()
    probe = min(max(PROBE * share, SHORTEST), LONGEST)
    train(graph, **settings, budget=probe, observer=pace, progress=False, **watched)
    pace.validation *= len(graph.valid) / min(len(graph.valid), VALIDATION_BY_TIME)
    return pace
