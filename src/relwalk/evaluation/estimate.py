"""A figure with its interval, and a part of the analysis that does not apply to a model."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from relwalk.display import Shown

Floats = NDArray[np.float64]
LEVEL = 0.95  # of every interval


@dataclass(frozen=True)
class Estimate:
    """A figure and its 95% bootstrap interval."""

    value: float
    low: float
    high: float

    def contains(self, x: float) -> bool:
        return self.low <= x <= self.high

    def as_dict(self) -> dict[str, float]:
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.value:.3g} [{self.low:.3g}, {self.high:.3g}]"


@dataclass(frozen=True, repr=False)
class Absent(Shown):
    """Why a part of the analysis does not apply."""

    reason: str

    def as_dict(self) -> dict[str, Any]:
        return {"applies": False, "reason": self.reason}

    def __str__(self) -> str:
        return f"does not apply: {self.reason}"


def estimate(value: float, resampled: Floats) -> Estimate:
    """Percentile interval of the same figure over resampled data."""
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(resampled, [tail, 1 - tail])
    return Estimate(value, float(low), float(high))


def resampling_weights(n: int, times: int, seed: int) -> Floats:
    """How often each of n observations falls into each bootstrap sample: a resampled mean is one product.

    # (times, n), rows sum to 1
    """
    drawn = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=times)
    return drawn.astype(np.float64) / n


def own_generator(seed: int, purpose: str) -> torch.Generator:
    """Randomness of a seed for one purpose.

    Never the plain seed: a model trained with it began at the very numbers that its directions c would then be, and
    an entity that training moved little would stand next to "its" c.
    """
    words = np.random.SeedSequence([seed, *purpose.encode()]).generate_state(1, np.uint64)
    return torch.Generator().manual_seed(int(words[0]) >> 1)


def number(x: float | None) -> float | None:
    """A JSON number, or None for what JSON has no word for."""
    return None if x is None or not math.isfinite(x) else float(x)


def show(x: float | Estimate | None, width: int = 9, digits: int = 3) -> str:
    """A figure in a table; a dash where there is none."""
    if x is None:
        return f"{'-':>{width}}"
    return f"{x.value if isinstance(x, Estimate) else x:>{width}.{digits}g}"


def clip(name: str, width: int) -> str:
    return name if len(name) <= width else "…" + name[1 - width :]
