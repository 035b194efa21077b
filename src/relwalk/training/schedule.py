"""How the learning rates change over a training."""

from __future__ import annotations

import math

from relwalk.training.settings import TrainingSettings


def rate_factor(settings: TrainingSettings, epochs_done: float, drops: int) -> float:
    """What the rates are multiplied with after so many epochs (with their fraction) and drops at a plateau.

    warm-up: rises from 0 over the first `warmup` epochs
    linear: 1 - done        cosine: (1 + cos(π done)) / 2        plateau: factor^drops
    """
    warm = min(1.0, epochs_done / settings.warmup) if settings.warmup else 1.0
    rest = max(settings.epochs - settings.warmup, 1e-9)
    done = min(1.0, max(0.0, epochs_done - settings.warmup) / rest)
    falls = {
        "constant": 1.0,
        "linear": 1 - done,
        "cosine": (1 + math.cos(math.pi * done)) / 2,
        "plateau": settings.plateau_factor**drops,
    }
    return warm * falls[settings.schedule]
