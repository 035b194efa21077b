"""The paper's Figure 2: accuracy over the number K of components that are kept of R - I."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from relwalk.checks import check_whole
from relwalk.display import Shown, caption, html_table
from relwalk.errors import GraphError, RelWalkError
from relwalk.evaluation.ranking import rank
from relwalk.graph.graph import Split
from relwalk.models.compressed import Compression, has_diagonal, has_matrices
from relwalk.models.compressor import Compressor
from relwalk.progress import Progress
from relwalk.progress import shown as showing
from relwalk.runs.run import Run

METHODS = ("eig", "svd")
STEPS = 10  # ranks of a curve: tenths of d
USELESS, FLAT = 0.3, 0.6  # of the components: the paper's K = 30 and K = 60 of d = 100


@dataclass(frozen=True)
class Point:
    """The accuracy with K components by one method."""

    method: str
    around: str
    rank: int
    mrr: float
    hits_at_10: float

    @property
    def series(self) -> str:
        return self.method if self.around == "identity" else f"{self.method} around {self.around}"


@dataclass(frozen=True, repr=False)
class Curve(Shown):
    """Accuracy over K, beside that of the whole matrices; prints itself."""

    graph: str
    orthogonality: str
    dim: int
    split: str
    queries: int
    mrr: float  # of the whole matrices
    hits_at_10: float
    points: tuple[Point, ...]

    @property
    def series(self) -> dict[str, tuple[Point, ...]]:
        """The points by method, K ascending."""
        names = dict.fromkeys(point.series for point in self.points)
        return {name: tuple(point for point in self.points if point.series == name) for name in names}

    def claims(self) -> tuple[str, ...]:
        """What the paper says of its figure, and what this one says to it."""
        own = self.series.get("eig", ())
        low = [p for p in own if p.rank <= USELESS * self.dim]
        high = [p for p in own if p.rank >= FLAT * self.dim]
        found = []
        if low:
            best = max(p.mrr for p in low)
            found.append(f"up to {USELESS:.0%} of the components: useless (paper); here MRR {self._share(best)}")
        if high:
            worst = min(p.mrr for p in high)
            found.append(f"from {FLAT:.0%} of the components: flat (paper); here MRR {self._share(worst)} or more")
        return tuple(found)

    def _share(self, mrr: float) -> str:
        return f"{mrr:.3f}, {mrr / self.mrr:.0%} of {self.mrr:.3f}" if self.mrr else f"{mrr:.3f}"

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"claims": list(self.claims())}

    def summary(self) -> str:
        return f"{self.graph}: MRR over K, {len(self.points)} points, whole {self.mrr:.3f}"

    def _rows(self) -> list[tuple[str, ...]]:
        ranks = sorted({point.rank for point in self.points})
        at = {(p.series, p.rank): p for p in self.points}
        found = [[at.get((name, k)) for name in self.series] for k in ranks]
        return [
            (f"{k}", *(f"{p.mrr:.4f}" if p is not None else "-" for p in row))
            for k, row in zip(ranks, found, strict=True)
        ]

    def _repr_html_(self) -> str:
        return caption(self.summary()) + html_table(("K", *self.series), self._rows())

    def __str__(self) -> str:
        head = f"{self.graph} {self.split}, filtered, {self.queries:,} queries, {self.orthogonality}, d={self.dim}"
        rows = [("K", *self.series), *self._rows(), ("whole", *[f"{self.mrr:.4f}"] * len(self.series))]
        lines = [f"  {row[0]:>6}" + "".join(f"{cell:>20}" for cell in row[1:]) for row in rows]
        return "\n".join([f"MRR over K components: {head}", *lines, *self.claims()])


def curve(
    run: Run,
    *,
    ranks: Sequence[int] | None = None,
    split: Split | None = None,
    triples: int | None = None,
    progress: Progress = None,
) -> Curve:
    """Rank a split with K of the components of every relation, for each of `ranks` (tenths of d when left out).

    By eigenvectors and by singular vectors of R - I, as in the paper, and for RelWalk by eigenvectors around the signs
    of each matrix as well. `split` is test where there is one; `triples` of it, drawn at random, are all when left out.
    """
    model, graph = run.model, run.graph
    if not has_matrices(model):
        raise RelWalkError(f"{model.title} has no relation matrices to take components of; RelWalk and RESCAL have.")
    if run.record.model.compression is not None:
        raise RelWalkError(f"{run} is compressed already. Draw the curve of the run that it was made from.")
    judged: Split = split if split is not None else "test" if len(graph.test) else "valid"
    every = graph.split(judged)
    if len(every) == 0:
        raise GraphError(f"graph {graph.name!r} has no {judged} triples to rank. Give it a {judged} split.")
    size = len(every) if triples is None else check_whole("triples", triples)
    some = every[np.sort(np.random.default_rng(0).permutation(len(every))[:size])]
    tenths = [max(1, round(model.dim * k / STEPS)) for k in range(1, STEPS + 1)]
    kept = sorted({check_whole("rank", k, 1, model.dim) for k in (tenths if ranks is None else ranks)})
    kinds = [(method, "identity") for method in METHODS] + [("eig", "signs")] * has_diagonal(model)
    compressor = Compressor(model)
    points: list[Point] = []
    with showing(progress) as on_progress:
        for method, around in kinds:
            for k in kept:
                on_progress(len(points), len(kinds) * len(kept), f"{method} around {around}, K = {k}")
                small = compressor(Compression(method=method, around=around, rank=k))  # type: ignore[arg-type]
                found = rank(small, graph, judged, triples=some).metrics()
                points.append(Point(method, around, k, found.mrr, found.hits_at_10))
        whole = rank(model, graph, judged, triples=some).metrics()
    orthogonality = getattr(model, "orthogonality", "free") if has_diagonal(model) else "free"
    return Curve(
        graph.name, orthogonality, model.dim, judged, whole.queries, whole.mrr, whole.hits_at_10, tuple(points)
    )
