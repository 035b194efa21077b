"""Products with one matrix per relation, without a copy of that matrix per triple."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor


class Factors(NamedTuple):
    """What a batch asks of orthogonal matrices R: RᵀG = Σ over the rows of R's relation of turnedᵀ rows.

    G itself, d x d for each relation, is never made: a batch has a few rows for each of many relations.
    """

    turned: Tensor  # (batch, dim)
    rows: Tensor  # (batch, dim)
    relations: Tensor  # (batch,)


def collect_factors(matrices: Tensor) -> list[Factors]:
    """From now on `project` leaves the gradient of these matrices here, as factors, and none in `matrices.grad`."""
    collected: list[Factors] = []
    matrices.factors = collected  # type: ignore[attr-defined]
    return collected


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
        if self.sorted_already:
            return rows
        restored = torch.empty_like(rows)
        restored[self.order] = rows
        return restored

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


class _Project(torch.autograd.Function):
    """One product per relation, forward and backward.

    Autograd through `matrices[relations]` would gather a d x d matrix per row, and through
    `matrices[relation]` in a loop would allocate a gradient of the whole stack per relation. Of orthogonal matrices
    whose optimiser asked for it, the gradient is kept as factors, which cost nothing: forward y = x R gives
    RᵀG = yᵀ(slope of y), and y = x Rᵀ gives RᵀG = (slope of x)ᵀ x.
    """

    @staticmethod
    def forward(ctx: Any, rows: Tensor, matrices: Tensor, relations: Tensor, transposed: bool) -> Tensor:
        groups = Groups(relations)
        ctx.groups, ctx.transposed = groups, transposed
        ctx.factors = getattr(matrices, "factors", None)
        rows = groups.sort(rows)
        projected = groups.products(rows, matrices.mT if transposed else matrices)
        ctx.save_for_backward(rows, matrices, projected, groups.sort(relations))
        return groups.unsort(projected)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor | None, None, None]:
        rows, matrices, projected, relations = ctx.saved_tensors  # sorted
        groups: Groups = ctx.groups
        grad = groups.sort(grads[0])
        to_rows = groups.products(grad, matrices if ctx.transposed else matrices.mT)
        if ctx.factors is not None:
            turned, straight = (to_rows, rows) if ctx.transposed else (projected, grad)
            ctx.factors.append(Factors(turned, straight, relations))
            return groups.unsort(to_rows), None, None, None
        left, right = (grad, rows) if ctx.transposed else (rows, grad)
        return groups.unsort(to_rows), groups.outer_products(left, right, matrices), None, None


def project(rows: Tensor, matrices: Tensor, relations: Tensor, *, transposed: bool = False) -> Tensor:
    """Row i times the square matrix of its relation, `rows[i] @ matrices[relations[i]]`, or its transpose.

    # (batch, dim)
    """
    projected: Tensor = _Project.apply(rows, matrices, relations, transposed)  # type: ignore[no-untyped-call]
    return projected
