"""OTE: a relation turns blocks of coordinates by small orthogonal matrices, and scales them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from relwalk.checks import DIM, check_whole
from relwalk.errors import RelWalkError
from relwalk.graph.answers import Side
from relwalk.models.base import Scorer
from relwalk.models.distances import block_distances, distinct
from relwalk.models.relation_matmul import Groups, project
from relwalk.models.tables import Dropout, EntityTable
from relwalk.space import Among, Search

REACH = 11.0  # the first distances of each direction are about that in any dimension


class OTE(Scorer):
    """OTE (Tang, Huang, Wang, He, Zhou: ACL 2020), without the context of the graph.

    RotatE with blocks of `block_size` coordinates in place of complex numbers. φ(M) is the orthogonal matrix that
    Gram-Schmidt makes of the columns of M; each relation has one for every block, and a scale exp(s) for every
    coordinate. After a step M becomes φ(M), the same model: else its columns come near to each other in time, where φ
    has no slope. Head to tail and tail to head are measured both:

        s = -Σ_b ||exp(s_r) φ(M_r) h - t||_b - Σ_b ||exp(-s_r) φ(M_r)ᵀ t - h||_b

    The second is the inverse of the first where all scales are one, as they are at the start. Entities start normal,
    so that each sum is about 11 then.
    """

    paper = "Tang, Huang, Wang, He, Zhou: ACL 2020"
    formula = "-Σ_b ||exp(s) φ(M) h - t||_b - Σ_b ||exp(-s) φ(M)ᵀ t - h||_b"
    expresses = ("symmetry", "antisymmetry", "inversion", "composition")

    constrained = True
    lr = 0.5  # of unsquared lengths: gradients do not grow with the distance
    # Every pair of a relation and a candidate is turned: few negatives of their own cost less than shared candidates.
    # Valid MRR on the graphs of `TransE.usual`, d = 32, 12 s of a busy core, seed 0:
    #
    #     likelihood, 512 drawn, batch 256, lr .2           .269         .310
    #     likelihood, 256 drawn, batch 128, lr .2                 .069
    #     softmax, 32 negatives, lr .3                      .130  .125   .247
    #     self-adversarial, 32 negatives, γ 12, lr .15            .093
    #     self-adversarial, 32 negatives, γ 6,  lr .15            .130
    #     self-adversarial, 32 negatives, γ 12, lr .4       .362  .138   .343
    #
    # Matrices were as they came then, not made orthogonal after each step; 15 epochs of world: .444 so, now .481.
    # Over all entities of world six epochs took 70 s, and reached .524.
    usual: ClassVar[Mapping[str, Any]] = {
        "dim": 32,
        "objective": "self-adversarial",
        "negatives": 32,
        "margin": 12.0,
        "lr": 0.4,
        "l2": 0.0,
        "batch_size": 512,
    }
    search: ClassVar[Mapping[str, Search | None]] = {
        "block_size": Among((2, 4, 8, 16)),
        "query_dropout": None,
    }

    def __init__(
        self, entities: int, relations: int, dim: int, *, generator: torch.Generator, block_size: int = 4
    ) -> None:
        super().__init__(entities, relations, dim)
        check_whole("block_size", block_size, most=DIM)
        if dim % block_size:
            raise RelWalkError(
                f"OTE cuts dim into blocks of one size; found dim {dim} and block_size {block_size}. "
                "Say a --block-size that divides it."
            )
        blocks = dim // block_size
        spread = REACH / (blocks * (2 * block_size) ** 0.5)  # a block of a difference is √2 spread √block_size long
        self.entity = EntityTable(spread * torch.randn(entities, dim, generator=generator))
        self.matrix = nn.Parameter(torch.randn(relations, blocks, block_size, block_size, generator=generator))
        self.constrain()
        self.log_scale = nn.Parameter(torch.zeros(relations, dim))
        self.entity_dropout = Dropout()

    @torch.no_grad()
    def constrain(self, entities: Tensor | None = None) -> None:
        self.matrix.copy_(gram_schmidt(self.matrix))

    def score(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        h, t = self.entity(heads), self.entity(tails)  # (batch, dim)
        ahead, back = self._turn("tail", h, relations) - t, self._turn("head", t, relations) - h
        lengths: Tensor = torch.linalg.vector_norm(self._blocks(torch.stack([ahead, back])), dim=-2)
        return -lengths.sum((0, 2))  # (batch,)

    def score_candidates(
        self, side: Side, given: Tensor, relations: Tensor, candidates: Tensor | None = None
    ) -> Tensor:
        x = self.entity_dropout(self.entity(given))  # (batch, dim)
        entities, place = distinct(candidates)
        e = self.entity(entities)
        there = block_distances(self._blocks(self._turn(side, x, relations)), self._blocks(e), place)
        other: Side = "head" if side == "tail" else "tail"
        if candidates is not None and place is not None:  # each row's own: turned as often as relations differ
            pairs, own = torch.unique(relations.unsqueeze(1) * self.entities + candidates, return_inverse=True)
            turned = self._turn(other, self.entity(pairs % self.entities), pairs // self.entities)
            return -(there + block_distances(self._blocks(x), self._blocks(turned), own))  # (batch, candidates)
        groups = Groups(relations)
        used = relations.new_tensor(groups.relations)
        matrices, log_scale = gram_schmidt(self.matrix[used]), self.log_scale[used]
        if other == "tail":
            matrices, scales = matrices.mT, log_scale.exp()
        else:
            scales = (-log_scale).exp()
        parts = [there[:0]]
        rows = torch.split(groups.sort(x), groups.counts)
        for own_rows, matrix, scale in zip(rows, matrices.unbind(), scales.unbind(), strict=True):
            parts.append(_ToTurned.apply(own_rows, e, matrix, scale))  # type: ignore[no-untyped-call]
        return -(there + groups.unsort(torch.cat(parts)))  # (batch, candidates)

    def _turn(self, side: Side, x: Tensor, relations: Tensor) -> Tensor:
        """Where the answer of this side should be: exp(s) φ(M) x, or exp(-s) φ(M)ᵀ x.  # (batch, dim)"""
        used, place = torch.unique(relations, return_inverse=True)
        matrices, log_scale = gram_schmidt(self.matrix[used]), F.embedding(relations, self.log_scale)
        if side == "tail":
            return log_scale.exp() * project(x, matrices, place, transposed=True)
        return (-log_scale).exp() * project(x, matrices, place)

    def _blocks(self, x: Tensor) -> Tensor:
        """Each block of a vector as a column.  # (..., block_size, blocks)"""
        return x.view(*x.shape[:-1], *self.matrix.shape[1:3]).mT


class _ToTurned(torch.autograd.Function):
    """From x to all entities as one relation turns them: the turned ones are made again backward, not kept.

    `torch.utils.checkpoint` does the same, but imports the compiler of torch for it, which takes two seconds.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, e: Tensor, matrices: Tensor, scale: Tensor) -> Tensor:
        ctx.save_for_backward(x, e, matrices, scale)
        return _to_turned(x, e, matrices, scale)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        inputs = [tensor.detach().requires_grad_() for tensor in ctx.saved_tensors]
        with torch.enable_grad():
            distances = _to_turned(*inputs)
        return torch.autograd.grad(distances, inputs, grads[0])


def _to_turned(x: Tensor, e: Tensor, matrices: Tensor, scale: Tensor) -> Tensor:
    """Σ_b ||x - scale · e matrix||_b, each block with its matrix (blocks, width, width).  # (rows, entities)"""
    blocks, width, _ = matrices.shape
    turned = e.view(-1, blocks, width).transpose(0, 1) @ matrices * scale.view(blocks, 1, width)
    return block_distances(x.view(-1, blocks, width).mT, turned.permute(1, 2, 0))  # (n, width, blocks)


def gram_schmidt(matrices: Tensor) -> Tensor:
    """The orthogonal matrices that Gram-Schmidt makes of the columns of these.  # (..., n, n)"""
    Q: Tensor
    Q, R = torch.linalg.qr(matrices)
    signs = torch.where(R.diagonal(dim1=-2, dim2=-1) < 0, -1.0, 1.0)  # Gram-Schmidt's R has a positive diagonal
    return Q * signs.unsqueeze(-2)
