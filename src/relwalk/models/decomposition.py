"""Relation matrices to factors: by eigenvectors, singular vectors or reflections."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np
import scipy.linalg
import torch
from torch import Tensor

from relwalk.models.factored import (
    Around,
    FactoredMatrices,
    Householder,
    LowRank,
    Precision,
    Rotations,
    empty_diagonal,
)

BLOCK = 32  # relations decomposed at a time: double precision copies stay small
PAIRED = 1e-7  # a rotation of a smaller angle than this is no rotation: its two eigenvalues are real


class Decomposition(ABC):
    """A stack of matrices, decomposed once to be cut at any rank."""

    @abstractmethod
    def cut(self, rank: int, precision: Precision = "float32") -> FactoredMatrices:
        """Its `rank` leading components."""


class SingularVectors(Decomposition):
    """The SVD of R - D: cut anywhere, the nearest matrix of that rank in the Frobenius norm."""

    def __init__(self, matrices: Tensor, diagonal: Tensor) -> None:
        self.diagonal = diagonal
        parts = [torch.linalg.svd(part) for part in _in_blocks(matrices - torch.diag_embed(diagonal))]
        U, s, V = (torch.cat(part) for part in zip(*parts, strict=True))
        root = s.sqrt()
        self.U, self.V = (U * root.unsqueeze(1)).mT.float(), (root.unsqueeze(2) * V).float()

    def cut(self, rank: int, precision: Precision = "float32") -> FactoredMatrices:
        return LowRank(self.diagonal, self.U[:, :rank], self.V[:, :rank], precision)


class Eigenvectors(Decomposition):
    """D R - I = P Λ P⁻¹ (or R itself, where there is no D), largest |λ| first, of any matrix that has so many vectors.

    It is D R that is nearly normal when R is nearly orthogonal, and not R - D = D (D R - I).

    A complex eigenvalue and its conjugate stand for two real components: with the right vector p of λ and the left one
    q, their share is 2 Re(λ p q) = 2 (Re λp) (Re q) - 2 (Im λp) (Im q). They stay together or go together.
    """

    def __init__(self, matrices: Tensor, diagonal: Tensor) -> None:
        self.diagonal = diagonal
        signs = torch.where(diagonal == 0, 1, diagonal)
        near_normal = signs.unsqueeze(-1) * (matrices - torch.diag_embed(diagonal))
        found = [_real_components(part) for part in _in_blocks(near_normal)]
        self.U, self.V, self.weights, self.pairs = (torch.cat(part) for part in zip(*found, strict=True))
        self.U *= signs.cpu().unsqueeze(1)

    def cut(self, rank: int, precision: Precision = "float32") -> FactoredMatrices:
        kept = [leading(w, pairs, rank) for w, pairs in zip(self.weights.numpy(), self.pairs.numpy(), strict=True)]
        U, V = (_pick(x, kept, rank) for x in (self.U, self.V))
        return LowRank(self.diagonal, U, V, precision)


class RotationPlanes(Decomposition):
    """The real Schur form of D R, R orthogonal, whose blocks are its eigenvalues: cos θ ± i sin θ, 1 and -1."""

    def __init__(self, matrices: Tensor, diagonal: Tensor) -> None:
        self.diagonal = diagonal
        found = [_planes(R) for R in (diagonal.unsqueeze(-1) * matrices).double().cpu().numpy()]
        self.Q, self.cosines, self.sines = (torch.from_numpy(np.stack(part)) for part in zip(*found, strict=True))

    def cut(self, rank: int, precision: Precision = "float32") -> FactoredMatrices:
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
