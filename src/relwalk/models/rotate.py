"""RotatE: a relation turns each complex coordinate."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from relwalk.errors import RelWalkError
from relwalk.graph.answers import Side
from relwalk.models.base import Scorer
from relwalk.models.distances import block_distances, distinct
from relwalk.models.tables import Dropout, EntityTable, moduli

REACH = 11.0  # γ + 2 of the authors' start at γ = 9: the first distances are about γ in any dimension


class RotatE(Scorer):
    """RotatE (Sun, Deng, Nie, Tang: ICLR 2019).

    A relation is a rotation of every complex coordinate by an angle of its own, which should take the head to the
    tail. The first half of a vector holds the real parts, the second the imaginary ones; `dim` real numbers are
    dim / 2 complex ones.

        s = -Σ_i |h_i r_i - t_i|,      r_i = exp(i θ_i)

    The parts of entities start uniform, within 11 / (dim / 2), and the angles within ±π. The paper trains it by the
    objective self-adversarial.
    """

    paper = "Sun, Deng, Nie, Tang: ICLR 2019"
    formula = "-Σ_i |h_i r_i - t_i|, |r_i| = 1"
    expresses = ("symmetry", "antisymmetry", "inversion", "composition")

    lr = 0.5  # of unsquared lengths: gradients do not grow with the distance
    # Distances that are no product cost by the pair: a step asks few questions of few entities. Valid MRR on the graphs
    # of `TransE.usual`, d = 32, 12 s of a busy core (in brackets 15 s, in square ones 20 s and d = 64), seed 0:
    #
    #     all entities, batch 1024, l2 .15, lr .5       .400         .287
    #     512 drawn, batch 1024, l2 .01, lr .15               [.154]
    #     self-adversarial, 64 negatives, lr .15              [.167]
    #     the same by Adam, lr .003                           [.038]
    #     256 drawn, batch 256, l2 .03, lr .25                (.187)
    #     256 drawn, batch 128, l2 .03, lr .2                  .189
    #     256 drawn, batch 128, l2 .1,  lr .1                  .141
    #     256 drawn, batch 128, l2 .3,  lr .2                  .174
    #     256 drawn, batch 128, l2 .1,  lr .2                  .196
    #     512 drawn, batch 128, l2 .1,  lr .2           .487         .386
    usual: ClassVar[Mapping[str, Any]] = {
        "dim": 64,
        "lr": 0.2,
        "l2": 0.1,
        "batch_size": 128,
        "candidates_per_step": 512,
    }

    def __init__(self, entities: int, relations: int, dim: int, *, generator: torch.Generator) -> None:
        super().__init__(entities, relations, dim)
        if dim % 2:
            raise RelWalkError(f"RotatE needs an even dim (real and imaginary parts); found {dim}")
        self.entity = EntityTable(2 * REACH / dim * (2 * torch.rand(entities, dim, generator=generator) - 1))
        self.angle = nn.Parameter(math.pi * (2 * torch.rand(relations, dim // 2, generator=generator) - 1))
        self.entity_dropout, self.query_dropout = Dropout(), Dropout()

    def score(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        h, t = (torch.complex(*self.entity(x).chunk(2, -1)) for x in (heads, tails))  # (batch, dim / 2)
        angles = F.embedding(relations, self.angle)
        return -(h * torch.polar(torch.ones_like(angles), angles) - t).abs().sum(-1)  # (batch,)

    def score_candidates(
        self, side: Side, given: Tensor, relations: Tensor, candidates: Tensor | None = None
    ) -> Tensor:
        entities, place = distinct(candidates)
        goal, e = self._goal(side, given, relations), self.entity(entities)  # (batch, dim), (candidates, dim)
        return -block_distances(goal.view(len(goal), 2, -1), e.view(len(e), 2, -1), place)  # (batch, candidates)

    def _goal(self, side: Side, given: Tensor, relations: Tensor) -> Tensor:
        """Where the answer should be: h r, or t conj(r), as far from h as t is from h r.  # (batch, dim)"""
        a, b = self.entity_dropout(self.entity(given)).chunk(2, -1)
        angles = F.embedding(relations, self.angle)
        c, d = angles.cos(), angles.sin() if side == "tail" else -angles.sin()
        return self.query_dropout(torch.cat([a * c - b * d, a * d + b * c], -1))

    def n3_norm(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        """Of the moduli; those of relations are one."""
        h, t = (moduli(self.entity(x)).pow(3).sum() for x in (heads, tails))
        return h + t
