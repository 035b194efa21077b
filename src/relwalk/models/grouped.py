"""Products with one matrix per relation, without a copy of that matrix per triple."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


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
    `matrices[relation]` in a loop would allocate a gradient of the whole stack per relation.
    """

    @staticmethod
    def forward(ctx: Any, rows: Tensor, matrices: Tensor, relations: Tensor, transposed: bool) -> Tensor:
        groups = Groups(relations)
        ctx.groups, ctx.transposed = groups, transposed
        ctx.save_for_backward(rows, matrices)
        rows = groups.sort(rows)
        projected = rows.new_empty(len(rows), matrices.shape[-1])
        for relation, part in groups:
            torch.mm(rows[part], matrices[relation].T if transposed else matrices[relation], out=projected[part])
        return groups.unsort(projected)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None, None]:
        rows, matrices = ctx.saved_tensors
        groups: Groups = ctx.groups
        rows, grad = groups.sort(rows), groups.sort(grads[0])
        to_rows, to_matrices = torch.empty_like(rows), torch.zeros_like(matrices)
        for relation, part in groups:
            left, right = (grad[part], rows[part]) if ctx.transposed else (rows[part], grad[part])
            torch.mm(grad[part], matrices[relation] if ctx.transposed else matrices[relation].T, out=to_rows[part])
            torch.mm(left.T, right, out=to_matrices[relation])
        return groups.unsort(to_rows), to_matrices, None, None


def project(rows: Tensor, matrices: Tensor, relations: Tensor, *, transposed: bool = False) -> Tensor:
    """Row i times the square matrix of its relation, `rows[i] @ matrices[relations[i]]`, or its transpose.

    # (batch, dim)
    """
    projected: Tensor = _Project.apply(rows, matrices, relations, transposed)  # type: ignore[no-untyped-call]
    return projected
