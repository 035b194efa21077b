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
    """Rows of a batch grouped by relation: `order` sorts them, group i is `order[bounds[i]:bounds[i+1]]`."""

    def __init__(self, relations: Tensor) -> None:
        ordered, self.order = torch.sort(relations, stable=True)
        distinct, counts = torch.unique_consecutive(ordered, return_counts=True)
        self.relations: list[int] = distinct.tolist()
        self.bounds: list[int] = [0, *torch.cumsum(counts, 0).tolist()]
        self.sorted_already = bool((self.order[1:] > self.order[:-1]).all())

    def sort(self, rows: Tensor) -> Tensor:
        return rows if self.sorted_already else rows[self.order]

    def unsort(self, rows: Tensor) -> Tensor:
        if self.sorted_already:
            return rows
        restored = torch.empty_like(rows)
        restored[self.order] = rows
        return restored

    def __iter__(self) -> Any:
        """(relation, slice of the sorted rows) of each group."""
        for relation, start, end in zip(self.relations, self.bounds[:-1], self.bounds[1:], strict=True):
            yield relation, slice(start, end)


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
        projected = rows.new_empty(len(rows), matrices.shape[-1])
        for relation, part in groups:
            torch.mm(rows[part], matrices[relation].T if transposed else matrices[relation], out=projected[part])
        ctx.save_for_backward(rows, matrices, projected, groups.sort(relations))
        return groups.unsort(projected)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor | None, None, None]:
        rows, matrices, projected, relations = ctx.saved_tensors  # sorted
        groups: Groups = ctx.groups
        grad, to_rows = groups.sort(grads[0]), torch.empty_like(rows)
        for relation, part in groups:
            torch.mm(grad[part], matrices[relation] if ctx.transposed else matrices[relation].T, out=to_rows[part])
        if ctx.factors is not None:
            turned, straight = (to_rows, rows) if ctx.transposed else (projected, grad)
            ctx.factors.append(Factors(turned, straight, relations))
            return groups.unsort(to_rows), None, None, None
        to_matrices = torch.zeros_like(matrices)
        for relation, part in groups:
            left, right = (grad[part], rows[part]) if ctx.transposed else (rows[part], grad[part])
            torch.mm(left.T, right, out=to_matrices[relation])
        return groups.unsort(to_rows), to_matrices, None, None


def project(rows: Tensor, matrices: Tensor, relations: Tensor, *, transposed: bool = False) -> Tensor:
    """Row i times the square matrix of its relation, `rows[i] @ matrices[relations[i]]`, or its transpose.

    # (batch, dim)
    """
    projected: Tensor = _Project.apply(rows, matrices, relations, transposed)  # type: ignore[no-untyped-call]
    return projected
