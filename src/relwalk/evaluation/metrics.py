"""Figures of ranks: pure functions of arrays."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RankMetrics:
    """The usual figures of a set of ranks (1 is best). AMRI is 1 for perfect and 0 for random order."""

    mrr: float
    mr: float
    amri: float
    hits_at_1: float
    hits_at_3: float
    hits_at_10: float
    queries: int

    def as_dict(self) -> dict[str, float | int]:
        return {name.replace("hits_at_", "hits@"): value for name, value in asdict(self).items()}


def mean_reciprocal_rank(ranks: Floats) -> float:
    return float(np.mean(1 / ranks))


def hits(ranks: Floats, k: int) -> float:
    return float(np.mean(ranks <= k))


def adjusted_mean_rank_index(ranks: Floats, candidates: NDArray[np.integer]) -> float:
    """1 - (MR - 1) / (MR of a random order - 1), over queries with their own numbers of candidates.

    With one candidate each there is nothing to get wrong: 1.
    """
    expected = float(np.mean((candidates - 1) / 2))
    return 1.0 - float(np.mean(ranks - 1)) / expected if expected > 0 else 1.0


def rank_metrics(ranks: Floats, candidates: NDArray[np.integer]) -> RankMetrics:
    """All figures of one set of queries; at least one query is needed."""
    return RankMetrics(
        mrr=mean_reciprocal_rank(ranks),
        mr=float(np.mean(ranks)),
        amri=adjusted_mean_rank_index(ranks, candidates),
        hits_at_1=hits(ranks, 1),
        hits_at_3=hits(ranks, 3),
        hits_at_10=hits(ranks, 10),
        queries=len(ranks),
    )
