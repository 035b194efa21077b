"""A square matrix for every relation, kept as less than its d² numbers and never multiplied out to score.

    LowRank      R = D + Uᵀ V              2dK numbers: truncated SVD, or eigenvectors of any matrix
    Rotations    R = D (I + Qᵀ B Q)        dK numbers: eigenvectors of an orthogonal matrix, B of 2 x 2 blocks
    Householder  R = H_1 ... H_(d-1) S     d(d-1)/2 numbers: all of an orthogonal matrix, S of signs

The diagonal D is what few components are added to: the identity as in the paper; the signs of each relation's own
diagonal, which are nearer to matrices that have a basis in common, as those that start from signs have; or nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal

import torch
from torch import Tensor, nn

from relwalk.models.quantised import from_int8, to_int8
from relwalk.models.relation_matmul import Groups

Precision = Literal["float32", "float16", "int8"]
Around = Literal["identity", "signs", "nothing"]
PRECISIONS = {"float32": torch.float32, "float16": torch.float16, "int8": torch.int8}


class FactoredMatrices(nn.Module, ABC):
    """A stack of matrices that knows how to multiply."""

    dim: int
    relations: int
    orthogonal: bool = False  # to float precision, whatever the numbers

    @abstractmethod
    def multiply(self, rows: Tensor, relation: int, transposed: bool = False) -> Tensor:
        """Rows times the matrix of a relation, or its transpose.  # (rows, dim)"""

    def project(self, rows: Tensor, relations: Tensor, *, transposed: bool = False) -> Tensor:
        """Row i times the matrix of its relation; one relation for all rows is a scalar.  # (rows, dim)"""
        if relations.dim() == 0:
            return self.multiply(rows, int(relations), transposed)
        groups = Groups(relations)
        parts = zip(groups.relations, torch.split(groups.sort(rows), groups.counts), strict=True)
        done = [self.multiply(part, relation, transposed) for relation, part in parts]
        return groups.unsort(torch.cat(done)) if done else rows

    def dense(self) -> Tensor:
        """The matrices themselves: for analyses and exports.  # (relations, dim, dim)"""
        eye = torch.eye(self.dim, device=next(self.parameters()).device)
        return torch.stack([self.multiply(eye, relation) for relation in range(self.relations)])


class Rows(nn.Module):
    """(relations, K, dim) numbers: of a relation, K vectors; int8 has a scale for each of them."""

    def __init__(self, numbers: Tensor, precision: Precision) -> None:
        super().__init__()
        if precision == "int8":
            numbers, scale = to_int8(numbers)
            self.scale = nn.Parameter(scale, requires_grad=False)
        numbers = numbers.to(PRECISIONS[precision]).contiguous()  # not a view, which would keep what was cut off
        self.numbers = nn.Parameter(numbers, requires_grad=False)

    def of(self, relation: int) -> Tensor:
        """(K, dim), in float32."""
        if self.numbers.dtype == torch.int8:
            return from_int8(self.numbers[relation], self.scale[relation])
        return self.numbers[relation].float()


class LowRank(FactoredMatrices):
    """R = D + Uᵀ V: x R = x D + (x Uᵀ) V."""

    def __init__(self, diagonal: Tensor, U: Tensor, V: Tensor, precision: Precision) -> None:
        super().__init__()
        self.relations, _, self.dim = U.shape
        self.diagonal = nn.Parameter(diagonal, requires_grad=False)  # (relations, dim) int8, or (1, dim) for all
        self.U, self.V = Rows(U, precision), Rows(V, precision)

    def multiply(self, rows: Tensor, relation: int, transposed: bool = False) -> Tensor:
        U, V = self.U.of(relation), self.V.of(relation)  # (K, dim)
        if transposed:
            U, V = V, U
        return torch.addmm(rows * of_relation(self.diagonal, relation), rows @ U.T, V)  # (rows, dim)


class Rotations(FactoredMatrices):
    """R = D (I + Qᵀ B Q), the rows of Q orthonormal. B has a block for each pair of rows: a rotation less I, or two
    real eigenvalues less 1. What is orthogonal to Q is left as it is: cut down to any K, R stays orthogonal."""

    def __init__(self, diagonal: Tensor, Q: Tensor, cosines: Tensor, sines: Tensor, precision: Precision) -> None:
        super().__init__()
        self.relations, _, self.dim = Q.shape  # an even number of rows
        self.diagonal = nn.Parameter(diagonal, requires_grad=False)  # (relations, dim) int8, or (1, dim) for all
        self.Q, self.orthogonal = Rows(Q, precision), precision == "float32"
        self.blocks = nn.Parameter(torch.stack([cosines - 1, sines], 1), requires_grad=False)  # (relations, 2, K)

    def multiply(self, rows: Tensor, relation: int, transposed: bool = False) -> Tensor:
        Q, (own, side) = self.Q.of(relation), self.blocks[relation]  # (K, dim), (K,)
        D = of_relation(self.diagonal, relation)
        rows = rows if transposed else rows * D
        x = rows @ Q.T  # (rows, K)
        other = x.view(len(x), x.shape[1] // 2, 2).flip(-1).view(x.shape)  # each coordinate's partner in its block
        turned = torch.addmm(rows, x * own + other * (-side if transposed else side), Q)  # (rows, dim)
        return turned * D if transposed else turned


class Householder(FactoredMatrices):
    """R = H_1 ... H_(d-1) S, by the reflections H = I - 2 v vᵀ / vᵀv of its QR decomposition: of an orthogonal R, the
    triangular factor is a diagonal of signs. v_k is 0 above k and 1 at it: the rest of it is all that is kept."""

    orthogonal = True

    def __init__(self, vectors: Tensor, signs: Tensor) -> None:
        super().__init__()
        self.relations, self.dim = signs.shape
        self.vectors = nn.Parameter(vectors, requires_grad=False)  # (relations, d(d-1)/2): their ends, row by row
        self.signs = nn.Parameter(signs, requires_grad=False)  # (relations, dim) int8

    def multiply(self, rows: Tensor, relation: int, transposed: bool = False) -> Tensor:
        V = rows.new_zeros(self.dim, self.dim)
        V[tuple(torch.tril_indices(self.dim, self.dim, -1))] = self.vectors[relation]
        ends = V.square().sum(0)
        tau = torch.where(ends > 0, 2 / (1 + ends), 0.0)  # a column that ends in zeros was left as it is
        signs = self.signs[relation]
        if transposed:
            return torch.ormqr(V, tau, rows * signs, left=False, transpose=True)
        return torch.ormqr(V, tau, rows, left=False) * signs


def empty_matrices(
    method: str, around: Around, shape: tuple[int, int, int], precision: Precision, *, orthogonal: bool
) -> FactoredMatrices:
    """FactoredMatrices of (relations, K, dim) for numbers that are still to be filled in."""
    relations, rank, dim = shape
    if method == "lossless":
        return Householder(torch.empty(relations, dim * (dim - 1) // 2), empty_diagonal("signs", relations, dim))
    diagonal = empty_diagonal(around, relations, dim)
    if method == "eig" and orthogonal:
        even = rank + rank % 2
        ones = torch.ones(relations, even)
        return Rotations(diagonal, torch.zeros(relations, even, dim), ones, ones, precision)
    zeros = torch.zeros(shape)
    return LowRank(diagonal, zeros, zeros, precision)


def empty_diagonal(around: Around, relations: int, dim: int) -> Tensor:
    """One for all relations where they have it in common, and int8: it holds only -1, 0 and 1."""
    rows = relations if around == "signs" else 1
    return torch.full((rows, dim), 0 if around == "nothing" else 1, dtype=torch.int8)


def of_relation(diagonal: Tensor, relation: int) -> Tensor:
    return diagonal[relation] if len(diagonal) > 1 else diagonal[0]
