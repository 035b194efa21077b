"""How orthogonal the relation matrices are, and what kind of map M = R1 R2ᵀ is.

    nu_R   = Σ_(i≠j) |R1ᵀR1|_ij + |R2ᵀR2|_ij        (the paper), per entry: nu_R / 2d(d-1)
    defect = max |RᵀR - I|
    asymmetry ||M - Mᵀ||, from identity ||M - I||, from involution ||M² - I||, each / 2√d, so 0 is "is one" and
    1 as far as an orthogonal matrix can be; two random rotations are 1/√2 apart.

For an orthogonal M asymmetry and distance from an involution are the same number. Eigenvalues of an orthogonal
matrix lie on the unit circle: their angles (degrees, 0 to 180, conjugate pairs twice) are its spectrum. R1 and R2
alone are not identifiable (R1 Q, R2 Q score alike for any orthogonal Q): only M is what was learned.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from relwalk.display import Shown
from relwalk.evaluation.estimate import Absent, clip, show
from relwalk.graph.graph import Graph
from relwalk.models.base import Scorer
from relwalk.models.orthogonal import block_diagonal
from relwalk.models.reciprocal import Reciprocal
from relwalk.models.relwalk import RelWalk
from relwalk.progress import OnProgress, silent

BLOCK = 64  # relations at a time: double precision copies stay small


@dataclass(frozen=True, eq=False)
class Matrices:
    """The relation matrices of a model. R1 and R2 are None where it has only a product of the two, or hidden
    dimensions: M is then the corner that entities see of a larger product, and `whole` the R2 of that."""

    M: Tensor  # (relations, dim, dim)
    R1: Tensor | None = None
    R2: Tensor | None = None
    exact: bool = False  # R1 = I, and R2 is orthogonal
    whole: Tensor | None = None  # where R1 = I: (relations, size, size), or (relations, blocks, width, width)

    @property
    def orthogonal(self) -> bool:
        """Whether M is orthogonal: all of R2ᵀ."""
        return self.exact and self.whole is None

    def first(self, count: int) -> Matrices:
        """Those of the first relations."""
        R1, R2 = (None if R is None else R[:count] for R in (self.R1, self.R2))
        return Matrices(self.M[:count], R1, R2, self.exact, None if self.whole is None else self.whole[:count])

    def pair(self, relation: int) -> tuple[Tensor, Tensor] | None:
        """R1 and R2 of one relation, hidden dimensions and all; None where the model has M alone."""
        if self.whole is not None:
            R2 = block_diagonal(self.whole[relation : relation + 1])[0]
            return torch.eye(len(R2), dtype=R2.dtype), R2
        return None if self.R1 is None or self.R2 is None else (self.R1[relation], self.R2[relation])


@torch.no_grad()
def matrices_of(model: Scorer) -> Matrices | Absent:
    """What of a model can be analysed as matrices, or why nothing can."""
    if isinstance(model, RelWalk) and model.hidden:
        return Matrices(model.M.detach().cpu(), exact=model.exact, whole=model.unfolded_R2().detach().cpu())
    if isinstance(model, RelWalk):
        own, R1, R2 = (x.detach().cpu() for x in (model.M, model.dense("head"), model.dense("tail")))
        return Matrices(own, R1, R2, model.exact)
    if isinstance(model, Reciprocal):  # those of R; R⁻¹ has others, which nothing ties to them
        found = matrices_of(model.base)
        return found if isinstance(found, Absent) else found.first(model.relations)
    M = getattr(model, "M", None)
    if isinstance(M, Tensor) and M.shape == (model.relations, model.dim, model.dim):
        return Matrices(M.detach().cpu())
    return Absent(f"{model.title} has no relation matrices M between head and tail. RelWalk and RESCAL have.")


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalue angles of a matrix, ascending, in degrees; its least and greatest singular value."""

    angles: tuple[float, ...]
    singular: tuple[float, float]

    def as_dict(self) -> dict[str, Any]:
        return {"angles": list(self.angles), "singular": list(self.singular)}


@dataclass(frozen=True)
class RelationGeometry:
    """One relation's matrices. Fields of R1 and R2 are None where a model has only M; with hidden dimensions, spectra
    are of M alone."""

    relation: str
    nu: float | None
    nu_per_entry: float | None
    defect_r1: float | None
    defect_r2: float | None
    defect_m: float
    asymmetry: float
    from_identity: float
    from_involution: float
    M: Spectrum
    R1: Spectrum | None
    R2: Spectrum | None

    def as_dict(self) -> dict[str, Any]:
        figures = {k: v for k, v in self.__dict__.items() if k not in ("M", "R1", "R2")}
        spectra = {"R1": self.R1, "R2": self.R2, "M": self.M}
        return figures | {"spectrum": {name: s.as_dict() if s is not None else None for name, s in spectra.items()}}


@dataclass(frozen=True, repr=False)
class Orthogonality(Shown):
    """The geometry of every relation; prints itself as a table."""

    relations: tuple[RelationGeometry, ...]
    exact: bool
    note: str

    def as_dict(self) -> dict[str, Any]:
        return {
            "applies": True,
            "exact": self.exact,
            "note": self.note,
            "relations": [relation.as_dict() for relation in self.relations],
        }

    def __str__(self) -> str:
        head = f"{'relation':34}{'nu':>9}{'nu/entry':>10}{'max|RᵀR-I|':>12}{'asym':>7}{'-I':>7}{'M²-I':>7}"
        rows = [
            f"{clip(r.relation, 33):34}{show(r.nu)}{show(r.nu_per_entry, 10)}"
            f"{show(max([x for x in (r.defect_r1, r.defect_r2) if x is not None], default=r.defect_m), 12)}"
            f"{r.asymmetry:7.3f}{r.from_identity:7.3f}{r.from_involution:7.3f}"
            for r in self.relations
        ]
        return "\n".join([head, *rows, self.note])


@torch.no_grad()
def orthogonality(model: Scorer, graph: Graph, *, progress: OnProgress = silent) -> Orthogonality | Absent:
    """Measure the matrices of every relation."""
    found = matrices_of(model)
    if isinstance(found, Absent):
        return found
    relations: list[RelationGeometry] = []
    for start in range(0, len(found.M), BLOCK):
        relations += _measure(found, slice(start, start + BLOCK), graph.relations.names[start : start + BLOCK])
        progress(len(relations), len(found.M), "orthogonality")
    return Orthogonality(tuple(relations), found.exact, _note(found))


def _note(found: Matrices) -> str:
    if found.orthogonal:
        return "Orthogonality is exact by construction: R1 = I, R2 = Mᵀ, and nu_R is rounding."
    if found.whole is not None:
        kept = "exact by construction: nu_R is rounding" if found.exact else "near: compression has touched it"
        return (
            f"Orthogonality, with hidden dimensions, is {kept}. M is the corner of R1 R2ᵀ that entities see; "
            "distances are of M / |M| √d."
        )
    if found.R1 is None:
        return "This model has M alone, without constraint; distances are of M / |M| √d."
    return "R1 and R2 are only nearly orthogonal (a penalty, or compression); only their product M is identifiable."


def _measure(found: Matrices, part: slice, names: Sequence[str]) -> list[RelationGeometry]:
    M = found.M[part].double()
    both = None if found.R1 is None or found.R2 is None else (found.R1[part].double(), found.R2[part].double())
    unit = M if both is not None else to_unit(M)
    size, nus = M.shape[-1], None
    defects: list[list[float] | list[None]] = [[None] * len(M)] * 2
    if both is not None:
        nus, defects = (off_diagonal(both[0]) + off_diagonal(both[1])).tolist(), [_defect(R) for R in both]
    elif found.whole is not None:  # R1 = I; nothing stands between the blocks
        whole = found.whole[part].double()
        blocks = whole.view(len(M), -1, *whole.shape[-2:])  # (relations, blocks, width, width)
        size = blocks.shape[1] * blocks.shape[-1]
        nus, defects = off_diagonal(blocks).sum(1).tolist(), [[0.0] * len(M), _largest(blocks)]
    entries = max(1, 2 * size * (size - 1))
    shapes = zip(_defect(unit), asymmetry(unit).tolist(), from_identity(unit), from_identity(unit @ unit), strict=True)
    spectra = _spectra(M)
    of_R1 = _spectra(both[0]) if both is not None and not found.exact else None
    of_R2 = _spectra(both[1]) if both is not None and not found.exact else None
    if found.orthogonal:  # R1 = I; R2 = Mᵀ has the eigenvalues of M
        d = M.shape[-1]
        of_R1, of_R2 = [Spectrum((0.0,) * d, (1.0, 1.0))] * len(M), spectra
    return [
        RelationGeometry(
            relation=name,
            nu=nus[i] if nus is not None else None,
            nu_per_entry=nus[i] / entries if nus is not None else None,
            defect_r1=defects[0][i],
            defect_r2=defects[1][i],
            defect_m=defect,
            asymmetry=off,
            from_identity=float(identity),
            from_involution=float(involution),
            M=spectra[i],
            R1=of_R1[i] if of_R1 is not None else None,
            R2=of_R2[i] if of_R2 is not None else None,
        )
        for i, (name, (defect, off, identity, involution)) in enumerate(zip(names, shapes, strict=True))
    ]


def to_unit(M: Tensor) -> Tensor:
    """M scaled to the Frobenius norm √d of an orthogonal matrix; a zero matrix stays zero."""
    size = torch.linalg.matrix_norm(M)[..., None, None]
    return torch.as_tensor(M * (math.sqrt(M.shape[-1]) / size.clamp(min=1e-30)))


def off_diagonal(R: Tensor) -> Tensor:
    """Σ_(i≠j) |RᵀR|_ij, half of the paper's nu_R.  # (relations,)"""
    gram = (R.mT @ R).abs()
    return torch.as_tensor(gram.sum((-1, -2)) - gram.diagonal(dim1=-2, dim2=-1).sum(-1))


def _largest(blocks: Tensor) -> list[float]:
    """max |RᵀR - I| over the blocks of each relation."""
    return [max(_defect(own)) for own in blocks]


def _defect(R: Tensor) -> list[float]:
    eye = torch.eye(R.shape[-1], dtype=R.dtype)
    return [float(x) for x in (R.mT @ R - eye).abs().amax((-1, -2))]


def asymmetry(M: Tensor) -> Tensor:
    """||M - Mᵀ|| / 2√d.  # (relations,)"""
    return torch.as_tensor(torch.linalg.matrix_norm(M - M.mT) / (2 * math.sqrt(M.shape[-1])))


def from_identity(M: Tensor) -> Tensor:
    """||M - I|| / 2√d.  # (relations,)"""
    eye = torch.eye(M.shape[-1], dtype=M.dtype)
    return torch.as_tensor(torch.linalg.matrix_norm(M - eye) / (2 * math.sqrt(M.shape[-1])))


def _spectra(R: Tensor) -> list[Spectrum]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # LAPACK gains nothing from a second on matrices this small
    try:
        values, singular = torch.linalg.eigvals(R), torch.linalg.svdvals(R)  # (relations, dim)
    finally:
        torch.set_num_threads(threads)
    angles = np.sort(np.abs(np.degrees(np.angle(values.numpy()))), axis=-1).round(4)
    return [Spectrum(tuple(row.tolist()), (float(s[-1]), float(s[0]))) for row, s in zip(angles, singular, strict=True)]
