"""Structured embeddings (SE): a relation sends heads and tails to a place of its own, each by a matrix."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from relwalk.graph.answers import Side
from relwalk.models.base import Scorer
from relwalk.models.distances import l1_distances
from relwalk.models.norms import make_unit
from relwalk.models.relation_matmul import Groups, project
from relwalk.models.tables import Dropout, EntityTable
from relwalk.space import Between, Search


class Structured(Scorer):
    """Structured embeddings, SE (Bordes, Weston, Collobert, Bengio: AAAI 2011).

    Two matrices of a relation, one for heads and one for tails, lead the two entities of a true triple to one point:

        s = -||R1 h - R2 t||_1

    Entities have norm 1 after every step, as in the paper: the matrices alone say how far apart points can be.
    """

    paper = "Bordes, Weston, Collobert, Bengio: AAAI 2011"
    search: ClassVar[Mapping[str, Search | None]] = {"dim": Between(32, 256, "powers"), "l2": None}  # of norm 1
    formula = "-||R1 h - R2 t||_1"
    expresses = ("symmetry", "antisymmetry", "inversion", "composition", "one-to-many")

    # Sums over all entities project all of them for each relation of a step, which a large graph has no time for. Valid
    # MRR on the graphs of `TransE.usual`, d = 32, 12 s of a busy core, seed 0:
    #
    #     likelihood, batch 1024              .450  .175  .333
    #     likelihood, batch 4096                    .177
    #     softmax, 64 negatives               .476  .175  .320
    #     softmax, 64 negatives, lr .05             .166
    usual: ClassVar[Mapping[str, Any]] = {
        "dim": 64,
        "objective": "softmax",
        "negatives": 64,
        "l2": 0.0,  # entities of norm 1 are as long as they are
        "batch_size": 512,
    }

    constrained = True

    def __init__(self, entities: int, relations: int, dim: int, *, generator: torch.Generator) -> None:
        super().__init__(entities, relations, dim)
        self.entity = EntityTable(torch.randn(entities, dim, generator=generator) / dim**0.5)
        self.R1, self.R2 = (
            nn.Parameter(torch.randn(relations, dim, dim, generator=generator) / dim**0.5) for _ in range(2)
        )
        self.entity_dropout, self.query_dropout = Dropout(), Dropout()
        self.constrain()

    @torch.no_grad()
    def constrain(self, entities: Tensor | None = None) -> None:
        make_unit(self.entity, entities)

    def score(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        h = self._project("head", self.entity(heads), relations)  # (batch, dim)
        t = self._project("tail", self.entity(tails), relations)  # (batch, dim)
        return -(h - t).abs().sum(-1)  # (batch,)

    def score_candidates(
        self, side: Side, given: Tensor, relations: Tensor, candidates: Tensor | None = None
    ) -> Tensor:
        """Candidates that all rows share are projected once for each relation."""
        x = self.entity_dropout(self.entity(given))  # (batch, dim)
        goals = self.query_dropout(self._project("head" if side == "tail" else "tail", x, relations))  # (batch, dim)
        if candidates is not None and candidates.dim() == 2:
            own = relations.repeat_interleave(candidates.shape[1])
            points = self._project(side, self.entity(candidates.flatten()), own)
            return -l1_distances(goals, points.view(*candidates.shape, self.dim))  # (batch, n)
        every, groups = self.entity(candidates), Groups(relations)
        parts = zip(groups.relations, torch.split(groups.sort(goals), groups.counts), strict=True)
        distances = [l1_distances(part, self._project(side, every, relations.new_tensor(r))) for r, part in parts]
        return -groups.unsort(torch.cat(distances)) if distances else goals.new_empty(0, len(every))  # (batch, n)

    def _project(self, side: Side, x: Tensor, relations: Tensor) -> Tensor:
        """R1 x for heads, R2 x for tails.  # (batch, dim)"""
        return project(x, self.R1 if side == "head" else self.R2, relations, transposed=True)
