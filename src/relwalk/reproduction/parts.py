"""What the paper's Table 3 and Figures 1 and 2 measure on a run: plain values for a record, and drawings.

A part is a function of a run to what a record keeps and, for a figure, its SVG. What does not apply to the run is an
error that says why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from relwalk.compression.curve import curve
from relwalk.errors import RelWalkError
from relwalk.evaluation.estimate import Absent, Floats
from relwalk.progress import Progress
from relwalk.report.components import curve_svg
from relwalk.report.geometry import COLUMNS
from relwalk.report.heat_maps import heat_maps_svg
from relwalk.report.paper import PAPER_HEAT_MAPS
from relwalk.runs.run import Run
from relwalk.theory.analyse import analyse
from relwalk.theory.concentration import Concentration, RelationConcentration
from relwalk.theory.correlation import Correlation, Correlations
from relwalk.theory.orthogonality import Orthogonality, matrices_of

Part = Callable[[Run, Progress], tuple[dict[str, Any], str | None]]
SHOWN = 4  # heat maps of a graph that the paper does not show


def table3(run: Run, progress: Progress) -> tuple[dict[str, Any], None]:
    """H@10 of each relation beside nu_R and the spread of Z, and their correlations with intervals."""
    found = analyse(run, parts=["orthogonality", "concentration", "correlation"], progress=progress)
    matrices, spread, related = (found.parts[name] for name in ("orthogonality", "concentration", "correlation"))
    for part in (matrices, spread, related):
        if isinstance(part, Absent):
            raise RelWalkError(part.reason)
    assert isinstance(matrices, Orthogonality) and isinstance(spread, Concentration)
    assert isinstance(related, Correlations)
    nus = {r.relation: r.nu for r in matrices.relations}
    columns = {column.name: column for column in related.columns}
    return {
        "settings": dict(found.settings),
        "relations": {r.relation: _conditions(r, related.hits.get(r.relation), nus) for r in spread.relations},
        "correlations": {name: _correlation(columns[name]) for name in COLUMNS if name in columns},
        "verdict": related.verdict,
    }, None


def _conditions(
    r: RelationConcentration, hits: float | None, nus: Mapping[str, float | None]
) -> dict[str, float | None]:
    head, tail = (side["sample"] for side in (r.head, r.tail))
    return {
        "hits@10": hits,
        "nu": nus.get(r.relation),
        "sigma_c": head.sigma.value if head and head.sigma else None,
        "sigma_c'": tail.sigma.value if tail and tail.sigma else None,
        "combined": r.combined("sample"),
        "relative": head.relative.value if head else None,
    }


def _correlation(c: Correlation) -> dict[str, Any]:
    if c.pearson is None:
        return {"n": c.n, "pearson": None, "message": c.message}
    return {"n": c.n, "pearson": c.pearson.value, "low": c.pearson.low, "high": c.pearson.high, "p": c.pearson_p}


def figure1(run: Run, progress: Progress) -> tuple[dict[str, Any], str]:
    """RᵀR of some relations as heat maps: those of the paper, or the most frequent ones."""
    found = matrices_of(run.model)
    if isinstance(found, Absent):
        raise RelWalkError(found.reason)
    if found.pair(0) is None:
        raise RelWalkError(f"{run.model.title} has one matrix a relation, and nothing that keeps it orthogonal.")
    names, graph = run.graph.relations.names, run.graph
    wanted = [names.index(name) for name in PAPER_HEAT_MAPS.get(graph.name, ()) if name in names]
    often = np.argsort(-np.bincount(graph.train[:, 1], minlength=len(names)), kind="stable").tolist()
    chosen = (wanted or often)[:SHOWN]
    pairs = {names[r]: found.pair(r) or () for r in chosen}
    grams = {name: [(R.double().mT @ R.double()).numpy() for R in pair] for name, pair in pairs.items()}
    shown = {name: _orthogonality(own) for name, own in grams.items()}
    return {"exact": found.exact, "relations": shown}, heat_maps_svg(grams, {n: v["nu"] for n, v in shown.items()})


def _orthogonality(grams: Sequence[Floats]) -> dict[str, float]:
    """The paper's nu_R, and the entry of a RᵀR that is farthest from the identity's."""
    off = [np.abs(gram - np.eye(len(gram))) for gram in grams]
    nu = sum(float(x.sum() - x.trace()) for x in off)
    return {"nu": nu, "largest_departure": max(float(x.max()) for x in off)}


def figure2(run: Run, progress: Progress) -> tuple[dict[str, Any], str]:
    """Accuracy over the number of components that are kept of R - I."""
    found = curve(run, progress=progress)
    return found.as_dict(), curve_svg(found)


PARTS: dict[str, Part] = {"table3": table3, "figure1": figure1, "figure2": figure2}
