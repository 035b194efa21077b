"""Products with one matrix per relation, without a copy of that matrix per triple."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import torch
from torch import Tensor

CALL = 6000  # numbers that are copied in the time of one small product


class Factors(NamedTuple):
    """What a batch asks of orthogonal matrices R: RᵀG = Σ over the rows of R's relation of turnedᵀ rows.

    G itself, d x d for each relation, is never made: a batch has a few rows for each of many relations.
    """

    turned: Tensor  # (batch, dim)
    rows: Tensor  # (batch, dim)
    relations: Tensor  # (batch,)


_collected: ContextVar[dict[int, list[Factors]] | None] = ContextVar("collected", default=None)


@contextmanager
def collect_factors(stacks: Sequence[Tensor]) -> Iterator[list[list[Factors]]]:
    """Within, `project` leaves the gradient of these stacks of matrices here, as factors, and none in their `.grad`."""
    collected: dict[int, list[Factors]] = {id(stack): [] for stack in stacks}
    token = _collected.set({**(_collected.get() or {}), **collected})
    try:
        yield [collected[id(stack)] for stack in stacks]
    finally:
        _collected.reset(token)


class Groups:
    """Rows of a batch grouped by relation: `order` sorts them, group i is the next `counts[i]` of them."""

    def __init__(self, relations: Tensor) -> None:
        ordered, self.order = torch.sort(relations, stable=True)
        distinct, counts = torch.unique_consecutive(ordered, return_counts=True)
        self.relations: list[int] = distinct.tolist()
        self.counts: list[int] = counts.tolist()
        self.sorted_already = bool((self.order[1:] > self.order[:-1]).all())

    def sort(self, rows: Tensor) -> Tensor:
        return rows if self.sorted_already else rows[self.order]

    def unsort(self, rows: Tensor) -> Tensor:
        """Undo `sort`; differentiable."""
        return rows if self.sorted_already else rows[torch.argsort(self.order)]

    def products(self, rows: Tensor, matrices: Tensor) -> Tensor:
        """Sorted rows times the matrix of their relation.  # (batch, dim)"""
        out = rows.new_empty(len(rows), matrices.shape[-1])
        each = matrices.unbind()  # views made by the stack at once: by the hundred, they cost as much as the products
        parts = zip(self.relations, torch.split(rows, self.counts), torch.split(out, self.counts), strict=True)
        for relation, part, result in parts:
            torch.mm(part, each[relation], out=result)
        return out

    def outer_products(self, left: Tensor, right: Tensor, like: Tensor) -> Tensor:
        """leftᵀ right of each group's sorted rows, zero for relations without any.  # (relations, dim, dim)"""
        out = torch.zeros_like(like)
        for relation, a, b in zip(self.relations, *(torch.split(x, self.counts) for x in (left, right)), strict=True):
            torch.mm(a.T, b, out=out[relation])
        return out


class InOrder:
    """Rows that need no sorting."""

    def sort(self, rows: Tensor) -> Tensor:
        return rows

    def unsort(self, rows: Tensor) -> Tensor:
        return rows


class One(InOrder):
    """The same for rows of one relation."""

    def __init__(self, relation: int) -> None:
        self.relation = relation

    def products(self, rows: Tensor, matrices: Tensor) -> Tensor:
        return rows @ matrices[self.relation]

    def outer_products(self, left: Tensor, right: Tensor, like: Tensor) -> Tensor:
        out = torch.zeros_like(like)
        torch.mm(left.T, right, out=out[self.relation])
        return out


class Gathered(InOrder):
    """The same of many small matrices, each copied for its rows: one batched product, in the order of the rows."""

    def __init__(self, relations: Tensor) -> None:
        self.of_rows = relations

    def products(self, rows: Tensor, matrices: Tensor) -> Tensor:
        return torch.bmm(rows.unsqueeze(1), matrices[self.of_rows]).squeeze(1)

    def outer_products(self, left: Tensor, right: Tensor, like: Tensor) -> Tensor:
        return torch.zeros_like(like).index_add_(0, self.of_rows, left.unsqueeze(2) * right.unsqueeze(1))


class _Project(torch.autograd.Function):
    """One product per relation, forward and backward.

    Autograd through `matrices[relations]` would gather a d x d matrix per row, and through
    `matrices[relation]` in a loop would allocate a gradient of the whole stack per relation. Of orthogonal matrices
    whose optimizer asked for it, the gradient is kept as factors, which cost nothing: forward y = x R gives
    RᵀG = yᵀ(slope of y), and y = x Rᵀ gives RᵀG = (slope of x)ᵀ x.
    """

    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, matrices: Tensor, relations: Tensor, transposed: bool, factors: list[Factors] | None
    ) -> Tensor:
        groups = _grouping(relations, matrices)
        relations = relations.expand(len(rows)) if relations.dim() == 0 else relations
        ctx.groups, ctx.transposed, ctx.factors = groups, transposed, factors
        rows = groups.sort(rows)
        projected = groups.products(rows, matrices.mT if transposed else matrices)
        ctx.save_for_backward(rows, matrices, projected, groups.sort(relations))
        return groups.unsort(projected)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        rows, matrices, projected, relations = ctx.saved_tensors  # sorted
        groups: One | Gathered | Groups = ctx.groups
        grad = groups.sort(grads[0])
        to_rows = groups.products(grad, matrices if ctx.transposed else matrices.mT)
        if ctx.factors is not None:
            turned, straight = (to_rows, rows) if ctx.transposed else (projected, grad)
            ctx.factors.append(Factors(turned, straight, relations))
            return groups.unsort(to_rows), None, None, None, None
        left, right = (grad, rows) if ctx.transposed else (rows, grad)
        return groups.unsort(to_rows), groups.outer_products(left, right, matrices), None, None, None


def _grouping(relations: Tensor, matrices: Tensor) -> One | Gathered | Groups:
    """The cheapest way to multiply: small blocks of many relations are copied, few or large matrices are not."""
    if relations.dim() == 0:
        return One(int(relations))
    copied = len(relations) * matrices.shape[-2] * matrices.shape[-1]
    return Gathered(relations) if copied < CALL * min(len(relations), len(matrices)) else Groups(relations)


def in_blocks(rows: Tensor, relations: Tensor, blocks: int) -> tuple[Tensor, Tensor]:
    """Each block of a row as a row of its own, and which of all blocks of all relations is multiplied with it."""
    relations = relations.expand(len(rows)) if relations.dim() == 0 else relations
    of_blocks = (relations.unsqueeze(1) * blocks + torch.arange(blocks, device=relations.device)).flatten()
    return rows.reshape(len(of_blocks), -1), of_blocks  # (batch x blocks, width), (batch x blocks,)


def project(rows: Tensor, matrices: Tensor, relations: Tensor, *, transposed: bool = False) -> Tensor:
    """Row i times the matrix of its relation, `rows[i] @ matrices[relations[i]]`, or its transpose.  # (batch, dim)

    `matrices` are (relations, dim, dim), or (relations, dim, other) to lead elsewhere, or (relations, blocks, width,
    width) for a block diagonal: each of the blocks of a row, dim = blocks x width, is multiplied with its own. One
    relation for all rows is a scalar.
    """
    factors = (_collected.get() or {}).get(id(matrices))
    blocks = matrices.shape[1] if matrices.dim() == 4 else 1
    shape = (len(rows), blocks * matrices.shape[-2 if transposed else -1])
    if matrices.dim() == 4:
        rows, relations = in_blocks(rows, relations, blocks)
        matrices = matrices.flatten(0, 1)
    projected: Tensor = _Project.apply(rows, matrices, relations, transposed, factors)  # type: ignore[no-untyped-call]
    return projected.view(shape)
