"""How the learning rates and the weight decay change over a training. A schedule is a class and a line in SCHEDULES."""

from __future__ import annotations

import math
from typing import ClassVar

from relwalk.checks import MOST
from relwalk.space import Between
from relwalk.training.common import CommonSettings, Named, setting


class Schedule(Named):
    """What the rates are multiplied with."""

    falls: ClassVar[bool] = False  # by the share of the training that is done

    def factor(self, done: float, drops: int) -> float:
        """After this share of the training, warm-up aside, and so many drops at a plateau."""
        return 1.0

    def drops_after(self, validations_without_gain: int) -> bool:
        """Whether the rates drop now."""
        return False


class Constant(Schedule):
    """1"""


class Linear(Schedule):
    """1 - done"""

    falls = True

    def factor(self, done: float, drops: int) -> float:
        return 1 - done


class Cosine(Schedule):
    """(1 + cos(π done)) / 2"""

    falls = True

    def factor(self, done: float, drops: int) -> float:
        return (1 + math.cos(math.pi * done)) / 2


class Plateau(Schedule):
    """factor^drops, a drop whenever validation found nothing better for a while."""

    plateau_factor: float = setting(
        0.5, "what a plateau multiplies the rates with", search=Between(0.1, 0.8), gt=0, lt=1
    )
    plateau_patience: int = setting(1, "validations without a better figure that make a plateau", ge=1, le=MOST)

    def factor(self, done: float, drops: int) -> float:
        return self.plateau_factor**drops

    def drops_after(self, validations_without_gain: int) -> bool:
        return validations_without_gain % self.plateau_patience == 0


SCHEDULES: dict[str, type[Schedule]] = {
    "constant": Constant,
    "linear": Linear,
    "cosine": Cosine,
    "plateau": Plateau,
}


def rate_factor(
    schedule: Schedule, settings: CommonSettings, epochs_done: float, drops: int, seconds_done: float = 0.0
) -> float:
    """What the rates are multiplied with after so many epochs (with their fraction) and drops at a plateau.

    They rise from 0 over the first `warmup` epochs; over the others they change as the schedule has it. With a budget
    the share that is done is that of the time, or that of the epochs where those end first.
    """
    warm = min(1.0, epochs_done / settings.warmup) if settings.warmup else 1.0
    return warm * schedule.factor(_share_done(settings, epochs_done, seconds_done, settings.warmup), drops)


def decay_factor(settings: CommonSettings, epochs_done: float, seconds_done: float = 0.0) -> float:
    """What l2, n3 and dura are multiplied with: decay_end^done, from 1 at the start to `decay_end` at the end.

    A path of regularisation with warm starts: what a strong decay found is where a weaker one goes on from, and the
    best epoch on valid says which strength serves the graph.
    """
    return math.pow(settings.decay_end, _share_done(settings, epochs_done, seconds_done))


def _share_done(settings: CommonSettings, epochs_done: float, seconds_done: float, before: float = 0.0) -> float:
    """How much of the training is done, by its epochs (those `before` aside) or its time, whichever ends first."""
    rest = max(settings.epochs - before, 1e-9)
    return min(1.0, max(0.0, (epochs_done - before) / rest, seconds_done / settings.seconds))
