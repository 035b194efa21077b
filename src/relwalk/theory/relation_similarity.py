"""Which relations are alike, inverse or composed, by their matrices M alone.

    cos(A, B) = <A, B> / |A| |B|,   <A, B> = tr AᵀB
    alike     cos(M_a, M_b)         inverse   cos(M_a, M_bᵀ)        composed   cos(M_a M_b, M_c) or cos(M_a M_b, M_cᵀ)

A true triple has h close to M t, so a path a then b runs through M_a M_b. Two random rotations have a cosine of
size 1/d; two random sign matrices (the default start) one of size 1/√d: what is near that says nothing.

The composed need all triples of relations. <M_a M_b, M_c> = E_ω (M_a M_b ω)·(M_c ω) for Gaussian ω: a few probes
turn R³ matrix products into one product of sketches, and the best are then measured exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from relwalk.display import Shown
from relwalk.evaluation.estimate import Absent, own_generator
from relwalk.graph.graph import Graph
from relwalk.models.base import Scorer
from relwalk.theory.orthogonality import matrices_of, to_unit

PROBES = 8  # an error of about 1 / √(8 d) in a cosine: ten times below the threshold
WORK = 3e11  # multiplications the search for composed relations may cost: some seconds
GAIN = 0.1  # a composition must fit better than either of its parts, or it says nothing
CANDIDATES = 4096


@dataclass(frozen=True)
class SimilarRelations:
    """`relations` stand in the relation `kind` ("alike", "inverse", "composed", "composed-inverse") to the last."""

    kind: str
    relations: tuple[str, ...]
    cosine: float

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"relations": list(self.relations)}

    def __str__(self) -> str:
        *first, last = self.relations
        sign = {"alike": "≈", "inverse": "≈ inverse of", "composed": "≈", "composed-inverse": "≈ inverse of"}[self.kind]
        return f"{' then '.join(first)} {sign} {last}  ({self.cosine:.3f})"


@dataclass(frozen=True, repr=False)
class RelationSimilarity(Shown):
    """The closest of each kind above a threshold, best first, and what was not searched."""

    threshold: float
    chance: float  # the cosine that two unrelated relations may have
    alike: tuple[SimilarRelations, ...]
    inverse: tuple[SimilarRelations, ...]
    composed: tuple[SimilarRelations, ...]
    searched: int  # relations among which compositions were searched
    note: str | None = None

    def as_dict(self) -> dict[str, Any]:
        lists = {k: [similar.as_dict() for similar in getattr(self, k)] for k in ("alike", "inverse", "composed")}
        rest = {k: getattr(self, k) for k in ("threshold", "chance", "searched", "note")}
        return {"applies": True, **rest, **lists}

    def summary(self) -> str:
        found = ", ".join(f"{len(getattr(self, kind))} {kind}" for kind in ("alike", "inverse", "composed"))
        return f"{found} (cosines above {self.threshold})"

    def __str__(self) -> str:
        lines = [f"cosines of M above {self.threshold} (unrelated ones: about {self.chance:.2f})"]
        for kind in ("alike", "inverse", "composed"):
            found = getattr(self, kind)
            lines += [f"{kind}: {'none' if not found else ''}".rstrip(), *(f"  {similar}" for similar in found)]
        return "\n".join([*lines, *([self.note] if self.note else [])])


@torch.no_grad()
def relation_similarity(
    model: Scorer, graph: Graph, *, threshold: float = 0.5, most: int = 20, seed: int = 0, work: float = WORK
) -> RelationSimilarity | Absent:
    """Search all pairs, and all (a, b, c) that the work allows: the most frequent relations first."""
    found = matrices_of(model)
    if isinstance(found, Absent):
        return found
    M = to_unit(found.M.float())  # |M| = √d
    names, count, dim = graph.relations.names, len(found.M), found.M.shape[-1]
    flat = M.flatten(1) / math.sqrt(dim)  # (relations, d²) of norm 1
    direct = flat @ flat.T  # (relations, relations)
    crossed = flat @ (M.mT.flatten(1) / math.sqrt(dim)).T
    frequent = torch.bincount(torch.from_numpy(graph.train[:, 1].astype("int64")), minlength=count).argsort(
        descending=True, stable=True
    )
    searched = min(count, int((work / (4 * dim * PROBES)) ** (1 / 3)))
    few = frequent[:searched].sort().values
    return RelationSimilarity(
        threshold=threshold,
        chance=1 / math.sqrt(dim),
        alike=_pairs("alike", direct, names, threshold, most),
        inverse=_pairs("inverse", crossed, names, threshold, most),
        composed=_composed(M, few, direct, crossed, names, threshold, most, seed),
        searched=searched,
        note=None
        if searched == count
        else f"Compositions were searched among the {searched:,} most frequent of {count:,} relations: "
        "the work grows with the third power.",
    )


def _pairs(
    kind: str, cosines: Tensor, names: Sequence[str], threshold: float, most: int
) -> tuple[SimilarRelations, ...]:
    upper = torch.triu(torch.ones_like(cosines, dtype=torch.bool), 1)
    a, b = torch.nonzero(upper & (cosines >= threshold), as_tuple=True)
    values = cosines[a, b]
    best = values.argsort(descending=True, stable=True)[:most]
    return tuple(SimilarRelations(kind, (names[int(a[i])], names[int(b[i])]), float(values[i])) for i in best.tolist())


def _composed(
    M: Tensor,
    few: Tensor,
    direct: Tensor,
    crossed: Tensor,
    names: Sequence[str],
    threshold: float,
    most: int,
    seed: int,
) -> tuple[SimilarRelations, ...]:
    dim = M.shape[-1]
    some = M[few]  # (r, d, d)
    probes = torch.randn(dim, PROBES, generator=own_generator(seed, "similarity"))
    images = some @ probes  # (r, d, k)  M_b ω
    both = torch.cat([images, some.mT @ probes]).flatten(1)  # (2r, dk)  M_c ω and M_cᵀ ω
    slack = 3 / math.sqrt(dim * PROBES)
    kept: list[tuple[float, int, int, int]] = []
    for a in range(len(few)):
        sketch = (some[a] @ images).flatten(1) @ both.T / (dim * PROBES)  # (r, 2r) about cos(M_a M_b, ·)
        b, c = torch.nonzero(sketch >= threshold - slack, as_tuple=True)
        kept += [(v, a, int(i), int(j)) for v, i, j in zip(sketch[b, c].tolist(), b.tolist(), c.tolist(), strict=True)]
        kept = sorted(kept, reverse=True)[:CANDIDATES]
    if not kept:
        return ()
    found = []
    known = torch.cat([direct[:, few], crossed[:, few]], 1)[few]  # (r, 2r)
    for some_kept in (kept[i : i + 256] for i in range(0, len(kept), 256)):
        a_, b_, c_ = (torch.tensor([row[k] for row in some_kept]) for k in (1, 2, 3))
        target = torch.where((c_ < len(few))[:, None, None], some[c_ % len(few)], some[c_ % len(few)].mT)
        exact = ((some[a_] @ some[b_]) * target).sum((-1, -2)) / dim
        said = torch.maximum(known[a_, c_], known[b_, c_])  # c is its part already: nothing new
        good = (exact >= threshold) & (exact >= said + GAIN)
        for a, b, c, value in zip(*(t[good].tolist() for t in (a_, b_, c_, exact)), strict=True):
            kind = "composed" if c < len(few) else "composed-inverse"
            trio = tuple(names[int(few[i])] for i in (a, b, c % len(few)))
            found.append(SimilarRelations(kind, trio, value))
    return tuple(sorted(found, key=lambda similar: -similar.cosine)[:most])
