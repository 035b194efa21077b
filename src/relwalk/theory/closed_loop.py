"""The closed loop: a model that learned a generated graph, compared with the model that drew it.

The loop is closed when a model that saw only the graph ranks pairs it never saw as the true p(h, t | R) does, beyond
how often each entity occurs (`interaction`: what is left of log p when the effects of head and of tail are taken out)
and unlike a shuffled control.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.stats import rankdata

from relwalk.checks import DIRECTIONS, check_seed, check_whole
from relwalk.display import Shown
from relwalk.errors import RelWalkError
from relwalk.evaluation.estimate import Estimate, Floats
from relwalk.graph.lists import Ints
from relwalk.models.base import Scorer
from relwalk.theory.generate import Generated, log_joint

SHOWN = 300  # pairs kept for a figure


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Some of the pairs: log p in truth, as learned (up to a constant), and learned with its entities renamed."""

    truth: Floats  # (pairs,)
    learned: Floats
    shuffled: Floats


@dataclass(frozen=True, repr=False)
class ClosedLoop(Shown):
    """Rank correlation of learned with true log p over pairs that train does not hold."""

    learned: float
    interaction: float
    shuffled: Estimate  # learned entities renamed at random: the middle and range of the same figure
    shuffled_interaction: Estimate
    popularity: float  # what counting each entity's occurrences achieves
    pairs: int
    some: HeldOut

    @property
    def closed(self) -> bool:
        """Far outside the shuffled range, both whole and in the interaction."""
        return self.learned > self.shuffled.high + 0.2 and self.interaction > self.shuffled_interaction.high + 0.2

    def as_dict(self) -> dict[str, Any]:
        estimates = {k: getattr(self, k).as_dict() for k in ("shuffled", "shuffled_interaction")}
        figures = {k: v for k, v in self.__dict__.items() if k != "some"}
        return figures | estimates | {"closed": self.closed}

    def __str__(self) -> str:
        return (
            f"learned against true log p over {self.pairs:,} held-out pairs: Spearman {self.learned:.3f} "
            f"(shuffled {self.shuffled}, popularity alone {self.popularity:.3f}); "
            f"interaction {self.interaction:.3f} (shuffled {self.shuffled_interaction})"
        )


@torch.no_grad()
def closed_loop(
    generated: Generated, learned: Scorer, *, directions: int = 20_000, shuffles: int = 8, seed: int = 0
) -> ClosedLoop:
    """Compare a model learned from `generated.graph` with the one that drew it."""
    check_whole("directions", directions, 1, DIRECTIONS)
    check_whole("shuffles", shuffles)
    check_seed(seed)
    truth, graph, n = generated.model, generated.graph, generated.model.entities
    if (learned.entities, learned.relations) != (n, truth.relations):
        raise RelWalkError(
            f"the learned model has {learned.entities} entities and {learned.relations} relations; "
            f"the true one {n} and {truth.relations}"
        )
    relations = range(truth.relations)
    how: dict[str, Any] = {"step_size": generated.step_size, "directions": directions}
    wide = np.stack([log_joint(truth, r, **how, seed=seed) for r in relations])  # (relations, n, n)
    every = torch.arange(n)
    scores = np.stack([learned.score_tails(every, torch.full((n,), r)).double().numpy() for r in relations])
    held = np.ones(wide.shape, bool)
    held[graph.train[:, 1], graph.train[:, 0], graph.train[:, 2]] = False
    rng = np.random.default_rng(seed)
    names = [rng.permutation(n) for _ in range(shuffles)]
    of_truth = _Ranks(wide, held)
    whole = [of_truth.spearman(scores[:, p][:, :, p]) for p in names]
    of_inner, inner_scores = _Ranks(_centred(wide), held), _centred(scores)
    parts = [of_inner.spearman(inner_scores[:, p][:, :, p]) for p in names]
    cells = rng.choice(np.flatnonzero(held), min(SHOWN, int(held.sum())), replace=False)
    scaled, renamed = learned.scale * scores, learned.scale * scores[:, names[0]][:, :, names[0]]
    return ClosedLoop(
        learned=of_truth.spearman(scores),
        interaction=of_inner.spearman(inner_scores),
        shuffled=Estimate(float(np.mean(whole)), min(whole), max(whole)),
        shuffled_interaction=Estimate(float(np.mean(parts)), min(parts), max(parts)),
        popularity=of_truth.spearman(_popularity(graph.train, *wide.shape[:2])),
        pairs=int(held.sum()),
        some=HeldOut(wide.ravel()[cells], scaled.ravel()[cells], renamed.ravel()[cells]),
    )


def _centred(x: Floats) -> Floats:
    """What head and tail do not explain alone.  # (relations, n, n)"""
    x = x - x.mean(axis=2, keepdims=True)
    return np.asarray(x - x.mean(axis=1, keepdims=True))


def _popularity(train: Ints, relations: int, n: int) -> Floats:
    heads, tails = (np.zeros((relations, n)) for _ in range(2))
    np.add.at(heads, (train[:, 1], train[:, 0]), 1)
    np.add.at(tails, (train[:, 1], train[:, 2]), 1)
    return np.asarray(np.log(heads + 0.5)[:, :, None] + np.log(tails + 0.5)[:, None, :])


class _Ranks:
    """The ranks of some figures within each relation, made once for all that they are compared with."""

    def __init__(self, figures: Floats, held: Any) -> None:
        self.held = held
        self.ranks = [_centred_ranks(x[mask]) for x, mask in zip(figures, held, strict=True)]

    def spearman(self, others: Floats) -> float:
        """The mean over relations: p(h, t | R) is normalised within each."""
        found = []
        for rx, y, mask in zip(self.ranks, others, self.held, strict=True):
            ry = _centred_ranks(y[mask])
            size = math.sqrt(float(rx @ rx) * float(ry @ ry))
            found.append(float(rx @ ry) / size if size > 0 else 0.0)
        return float(np.mean(found))


def _centred_ranks(x: Floats) -> Floats:
    ranks = rankdata(x)
    return np.asarray(ranks - ranks.mean())
