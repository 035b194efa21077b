"""The sections about matrices and vectors: the paper's Table 3 and Figure 1, similar relations, the map of entities."""

from __future__ import annotations

import torch
from markupsafe import Markup

from relwalk.evaluation.estimate import Absent
from relwalk.report.charts import dial
from relwalk.report.entity_map import entity_map
from relwalk.report.facts import Facts, relation_id
from relwalk.report.html import (
    DASH,
    Cell,
    absent,
    count,
    figure,
    figure_cell,
    interval,
    joined,
    name_cell,
    num,
    paragraph,
    part,
    percent,
    phrase,
    prose,
    table,
    title,
    why_not,
)
from relwalk.report.paper import PAPER_CORRELATIONS
from relwalk.report.png import data_address, heat_png
from relwalk.theory.concentration import Concentration
from relwalk.theory.correlation import Correlations
from relwalk.theory.orthogonality import Matrices, Orthogonality, RelationGeometry, matrices_of, to_unit
from relwalk.theory.relation_similarity import RelationSimilarity, SimilarRelations

COLUMNS = ("nu_R", "sigma_c (sample)", "sigma_c' (sample)", "√(σ_c² + σ_c'²) (sample)")
SYMBOLS = tuple(
    map(Markup, ("ν<sub>R</sub>", "σ<sub>c</sub>", "σ<sub>c</sub>′", "√(σ<sub>c</sub>² + σ<sub>c</sub>′²)"))
)


def conditions(f: Facts) -> Markup:
    """The paper's Table 3: H@10 beside orthogonality and concentration, and their correlations."""
    matrices, spread, found = (f.analysis.parts.get(k) for k in ("orthogonality", "concentration", "correlation"))
    if not isinstance(matrices, Orthogonality) or not isinstance(spread, Concentration):
        missing = matrices if not isinstance(matrices, Orthogonality) else spread
        return absent(why_not(missing))
    related = found if isinstance(found, Correlations) else None
    nus = {r.relation: r.nu for r in matrices.relations}
    rows = []
    for r in spread.relations:
        hits = related.hits.get(r.relation) if related else None
        head, tail = r.head["sample"], r.tail["sample"]
        sigmas = [s.sigma.value if s and s.sigma else None for s in (head, tail)]
        values = [nus.get(r.relation), *sigmas, r.combined("sample")]
        relative = head.relative if head else None
        number = relation_id(f.graph, r.relation)
        name = f.graph.relations.label(number) if number is not None else r.relation
        shown = Cell(Markup('<span class="none">no test</span>')) if hits is None else figure_cell(hits, bar=hits)
        spread_cell = Cell(interval(relative, 3), relative.value if relative else None)
        rows.append([name_cell(name), shown, *(figure_cell(v, 3) for v in values), spread_cell])
    foot = _coefficients(related, f.graph.name) if related else []
    words = phrase(
        "H@10 with the relation's argument as candidates; ν<sub>R</sub> sums the off-diagonal of RᵀR; σ is the "
        "standard deviation of Z over {} directions and {} sampled entities; the last column is σ/mean of "
        "Z<sub>c</sub> with its 95% interval.",
        count(spread.directions),
        count(spread.sample),
    )
    verdict = prose(related.verdict if related else why_not(found))
    head_row = ["Relation", "H@10", *SYMBOLS, Markup("σ<sub>c</sub> / mean")]
    return paragraph(words) + table(head_row, rows, sorts=True, foot=foot) + paragraph(verdict, "note")


def _coefficients(related: Correlations, graph: str) -> list[list[Cell]]:
    by_name = {c.name: c for c in related.columns}
    chosen = [by_name.get(name) for name in COLUMNS]
    first = [Cell(interval(c.pearson) if c else DASH) for c in chosen]
    second = [Cell(num(c.pearson_p) if c else DASH) for c in chosen]
    rows = [
        [Cell("Pearson with H@10, 95%", left=True), Cell(""), *first, Cell("")],
        [Cell("p, by permutation", left=True), Cell(""), *second, Cell("")],
    ]
    if graph in PAPER_CORRELATIONS:
        paper = [Cell(num(x, 2)) for x in PAPER_CORRELATIONS[graph]]
        rows.append([Cell("Pearson, in the paper", left=True), Cell(""), *paper, Cell("")])
    return rows


def matrices(f: Facts) -> Markup:
    """Heat maps of RᵀR (the paper's Figure 1), of M, and its eigenvalues, for the chosen relations."""
    found, measured = matrices_of(f.model), f.analysis.parts.get("orthogonality")
    if isinstance(found, Absent) or not isinstance(measured, Orthogonality):
        return absent(why_not(measured))
    names = f.graph.relations.names
    by_name = {r.relation: r for r in measured.relations}
    rows = [_relation(f, found, by_name[names[r]], r) for r in f.shown if names[r] in by_name]
    defect = max(max(r.defect_r1 or 0, r.defect_r2 or 0) for r in measured.relations)
    if found.R1 is None and found.whole is None:
        words = phrase(
            "This model has one matrix M per relation and nothing that keeps it orthogonal; M is shown at |M| = √d."
        )
    elif found.whole is not None:
        words = phrase(
            "R₁ and R₂ have hidden dimensions beside those of the entities, and M is the corner of R₁R₂ᵀ that entities "
            "see. Orthogonality is {}: where R₁ = I, over all {} relations no entry of R₂ᵀR₂ is farther than {} from "
            "the identity's{}.",
            "exact by construction" if found.exact else "what compression has left of it",
            count(len(measured.relations)),
            num(defect, 6 if found.exact else 3),
            ", which is rounding" if found.exact else "",
        )
    elif found.exact:
        words = phrase(
            "Orthogonality is exact by construction: R₁ = I, and over all {} relations no entry of R₂ᵀR₂ is farther "
            "than {} from the identity's, which is rounding.",
            count(len(measured.relations)),
            num(defect, 6),
        )
    else:
        words = phrase(
            "Orthogonality is kept by a penalty: the largest departure of an entry of RᵀR from the identity's, over "
            "all {} relations, is {}.",
            count(len(measured.relations)),
            num(defect),
        )
    return paragraph(words) + part("ramp") + joined(rows) + _similar(f)


def _relation(f: Facts, found: Matrices, geometry: RelationGeometry, r: int) -> Markup:
    M = found.M[r].double()
    tiles = []
    pair = found.pair(r)
    if pair is None or found.whole is not None:
        unit = to_unit(M)
        tiles.append(_heat(unit.mT @ unit, 1.0, "MᵀM, scaled"))
    if pair is not None:
        for name, R in zip(("R₁ᵀR₁", "R₂ᵀR₂"), pair, strict=True):
            if name.startswith("R₂") or not (found.exact or found.whole is not None):
                tiles.append(_heat(R.double().mT @ R.double(), 1.0, name))
    limit = float(M.abs().max()) or 1.0
    tiles.append(_heat(M, limit, "M = R₁R₂ᵀ" if found.R1 is not None else "M"))
    circle = dial(geometry.M.angles, f"Angles of the eigenvalues of M for {f.graph.relations.label(r)}")
    # Without exact orthogonality an eigenvalue also has a length, which the circle does not show.
    tiles.append(figure(circle, "eigenvalues of M" if found.orthogonal else "eigenvalue angles of M", kind="tile"))
    return part("relation", f.graph.relations.label(r), _kind(geometry, found.orthogonal), tiles)


def _heat(values: torch.Tensor, limit: float, name: str) -> Markup:
    address = data_address(heat_png(values.cpu().numpy(), limit))
    return figure(part("heat", name, address), phrase("{} <small>±{}</small>", name, num(limit, 2)), kind="tile")


def _kind(g: RelationGeometry, exact: bool) -> Markup:
    """What sort of map M is, in words; only an exactly orthogonal M that is symmetric is its own inverse."""
    nu = phrase("ν<sub>R</sub> {}. ", num(g.nu)) if g.nu is not None else ""
    mirrored = "symmetric, so its own inverse" if exact else "nearly symmetric"
    symmetry = mirrored if g.asymmetry < 0.2 else "not symmetric"
    same = "close to the identity" if g.from_identity < 0.2 else "far from the identity"
    ends = "1 is farthest, 0.71 is unrelated" if exact else "an orthogonal M is at most 1 away"
    return phrase(
        "{}M is {}, and {}: asymmetry {}, distance from I {} (0 is equal, {}).",
        nu,
        symmetry,
        same,
        num(g.asymmetry, 2),
        num(g.from_identity, 2),
        ends,
    )


def _similar(f: Facts) -> Markup:
    found = f.analysis.parts.get("similarity")
    head = title("Similar relations")
    if not isinstance(found, RelationSimilarity):
        return head + absent(why_not(found))
    every = [similar for kind in (found.inverse, found.alike, found.composed) for similar in kind[:8]]
    if not every:
        words = phrase(
            "No two relations have matrices alike or inverse beyond a cosine of {}, and no two compose to a third; "
            "unrelated ones have about {}.",
            num(found.threshold, 2),
            num(found.chance, 2),
        )
        return head + paragraph(words)
    rows = [[Cell(_words(f, similar), left=True), figure_cell(similar.cosine, bar=similar.cosine)] for similar in every]
    limits = num(found.threshold, 2), num(found.chance, 2)
    note = phrase("By their matrices M alone, above {}; unrelated ones have about {}.", *limits)
    return head + paragraph(note) + table(["Relations", "cosine"], rows)


def _words(f: Facts, similar: SimilarRelations) -> Markup:
    ids = [relation_id(f.graph, name) for name in similar.relations]
    named = [f.graph.relations.label(i) if i is not None else n for i, n in zip(ids, similar.relations, strict=True)]
    *first, last = (phrase("<em>{}</em>", name) for name in named)
    link = {
        "alike": "is like",
        "inverse": "is the inverse of",
        "composed": "is",
        "composed-inverse": "is the inverse of",
    }
    return phrase("{} {} {}", joined(first, " then "), link[similar.kind], last)


def entities(f: Facts) -> Markup:
    """The map of the entities: a canvas that the page's script draws, with the data beside it."""
    made = entity_map(f.model, f.graph, seed=f.seed)
    norms = f.model.vectors().detach().norm(dim=-1).cpu().numpy()
    which = (
        f"{count(len(made.ids))} of {count(made.of)} entities, drawn with seed {f.seed}"
        if len(made.ids) < made.of
        else f"All {count(made.of)} entities"
    )
    words = phrase(
        "{}, on the two directions in which their vectors differ most (PCA), which hold {} of the variance: what is "
        "near here may be far in {} dimensions. Colour is the place an entity fills most often. Vectors have a mean "
        "norm of {} (√d is {}).",
        which,
        percent(made.kept),
        f.model.dim,
        num(float(norms.mean()), 2),
        num(f.model.dim**0.5, 2),
    )
    drawing = part("entity_map", made.roles, Markup(made.as_json(f.graph)))
    return figure(drawing, words, kind="wide")
