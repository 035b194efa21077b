"""RelWalk: the model of the paper."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from relwalk.checks import DIM, check_number, check_whole
from relwalk.errors import RelWalkError, UnknownChoice
from relwalk.graph.answers import SIDES, Side
from relwalk.models.base import ProductScorer
from relwalk.models.hidden import random_angles, same_lengths, unfolded, unfolded_bias, visible, with_evening
from relwalk.models.orthogonal import block_diagonal, soft_penalty, start
from relwalk.models.relation_matmul import project
from relwalk.models.tables import (
    Dropout,
    EntityTable,
    and_squared_norms,
    normal_rows,
    squared_norms,
    with_constant,
    with_squared_norms,
)
from relwalk.space import Between, Search

Orthogonality = Literal["exact", "soft"]
LARGEST = 1e6  # weight of a penalty, or length of a vector over √d
BIAS_DECAY = 4.0  # of a relation's bias, for each triple, in units of that of an entity
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

    `blocks`: as many independent walkers, each with d / blocks coordinates of every entity, a knowledge vector of its
    own, uniform on a sphere of radius 1 / √blocks, and its own R1 and R2. Their log-probabilities add up, so the score
    is the same with block-diagonal R1 and R2, which have `blocks` times fewer numbers; one block is the paper's model.

    `relation_bias`: an extension. The knowledge vector of R is not uniform but drawn towards a vector v of its own,
    with density exp(vᵀc) / E exp(vᵀc); the same average then gives

        s = ||R1ᵀh + R2ᵀt + v||² - ||v||²,

    the paper's for v = 0. A relation can so prefer some heads and tails whatever is at its other end.

    `hidden`: R1 and R2 have dimensions that entities have no coordinates in (`models.hidden`): a relation turns
    coordinates of head and tail towards them by angles θ and φ of its own. They are as orthogonal as before, and

        s = ||h||² + ||t||² + 2 hᵀC t,      C = diag(cos θ) M diag(cos φ),

    so that a relation can leave out what does not matter to it. `equal_lengths`: coordinates that every relation turns
    away wholly make all entities as long as the longest. The first two terms are then the same for all, and left out:
    an entity that is likely as an answer need not be a long vector. `unfold` writes both out as the paper's model.
    """

    paper = "Bollegala, Hakami, Yoshida, Kawarabayashi: EACL 2021"
    formula = "||R1ᵀh + R2ᵀt||²"
    expresses = ("symmetry", "antisymmetry", "inversion", "composition", "one-to-many")

    nonnegative = True  # but for what a relation's bias takes off, and lengths that are left out
    lr = 1.0  # vectors of norm about √d, as the theory has them
    search: ClassVar[Mapping[str, Search | None]] = {
        "l2": None,
        "dura": Between(0.005, 0.3, "log"),
        "relation_lr": Between(0.03, 1.0, "log"),
    }

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
        blocks: int = 1,
        relation_bias: bool = False,
        hidden: bool = False,
        equal_lengths: bool = False,
    ) -> None:
        super().__init__(entities, relations, dim)
        check_blocks(dim, blocks)
        if orthogonality not in ("exact", "soft"):
            raise UnknownChoice("orthogonality", orthogonality, ("exact", "soft"))
        if orthogonality == "exact" and not lambda1 is lambda2 is None:
            raise RelWalkError("lambda1 and lambda2 mean nothing to exact orthogonality. Say soft, or leave them out.")
        if hidden and orthogonality == "soft":
            raise RelWalkError("hidden dimensions need exact orthogonality. Leave one of them out.")
        if equal_lengths and not hidden:
            raise RelWalkError("equal_lengths needs a hidden coordinate to even them out. Say --hidden too.")
        self.orthogonality, self.equal_lengths = orthogonality, equal_lengths
        self.keys_by_side = self.keys_by_relation = orthogonality == "soft"  # of exact matrices Rᵀe need not be made
        self.lambda1, self.lambda2 = (
            PENALTY if weight is None else check_number(name, weight, 0, LARGEST)
            for name, weight in (("lambda1", lambda1), ("lambda2", lambda2))
        )
        check_number("entity_scale", entity_scale, 0, LARGEST, above=True)
        self.scale = 1 / (2 * dim)
        self.entity = EntityTable(normal_rows(entities, dim, generator, times=entity_scale))
        self.blocks, width = blocks, dim // blocks
        shape = (relations, width, width) if blocks == 1 else (relations, blocks, width, width)
        self.R2 = nn.Parameter(start(start_from, relations * blocks, width, generator).view(shape))
        if orthogonality == "soft":
            self.free_R1 = nn.Parameter(torch.eye(width).repeat(*shape[:-2], 1, 1))
        self.bias = nn.Parameter(torch.zeros(relations, dim)) if relation_bias else None  # v
        angles = [nn.Parameter(random_angles(relations, dim, generator)) if hidden else None for _ in SIDES]
        self.head_angles, self.tail_angles = angles  # θ and φ
        self.entity_dropout, self.query_dropout = Dropout(), Dropout()

    @property
    def exact(self) -> bool:
        return self.orthogonality == "exact"

    @property
    def hidden(self) -> bool:
        return self.head_angles is not None

    @property
    def R1(self) -> Tensor:
        """The matrices of the first argument, shaped as R2; identities when orthogonality is exact.

        # (relations, dim, dim), or (relations, blocks, width, width) of several blocks
        """
        if self.exact:
            return torch.eye(self.R2.shape[-1], device=self.R2.device).expand_as(self.R2)
        return self.free_R1

    @property
    def M(self) -> Tensor:
        """R1 R2ᵀ, all that the score can see of two orthogonal matrices; with hidden dimensions C, the corner of it.

        # (relations, dim, dim)
        """
        return block_diagonal(self._corner().mT if self.exact or self.hidden else self.R1 @ self.R2.mT)

    def _corner(self) -> Tensor:
        """Cᵀ, shaped as R2, which it is unless there are hidden dimensions."""
        if self.head_angles is None or self.tail_angles is None:
            return self.R2
        shape = (*self.R2.shape[:-1], 1)  # (relations, width, 1), or (relations, blocks, width, 1)
        cosines, of_tails = visible(self.head_angles).view(shape), visible(self.tail_angles).view(shape)
        return of_tails * self.R2 * cosines.mT

    def bias_of(self, relation: int) -> Tensor | None:
        """v of a relation, to be looked at; None where relations have none.  # (dim,)"""
        return None if self.bias is None else self.bias[relation].detach().cpu()

    def dense(self, side: Side, relation: int | None = None) -> Tensor:
        """R1 (head) or R2 (tail) with zeros between the blocks, of all relations or of one.

        # (relations, dim, dim) or (dim, dim)
        """
        R = self.R1 if side == "head" else self.R2
        return block_diagonal(R) if relation is None else block_diagonal(R[relation : relation + 1])[0]

    def score(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        h, t = self.entity(heads), self.entity(tails)
        x = self.turn("head", h, relations)  # (batch, dim)  R1ᵀh
        y = self.turn("tail", t, relations)  # (batch, dim)  R2ᵀt
        if self._turned_whole:
            return self._from_bias(x + y, relations)  # (batch,)
        products = 2 * x * y if self.equal_lengths else h.square() + t.square() + 2 * x * y
        scores = products.sum(-1)
        return scores if self.bias is None else scores + self._towards_bias(x + y, relations)

    def queries(self, side: Side, given: Tensor, relations: Tensor) -> Tensor:
        """||x + Rᵀe||² = [2x, 1] · [Rᵀe, ||Rᵀe||²] + ||x||²; for orthogonal R, [2Rx, 1] · [e, ||e||²] + ||x||²; with a
        bias, x + v in place of x."""
        x = self.turn(other(side), self.entity_dropout(self.entity(given)), relations)  # (batch, dim)
        if self.bias is not None:
            x = x + F.embedding(relations, self.bias)
        if not self.keys_by_relation:
            x = self.turn(side, x, relations, back=True)
        x = 2 * self.query_dropout(x)
        return x if self.equal_lengths else with_constant(x, 1.0)  # (batch, dim + 1)

    def keys(self, side: Side, entities: Tensor | None = None, relations: Tensor | None = None) -> Tensor:
        e = self.entity(entities)
        if relations is not None:
            e = self.turn(side, e, relations)
        return e if self.equal_lengths else with_squared_norms(e)  # (candidates, dim + 1)

    def key_parts(self, side: Side) -> tuple[Tensor, ...]:
        e = self.entity()
        return (e,) if self.equal_lengths else and_squared_norms(e)  # (entities, dim), (entities, 1)

    def offsets(self, side: Side, given: Tensor, relations: Tensor) -> Tensor | None:
        e = self.entity(given)
        if self._turned_whole:
            return self._from_bias(self.turn(other(side), e, relations), relations)  # (batch,)
        norms = None if self.equal_lengths else e.square().sum(-1)
        if self.bias is None:
            return norms
        towards = self._towards_bias(self.turn(other(side), e, relations), relations)
        return towards if norms is None else norms + towards

    @property
    def _turned_whole(self) -> bool:
        """Whether `turn` makes all of Rᵀe. Otherwise it is what is visible of that, and as long as e."""
        return self.keys_by_relation or not self.hidden

    def _from_bias(self, x: Tensor, relations: Tensor) -> Tensor:
        """||x + v||² - ||v||².  # (batch,)"""
        if self.bias is None:
            return x.square().sum(-1)
        return (x * (x + 2 * F.embedding(relations, self.bias))).sum(-1)

    def _towards_bias(self, x: Tensor, relations: Tensor) -> Tensor:
        """2 vᵀx.  # (batch,)"""
        assert self.bias is not None
        return 2 * (x * F.embedding(relations, self.bias)).sum(-1)

    def turn(self, side: Side, x: Tensor, relations: Tensor, *, back: bool = False) -> Tensor:
        """R1ᵀx for heads, R2ᵀx for tails, or what is visible of it; `back`: R1 x, R2 x.  # (batch, dim)"""
        angles = self.head_angles if side == "head" else self.tail_angles
        if angles is None:
            return self._rotate(side, x, relations, back=back)
        cosines = visible(F.embedding(relations, angles))  # (batch, dim), or (dim,) of one relation
        if back:
            return cosines * self._rotate(side, x, relations, back=True)
        return self._rotate(side, cosines * x, relations)

    def _rotate(self, side: Side, x: Tensor, relations: Tensor, *, back: bool = False) -> Tensor:
        """The same by the learned matrices alone.  # (batch, dim)"""
        if side == "tail":
            return project(x, self.R2, relations, transposed=back)
        return x if self.exact else project(x, self.free_R1, relations, transposed=back)

    def score_relations(self, heads: Tensor, tails: Tensor) -> Tensor:
        shape = (self.blocks, self.dim // self.blocks)
        h, t = (self.entity(x).view(-1, *shape) for x in (heads, tails))  # (batch, blocks, width)
        R2 = self.R2.reshape(self.relations, *shape, shape[1])
        if self._turned_whole and not (self.exact and shape[1] <= self.relations):
            turned = torch.einsum("bkd,rkde->brke", t, R2)
            h = h.unsqueeze(1) if self.exact else torch.einsum("bkd,rkde->brke", h, self.R1.reshape(R2.shape))
            each = torch.arange(self.relations, device=self.device)
            return self._from_bias((h + turned).flatten(2), each)  # (batch, relations)
        corner = self._corner().reshape(R2.shape)
        if shape[1] <= self.relations:  # <htᵀ, M> of all relations is one product
            pairs = torch.einsum("bkd,bke->bked", h, t).flatten(1)  # (batch, dim * width)
            scores = 2 * pairs @ corner.flatten(1).T  # (batch, relations)
        else:
            scores = 2 * torch.einsum("bke,brke->br", h, torch.einsum("bkd,rkde->brke", t, corner))
        if not self.equal_lengths:
            scores = (h.square() + t.square()).sum((1, 2)).unsqueeze(1) + scores
        if self.bias is not None:  # 2 vᵀ(R1ᵀh + R2ᵀt)
            v: Tensor = self.bias
            w = torch.einsum("rkde,rke->rkd", R2, v.view(-1, *shape)).flatten(1)  # R2 v
            if self.head_angles is not None and self.tail_angles is not None:
                v, w = visible(self.head_angles) * v, visible(self.tail_angles) * w
            scores = scores + 2 * (h.flatten(1) @ v.T + t.flatten(1) @ w.T)
        return scores

    def dura(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        """Of hᵀM t, and what l2 takes of a bias; an orthogonal M keeps lengths, so that all is twice that of l2."""
        norms = self.squared_norms(heads).sum() + self.squared_norms(tails).sum() + self.l2_of_relations(relations)
        if self.exact and not self.hidden:
            return 2 * norms
        return norms + self._turned_squares("tail", heads, relations) + self._turned_squares("head", tails, relations)

    def _turned_squares(self, side: Side, given: Tensor, relations: Tensor) -> Tensor:
        """Σ ||Mᵀh||² where tails are asked, Σ ||M t||² where heads are, each distinct question turned once."""
        asked, times = torch.unique(given * self.relations + relations, return_counts=True)
        given, relations = asked // self.relations, asked % self.relations
        x = self.turn(other(side), self.entity(given), relations)
        return torch.sum(times * squared_norms(self.turn(side, x, relations, back=True)))

    def n3_norm(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        entities = super().n3_norm(heads, relations, tails)
        return entities if self.bias is None else entities + F.embedding(relations, self.bias).abs().pow(3).sum()

    def l2_of_relations(self, relations: Tensor) -> Tensor:
        if self.bias is None:
            return super().l2_of_relations(relations)
        times = torch.bincount(relations, minlength=self.relations)
        return BIAS_DECAY * torch.sum(times * squared_norms(self.bias))

    def penalty(self, relations: Tensor) -> Tensor:
        if self.exact:
            return super().penalty(relations)
        return self.lambda1 * soft_penalty(self.free_R1[relations]) + self.lambda2 * soft_penalty(self.R2[relations])

    def orthogonal(self) -> list[nn.Parameter]:
        return [self.R2] if self.exact else []

    @torch.no_grad()
    def unfold(self) -> RelWalk:
        """Itself, or the same model with its hidden dimensions written out: the paper's, with three coordinates for one
        (and for those that even out lengths), in every block. All vectors are longer by the root of how many times
        more coordinates there are, since s / 2d has a larger d: log-probabilities are the same.
        """
        if not self.hidden:
            return self
        R2, (_, head, _) = self.unfolded_R2(), self._in_blocks()
        shape = (-1, self.blocks, self.dim // self.blocks)
        e, v = self.vectors().view(shape), None if self.bias is None else self.bias.view(shape)
        if self.equal_lengths:
            e = same_lengths(e)
            v = None if v is None else F.pad(v, (0, e.shape[-1] - v.shape[-1]))
        dim = self.blocks * R2.shape[-1]
        whole = RelWalk(
            self.entities,
            self.relations,
            dim,
            generator=torch.Generator().manual_seed(0),
            orthogonality="exact" if self.exact else "soft",
            start_from="identity",
            blocks=self.blocks,
            relation_bias=v is not None,
        ).to(self.device)
        longer = (dim / self.dim) ** 0.5
        whole.entity.weight.copy_(longer * F.pad(e, (0, 2 * e.shape[-1])).flatten(1))  # none in hidden dimensions
        whole.R2.copy_(R2)
        if v is not None and whole.bias is not None:
            whole.bias.copy_(longer * unfolded_bias(v, head).flatten(1))
        return whole.eval()

    @torch.no_grad()
    def unfolded_R2(self) -> Tensor:
        """R2 of `unfold`, whose R1 is I.  # (relations, size, size), or (relations, blocks, width, width)"""
        if not self.hidden:
            return self.R2
        R2 = unfolded(*self._in_blocks()).mT  # (relations, blocks, width, width)
        return R2 if self.blocks > 1 else R2.squeeze(1)

    def _in_blocks(self) -> tuple[Tensor, Tensor, Tensor]:
        """M, θ and φ of each block, with more coordinates where those even out lengths.

        # (relations, blocks, width, width), (relations, blocks, width) twice
        """
        assert self.head_angles is not None and self.tail_angles is not None
        shape = (self.relations, self.blocks, self.dim // self.blocks)
        parts = self.R2.reshape(*shape, shape[-1]).mT, self.head_angles.view(shape), self.tail_angles.view(shape)
        return with_evening(*parts) if self.equal_lengths else parts

    @torch.no_grad()
    def log_partition(self, relations: Tensor, *, directions: int = 128, generator: torch.Generator) -> Tensor:
        """log Z1 + log Z2 of each relation, each Z the mean over random c of Σ exp(eᵀR c).  # (batch,)

        The paper's 2 log Z. When R is exactly orthogonal R c is as uniform as c, and Z is the same for all, unless c is
        drawn towards a bias: a direction then counts as exp(vᵀc) of them.
        """
        if self.hidden:
            return self.unfold().log_partition(relations, directions=directions, generator=generator)
        c = torch.randn(directions, self.blocks, self.dim // self.blocks, generator=generator).to(self.device)
        c = (c / c.norm(dim=-1, keepdim=True)).flatten(1) / self.blocks**0.5  # (directions, dim)
        even = c.new_full((directions,), -math.log(directions))  # (directions,) logs of what each counts
        if self.exact and self.bias is None:
            return 2 * self._log_mean_partition(c, even).expand(len(relations))
        distinct, place = torch.unique(relations, return_inverse=True)
        found = []
        for r in distinct:
            weights = even if self.bias is None else torch.log_softmax(c @ self.bias[r], 0)
            head, tail = (self._log_mean_partition(self.turn(side, c, r, back=True), weights) for side in SIDES)
            found.append(head + tail)
        return torch.stack(found)[place]

    def _log_mean_partition(self, c: Tensor, weights: Tensor) -> Tensor:
        return torch.logsumexp((self.entity() @ c.T + weights).flatten(), 0)

    def log_prob(
        self, heads: Tensor, relations: Tensor, tails: Tensor, *, directions: int = 128, generator: torch.Generator
    ) -> Tensor:
        """log p(h, t | R) = s / 2d - 2 log Z, with Z estimated from random directions.  # (batch,)"""
        if self.hidden:
            return self.unfold().log_prob(heads, relations, tails, directions=directions, generator=generator)
        partition = self.log_partition(relations, directions=directions, generator=generator)
        return self.scale * self.score(heads, relations, tails) - partition


def check_blocks(dim: int, blocks: int) -> None:
    """Refuse blocks that are not of one size, or that have a single coordinate, which cannot be turned."""
    check_whole("blocks", blocks, most=DIM)
    if blocks > 1 and (dim % blocks or dim < 2 * blocks):
        raise RelWalkError(
            f"RelWalk cuts dim into blocks of one size, two coordinates at least; found dim {dim} and blocks {blocks}. "
            "Say --blocks that divide it, or another --dim."
        )


def other(side: Side) -> Side:
    return "head" if side == "tail" else "tail"
