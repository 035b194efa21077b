"""The concentration lemma: eps_z = O(1/√n).

    eps_z(n) = sigma / mean of Z_c over c, summed over n entities;     log eps_z(n) = a + b log n,   lemma: b = -1/2

Entities are dealt into disjoint random subsets of several sizes, so that every point of the fit is independent and
a bootstrap over them is fair. The exact law is eps²(n) = floor² + slope / n (see `partition.relative_variance`):
vectors with a common mean, clusters, or more spread in some directions keep a floor that no number of entities
removes, and 1/√n ends where n passes slope / floor². Long vectors are so heavy-tailed that drawn directions fall far
short of the exact figures: then no sample of c, the paper's either, measures eps_z.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from relwalk.display import Shown
from relwalk.evaluation.estimate import Absent, Estimate, Floats, estimate, own_generator
from relwalk.progress import Count, OnProgress, silent
from relwalk.theory.partition import log_partition, relative_variance
from relwalk.theory.sphere import uniform_directions

SIZES, SUBSETS, FEWEST = 6, 8, 4  # sizes double; subsets of each; entities in the smallest
BOOTSTRAP = 2000


@dataclass(frozen=True, repr=False)
class Shrinkage(Shown):
    """How eps_z falls with n, its fitted exponent, and whether that is the lemma's."""

    sizes: tuple[int, ...]
    eps: tuple[float, ...]  # the median of the subsets of each size
    exponent: Estimate
    eps_of_all: float  # over every entity there is
    exact_of_all: float  # the same over all directions instead of those drawn
    floor: float  # the exact eps_z that remains for n -> infinity

    @property
    def agrees(self) -> bool:
        return self.exponent.contains(-0.5)

    def as_dict(self) -> dict[str, Any]:
        return {
            "applies": True,
            "sizes": list(self.sizes),
            "eps": list(self.eps),
            "exponent": self.exponent.as_dict(),
            "eps_of_all": self.eps_of_all,
            "exact_of_all": self.exact_of_all,
            "floor": self.floor,
            "agrees": self.agrees,
            "text": str(self),
        }

    def __str__(self) -> str:
        verdict = "consistent with the lemma's -1/2" if self.agrees else "not the lemma's -1/2"
        return (
            f"eps_z falls from {self.eps[0]:.3g} at n = {self.sizes[0]:,} to {self.eps[-1]:.3g} at {self.sizes[-1]:,} "
            f"(all entities: {self.eps_of_all:.3g}): exponent {self.exponent}, {verdict}. "
            f"Over all directions eps_z is {self.exact_of_all:.3g}, and {self.floor:.3g} for n without end"
        )


@torch.no_grad()
def shrinkage(
    entities: Tensor, *, blocks: int = 1, directions: int = 1000, seed: int = 0, progress: OnProgress = silent
) -> Shrinkage | Absent:
    """Fit the exponent on disjoint subsets of the given vectors."""
    smallest = len(entities) // (SUBSETS * (2**SIZES - 1))
    if smallest < FEWEST:
        needed = FEWEST * SUBSETS * (2**SIZES - 1)
        return Absent(f"{len(entities):,} entities are too few to subsample; the exponent needs {needed:,}.")
    generator = own_generator(seed, "lemma")
    c = uniform_directions(directions, entities.shape[1], generator, blocks)
    sizes = [smallest * 2**k for k in range(SIZES)]
    lengths = [n for n in sizes for _ in range(SUBSETS)]
    dealt = torch.randperm(len(entities), generator=generator)
    count, eps = Count(progress, 2 * len(dealt), "lemma"), []  # the subsets, then all of them once more
    for part in torch.split(dealt[: sum(lengths)], lengths):
        eps.append(_relative(log_partition(entities[part], c)))
        count.add(len(part))
    points = np.array(eps).reshape(SIZES, SUBSETS)
    drawn = np.random.default_rng(seed).integers(0, SUBSETS, (BOOTSTRAP, SIZES, SUBSETS))
    resampled = points[np.arange(SIZES)[:, None], drawn]  # (times, sizes, subsets)
    n = np.array(sizes, np.float64)
    floor, slope = relative_variance(entities, blocks=blocks, seed=seed)
    return Shrinkage(
        sizes=tuple(sizes),
        eps=tuple(float(x) for x in np.median(points, axis=1)),
        exponent=estimate(float(_exponent(points[None], n)[0]), _exponent(resampled, n)),
        eps_of_all=_relative(log_partition(entities, c)),
        exact_of_all=math.sqrt(max(0.0, floor + slope / len(entities))),
        floor=math.sqrt(max(0.0, floor)),
    )


def _relative(log_z: Tensor) -> float:
    z = (log_z - log_z.max()).exp()
    return float(z.std(correction=0) / z.mean())


def _exponent(points: Floats, n: Floats) -> Floats:
    """Least squares of log eps on log n.  # (times,) from (times, sizes, subsets)"""
    x = np.log(n) - np.log(n).mean()
    return np.asarray(np.log(points).mean(axis=2) @ x / (x @ x))
