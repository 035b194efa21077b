"""What learned figures stand beside: a random order, and popularity.

random       a rank uniform in 1..n:  E[1/rank] = H_n / n,  E[rank] = (n + 1) / 2,  P(rank <= k) = min(1, k/n)
popularity   candidates ordered by how often train shows them in that argument of the relation
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from relwalk.evaluation.metrics import RankMetrics
from relwalk.evaluation.ranking import CandidateRule, rank
from relwalk.evaluation.result import RankingResult
from relwalk.graph.answers import Side
from relwalk.graph.graph import Graph
from relwalk.models.base import Scorer
from relwalk.models.tables import EntityTable

MOST_COUNTS = 50_000_000  # a table of relations x entities beyond this is not made


def random_order(result: RankingResult) -> RankMetrics:
    """The expected figures of a random order of the same candidates."""
    n = np.concatenate([ranks.candidates for ranks in result.ranks.values()])
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, int(n.max()) + 1))])
    at = {k: float(np.minimum(1, k / n).mean()) for k in (1, 3, 10)}
    return RankMetrics(float((harmonic[n] / n).mean()), float(((n + 1) / 2).mean()), 0.0, at[1], at[3], at[10], len(n))


class Popularity(Scorer):
    """Scores a candidate by its number of train triples in that place of that relation; the question is not read."""

    heads: Tensor
    tails: Tensor

    def __init__(self, graph: Graph) -> None:
        n, r = len(graph.entities), len(graph.relations)
        super().__init__(n, r, 1)
        self.entity = EntityTable(torch.zeros(n, 1)).requires_grad_(False)
        for name, column in (("heads", 0), ("tails", 2)):
            places = graph.train[:, 1].astype(np.int64) * n + graph.train[:, column]
            counts = np.bincount(places, minlength=r * n).reshape(r, n)
            self.register_buffer(name, torch.from_numpy(counts.astype(np.float32)))

    def score(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        return self.heads[relations, heads] + self.tails[relations, tails]

    def score_candidates(
        self, side: Side, given: Tensor, relations: Tensor, candidates: Tensor | None = None
    ) -> Tensor:
        return _pick((self.tails if side == "tail" else self.heads)[relations], candidates)


def _pick(rows: Tensor, candidates: Tensor | None) -> Tensor:
    """The columns asked for.  # (batch, candidates)"""
    if candidates is None:
        return rows
    return rows[:, candidates] if candidates.dim() == 1 else rows.gather(1, candidates)


def popularity(graph: Graph, candidates: CandidateRule) -> RankMetrics | None:
    """The figures of that order; None for a graph whose table of counts would be too large."""
    if len(graph.entities) * len(graph.relations) > MOST_COUNTS:
        return None
    return rank(Popularity(graph).eval(), graph, "test", candidates=candidates).metrics()
