"""RelWalk: the model of the paper."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn

from relwalk.errors import RelWalkError, UnknownChoice
from relwalk.models.base import ProductScorer, Queries, squared_norms
from relwalk.models.grouped import project
from relwalk.models.orthogonal import soft_penalty, start

Orthogonality = Literal["exact", "soft"]
PENALTY = 10.0  # λ1 and λ2 of soft orthogonality when not given: the paper's best


class RelWalk(ProductScorer):
    """RelWalk (Bollegala, Hakami, Yoshida, Kawarabayashi: EACL 2021).

    A walker with a slowly drifting knowledge vector c, uniform on the sphere, emits the head of relation R with
    probability exp(hᵀR1 c) / Z and the tail with exp(tᵀR2 c) / Z. Averaging over c gives

        log p(h, t | R) = ||R1ᵀh + R2ᵀt||² / 2d - 2 log Z,      R1, R2 orthogonal,

    so the score of a triple is s = ||R1ᵀh + R2ᵀt||² = ||R1ᵀh||² + ||R2ᵀt||² + 2 hᵀM t with M = R1 R2ᵀ.

    `orthogonality`: "soft" learns R1 and R2 freely under the paper's penalty λ1||R1ᵀR1 - I||² + λ2||R2ᵀR2 - I||².
    "exact" keeps them orthogonal to 1e-5. There only M is identifiable (R1 Q and R2 Q score alike for every
    orthogonal Q), so R1 = I is fixed and R2 = Mᵀ is learned: the same model at half the cost.
    """

    lr = 1.0  # vectors of norm about √d, as the theory has them

    def __init__(
        self,
        entities: int,
        relations: int,
        dim: int,
        *,
        generator: torch.Generator,
        orthogonality: Orthogonality = "exact",
        lambda1: float | None = None,
        lambda2: float | None = None,
        start_from: str = "signs",
        entity_scale: float = 0.5,
    ) -> None:
        super().__init__(entities, relations, dim)
        if orthogonality not in ("exact", "soft"):
            raise UnknownChoice("orthogonality", orthogonality, ("exact", "soft"))
        if orthogonality == "exact" and not lambda1 is lambda2 is None:
            raise RelWalkError("lambda1 and lambda2 mean nothing to exact orthogonality. Say soft, or leave them out.")
        self.orthogonality = orthogonality
        self.lambda1, self.lambda2 = (PENALTY if weight is None else weight for weight in (lambda1, lambda2))
        self.scale = 1 / (2 * dim)
        self.entity = nn.Parameter(entity_scale * torch.randn(entities, dim, generator=generator))
        self.R2 = nn.Parameter(start(start_from, relations, dim, generator))
        if orthogonality == "soft":
            self.free_R1 = nn.Parameter(torch.eye(dim).repeat(relations, 1, 1))

    @property
    def exact(self) -> bool:
        return self.orthogonality == "exact"

    @property
    def R1(self) -> Tensor:
        """The matrices of the first argument; identities when orthogonality is exact.  # (relations, dim, dim)"""
        if self.exact:
            return torch.eye(self.dim, device=self.R2.device).expand(self.relations, -1, -1)
        return self.free_R1

    @property
    def M(self) -> Tensor:
        """R1 R2ᵀ, all that the score can see of two orthogonal matrices.  # (relations, dim, dim)"""
        return self.R2.mT if self.exact else self.free_R1 @ self.R2.mT

    def score(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        h = self._project_head(self.vectors(heads), relations)  # (batch, dim)  R1ᵀh
        t = project(self.vectors(tails), self.R2, relations)  # (batch, dim)  R2ᵀt
        return (h + t).square().sum(-1)  # (batch,)

    def tail_queries(self, heads: Tensor, relations: Tensor) -> Queries:
        h = self._project_head(self.vectors(heads), relations)  # (batch, dim)
        return self._queries(h, project(h, self.R2, relations, transposed=True), self.R2, relations)

    def head_queries(self, relations: Tensor, tails: Tensor) -> Queries:
        t = project(self.vectors(tails), self.R2, relations)  # (batch, dim)
        if self.exact:
            return self._queries(t, t, self.R2, relations)
        return self._queries(t, project(t, self.free_R1, relations, transposed=True), self.free_R1, relations)

    def _queries(self, x: Tensor, Rx: Tensor, R: Tensor, relations: Tensor) -> Queries:
        """||x + Rᵀe||² = 2 (R x)·e + ||Rᵀe||² + ||x||² for every candidate e; ||Rᵀe|| = ||e|| when exact."""
        offset = x.square().sum(-1)
        if self.exact:
            return Queries(2 * Rx, squared_norms, offset)
        return Queries(2 * Rx, lambda e: _projected_norms(e, R, relations), offset, own_bias=True)

    def score_relations(self, heads: Tensor, tails: Tensor) -> Tensor:
        h, t = self.vectors(heads), self.vectors(tails)  # (batch, dim)
        if not self.exact:
            h = torch.einsum("bd,rde->rbe", h, self.free_R1)  # (relations, batch, dim)
        return (h + torch.einsum("bd,rde->rbe", t, self.R2)).square().sum(-1).T  # (batch, relations)

    def _project_head(self, rows: Tensor, relations: Tensor) -> Tensor:
        return rows if self.exact else project(rows, self.free_R1, relations)

    def penalty(self, relations: Tensor) -> Tensor:
        if self.exact:
            return super().penalty(relations)
        return self.lambda1 * soft_penalty(self.free_R1[relations]) + self.lambda2 * soft_penalty(self.R2[relations])

    def orthogonal(self) -> list[nn.Parameter]:
        return [self.R2] if self.exact else []

    @torch.no_grad()
    def log_partition(self, relations: Tensor, *, directions: int = 128, generator: torch.Generator) -> Tensor:
        """log Z1 + log Z2 of each relation, each Z the mean over random c of Σ exp(eᵀR c).  # (batch,)

        The paper's 2 log Z. When R is exactly orthogonal R c is as uniform as c, and Z is the same for all.
        """
        c = torch.randn(directions, self.dim, generator=generator).to(self.entity.device)
        c = c / c.norm(dim=-1, keepdim=True)  # (directions, dim)
        if self.exact:
            return 2 * self._log_mean_partition(c).expand(len(relations))
        distinct, place = torch.unique(relations, return_inverse=True)
        both = [
            self._log_mean_partition(c @ self.free_R1[r].T) + self._log_mean_partition(c @ self.R2[r].T)
            for r in distinct.tolist()
        ]
        return torch.stack(both)[place]

    def _log_mean_partition(self, c: Tensor) -> Tensor:
        return torch.logsumexp((self.table @ c.T).flatten(), 0) - math.log(len(c))

    def log_prob(
        self, heads: Tensor, relations: Tensor, tails: Tensor, *, directions: int = 128, generator: torch.Generator
    ) -> Tensor:
        """log p(h, t | R) = s / 2d - 2 log Z, with Z estimated from random directions.  # (batch,)"""
        partition = self.log_partition(relations, directions=directions, generator=generator)
        return self.scale * self.score(heads, relations, tails) - partition


def _projected_norms(e: Tensor, R: Tensor, relations: Tensor) -> Tensor:
    """||Rᵀe||² for each row's own R: (batch, n) from candidates (n, dim) or (batch, n, dim)."""
    if e.dim() == 3:
        rows = project(e.flatten(0, 1), R, relations.repeat_interleave(e.shape[1]))  # (batch * n, dim)
        return rows.square().sum(-1).view(e.shape[:2])
    distinct, place = torch.unique(relations, return_inverse=True)
    return torch.stack([(e @ R[r]).square().sum(-1) for r in distinct.tolist()])[place]
