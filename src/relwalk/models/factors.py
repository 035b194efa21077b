"""A square matrix for every relation, kept as less than its d² numbers and never multiplied out to score.

    LowRank      R = D + Uᵀ V              2dK numbers: truncated SVD, or eigenvectors of any matrix
    Rotations    R = D (I + Qᵀ B Q)        dK numbers: eigenvectors of an orthogonal matrix, B of 2 x 2 blocks
    Householder  R = H_1 ... H_(d-1) S     d(d-1)/2 numbers: all of an orthogonal matrix, S of signs

The diagonal D is what few components are added to: the identity as in the paper; the signs of each relation's own
diagonal, which are nearer to matrices that have a basis in common, as those that start from signs have; or nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Literal

import numpy as np
import scipy.linalg
import torch
from torch import Tensor, nn

from relwalk.models.quantised import from_int8, to_int8
from relwalk.models.relation_matmul import Groups

Precision = Literal["float32", "float16", "int8"]
Around = Literal["identity", "signs", "nothing"]
PRECISIONS = {"float32": torch.float32, "float16": torch.float16, "int8": torch.int8}
BLOCK = 32  # relations decomposed at a time: double precision copies stay small
PAIRED = 1e-7  # a rotation of a smaller angle than this is no rotation: its two eigenvalues are real


class Factors(nn.Module, ABC):
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
        self.numbers = nn.Parameter(numbers.to(PRECISIONS[precision]), requires_grad=False)

    def of(self, relation: int) -> Tensor:
        """(K, dim), in float32."""
        if self.numbers.dtype == torch.int8:
            return from_int8(self.numbers[relation], self.scale[relation])
        return self.numbers[relation].float()


class LowRank(Factors):
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


class Rotations(Factors):
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


class Householder(Factors):
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


class Decomposition(ABC):
    """A stack of matrices, decomposed once to be cut at any rank."""

    @abstractmethod
    def cut(self, rank: int, precision: Precision = "float32") -> Factors:
        """Its `rank` leading components."""


class SingularVectors(Decomposition):
    """The SVD of R - D: cut anywhere, the nearest matrix of that rank in the Frobenius norm."""

    def __init__(self, matrices: Tensor, diagonal: Tensor) -> None:
        self.diagonal = diagonal
        parts = [torch.linalg.svd(part) for part in _in_blocks(matrices - torch.diag_embed(diagonal))]
        U, s, V = (torch.cat(part) for part in zip(*parts, strict=True))
        root = s.sqrt()
        self.U, self.V = (U * root.unsqueeze(1)).mT.float(), (root.unsqueeze(2) * V).float()

    def cut(self, rank: int, precision: Precision = "float32") -> Factors:
        return LowRank(self.diagonal, self.U[:, :rank], self.V[:, :rank], precision)


class Eigenvectors(Decomposition):
    """R - D = P Λ P⁻¹, largest |λ| first, of any matrix that has so many eigenvectors.

    A complex eigenvalue and its conjugate stand for two real components: with the right vector p of λ and the left one
    q, their share is 2 Re(λ p q) = 2 (Re λp) (Re q) - 2 (Im λp) (Im q). They stay together or go together.
    """

    def __init__(self, matrices: Tensor, diagonal: Tensor) -> None:
        self.diagonal = diagonal
        found = [_real_components(part) for part in _in_blocks(matrices - torch.diag_embed(diagonal))]
        self.U, self.V, self.weights, self.pairs = (torch.cat(part) for part in zip(*found, strict=True))

    def cut(self, rank: int, precision: Precision = "float32") -> Factors:
        kept = [leading(w, pairs, rank) for w, pairs in zip(self.weights.numpy(), self.pairs.numpy(), strict=True)]
        U, V = (_pick(x, kept, rank) for x in (self.U, self.V))
        return LowRank(self.diagonal, U, V, precision)


class RotationPlanes(Decomposition):
    """The real Schur form of D R, R orthogonal, whose blocks are its eigenvalues: cos θ ± i sin θ, 1 and -1."""

    def __init__(self, matrices: Tensor, diagonal: Tensor) -> None:
        self.diagonal = diagonal
        found = [_planes(R) for R in (diagonal.unsqueeze(-1) * matrices).double().cpu().numpy()]
        self.Q, self.cosines, self.sines = (torch.from_numpy(np.stack(part)) for part in zip(*found, strict=True))

    def cut(self, rank: int, precision: Precision = "float32") -> Factors:
        weights = (2 - 2 * self.cosines).clamp_min(0).sqrt().numpy()  # |λ - 1|
        kept = [leading(w, s != 0, rank) for w, s in zip(weights, self.sines.numpy(), strict=True)]
        even = rank + rank % 2
        Q, cosines, sines = (_pick(x.float(), kept, even) for x in (self.Q, self.cosines, self.sines))
        return Rotations(self.diagonal, Q, cosines, sines, precision)


def decompose(matrices: Tensor, method: str, around: Around, *, orthogonal: bool) -> Decomposition:
    """The components of matrices less a diagonal, by eig or svd."""
    relations, dim, _ = matrices.shape
    diagonal = empty_diagonal(around, relations, dim).to(matrices.device)
    if around == "signs":
        diagonal = torch.where(matrices.diagonal(dim1=-2, dim2=-1) < 0, -1, 1).to(torch.int8)
    if method == "svd":
        return SingularVectors(matrices, diagonal)
    return RotationPlanes(matrices, diagonal) if orthogonal else Eigenvectors(matrices, diagonal)


def reflections(matrices: Tensor) -> Householder:
    """All of some orthogonal matrices, to the precision of float32."""
    dim = matrices.shape[-1]
    packed, _ = torch.geqrf(matrices.double())
    rows, columns = torch.tril_indices(dim, dim, -1)
    signs = torch.where(packed.diagonal(dim1=-2, dim2=-1) < 0, -1, 1).to(torch.int8)
    return Householder(packed[:, rows, columns].float(), signs)


def empty_factors(
    method: str, around: Around, shape: tuple[int, int, int], precision: Precision, *, orthogonal: bool
) -> Factors:
    """Factors of (relations, K, dim) for numbers that are still to be filled in."""
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


def leading(weights: np.ndarray, paired: np.ndarray, rank: int) -> np.ndarray:
    """The places of the components with the largest weights, pairs first, each pair in two neighbouring places.

    Components come in the order of their places, both of a pair next to each other. A pair that would need one place
    more than there are is passed over for the next that fits.
    """
    first = np.flatnonzero(paired)[::2]
    units = [(weights[i], i, 2) for i in first] + [(weights[i], i, 1) for i in np.flatnonzero(~paired)]
    kept: list[tuple[int, int]] = []
    room = rank
    for _, place, size in sorted(units, key=lambda unit: -unit[0]):
        if size <= room:
            kept.append((place, size))
            room -= size
    kept.sort(key=lambda unit: -unit[1])
    return np.array([place + k for place, size in kept for k in range(size)], dtype=np.int64)


def _in_blocks(matrices: Tensor) -> Iterator[Tensor]:
    return (part.double().cpu() for part in torch.split(matrices, BLOCK))


def _pick(components: Tensor, kept: list[np.ndarray], width: int) -> Tensor:
    """Of each relation its own components, filled up with zeros.  # (relations, width, ...)"""
    out = components.new_zeros(len(components), width, *components.shape[2:])
    for relation, places in enumerate(kept):
        out[relation, : len(places)] = components[relation, torch.from_numpy(places)]
    return out


def _real_components(matrices: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """U and V with matrices = Uᵀ V, the size of each eigenvalue, and whether it is one of a pair.

    LAPACK gives the two of a pair one after the other, the one above the real axis first.
    """
    values, right = torch.linalg.eig(matrices)  # (n, d), (n, d, d)
    left = torch.linalg.inv(right)
    scaled, rows = (right * values.unsqueeze(1)).mT, left  # components x dim
    paired, upper = values.imag != 0, values.imag > 0
    lower = paired & ~upper
    both = torch.where(upper, 2.0, 1.0).unsqueeze(-1)
    before = scaled.roll(1, 1), rows.roll(1, 1)  # of the lower one, its conjugate
    U = torch.where(lower.unsqueeze(-1), -2 * before[0].imag, both * scaled.real)
    V = torch.where(lower.unsqueeze(-1), before[1].imag, rows.real)
    return U.float(), V.float(), values.abs(), paired


def _planes(R: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The Schur vectors of an orthogonal matrix as rows, and of each the cosine and the signed sine of its block.

    R = Qᵀ T Q with T of blocks [[c, s], [-s, c]]: coordinate j of x T is c_j x_j + s_j x_partner, so the first of a
    pair has the entry below the diagonal, the second the one above it.
    """
    T, Z = scipy.linalg.schur(R, output="real")
    cosines, sines = T.diagonal().copy(), np.zeros(len(R))
    below, above = T.diagonal(-1), T.diagonal(1)
    first = np.flatnonzero(np.abs(below) > PAIRED)
    sines[first], sines[first + 1] = below[first], above[first]
    return Z.T.copy(), cosines, sines
