"""Tables and figures of the paper in Markdown, from records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from relwalk.report.geometry import COLUMNS
from relwalk.report.paper import PAPER_CONDITIONS, PAPER_CORRELATIONS
from relwalk.reproduction.record import ResultRecord
from relwalk.reproduction.table import Line, by_dataset, heading

CONDITIONS = ("hits@10", "nu", "sigma_c", "sigma_c'", "combined")
SYMBOLS = ("H@10", "ν_R", "σ_c", "σ_c'", "√(σ_c² + σ_c'²)")
PROTOCOLS = (
    "Test triples, filtered, every triple kept, both sides, ties at their mean. *all*: every entity is a candidate; "
    "*argument*: the entities seen in that place of the relation in train, valid and test, the paper's rule; "
    "*classification*: accuracy on the data set's own false triples, one threshold per relation from valid, by the "
    "plain score, and combined with the conditionals and counts (`relwalk classify --combine`). "
    "Cells: ours (published, difference); ± is the standard deviation over seeds."
)


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; a bar within a cell is escaped."""
    lines = [list(head), ["---"] * len(head), *(list(row) for row in rows)]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def target_markdown(
    target: str, records: Sequence[ResultRecord], lines: Sequence[Line], figures: str = "figures"
) -> str:
    """A table or figure with the paper's values and ours; `figures` is the folder of the drawings."""
    if target == "table2":
        return f"{PROTOCOLS}\n\n{table2_markdown(lines)}"
    return "\n\n".join(part_markdown(target, record, figures) for record in records)


def part_markdown(target: str, record: ResultRecord, figures: str) -> str:
    """Table 3, or a figure, of one record."""
    drawing = f"{figures}/{record.name}-{target}.svg"
    if target == "table3":
        return table3_markdown(record)
    return figure1_markdown(record, drawing) if target == "figure1" else figure2_markdown(record, drawing)


def table2_markdown(lines: Sequence[Line], level: str = "##") -> str:
    """A table for each data set."""
    parts = [
        f"{level} {dataset}\n\n{markdown_table(heading(own), [line.cells() for line in own])}"
        for dataset, own in by_dataset(lines).items()
    ]
    return "\n\n".join(parts)


def table3_markdown(record: ResultRecord) -> str:
    """The conditions of the theory of one run, the paper's values in brackets where it has that graph."""
    if why := _missing(record, "table3"):
        return why
    found = record.theory["table3"]
    paper = PAPER_CONDITIONS.get(record.dataset, {})
    rows = [
        [name, *(_beside(row[key], place, paper.get(name)) for place, key in enumerate(CONDITIONS))]
        for name, row in found["relations"].items()
    ]
    theirs = PAPER_CORRELATIONS.get(record.dataset)
    foot = [_coefficient(found["correlations"].get(name), theirs and theirs[i]) for i, name in enumerate(COLUMNS)]
    rows.append(["*Pearson with H@10*", "", *foot])
    brackets = "; in brackets the paper's value and the difference" if paper else ""
    settings = found["settings"]
    words = (
        f"{_title(record)}: {settings['directions']:,} directions, {settings['sample']:,} sampled entities, candidates "
        f"of H@10: {settings['candidates']}{brackets}. Correlations with 95% intervals and permutation p."
    )
    return f"{words}\n\n{markdown_table(['relation', *SYMBOLS], rows)}\n\n{found['verdict']}"


def figure1_markdown(record: ResultRecord, drawing: str) -> str:
    if why := _missing(record, "figure1"):
        return why
    found = record.theory["figure1"]
    paper = PAPER_CONDITIONS.get(record.dataset, {})
    rows = [
        [name, _beside(row["nu"], 1, paper.get(name)), f"{row['largest_departure']:.3g}"]
        for name, row in found["relations"].items()
    ]
    kind = "exact by construction" if found["exact"] else "kept by a penalty"
    table = markdown_table(["relation", "ν_R (the paper's, difference)", "largest entry of RᵀR − I"], rows)
    return f"{_title(record)}: orthogonality is {kind}.\n\n![Heat maps of RᵀR]({drawing})\n\n{table}"


def figure2_markdown(record: ResultRecord, drawing: str) -> str:
    if why := _missing(record, "figure2"):
        return why
    found = record.theory["figure2"]
    ranks = sorted({point["rank"] for point in found["points"]})
    series = list(dict.fromkeys((point["method"], point["around"]) for point in found["points"]))
    at = {(point["method"], point["around"], point["rank"]): point["mrr"] for point in found["points"]}
    rows = [[str(k), *(f"{at[*kind, k]:.3f}" for kind in series)] for k in ranks]
    head = ["K", *(f"{method} around {around}" for method, around in series)]
    claims = "\n".join(f"- {claim}" for claim in found["claims"])
    words = f"{_title(record)}: MRR over K of {found['dim']} components, all entities ranked; whole {found['mrr']:.3f}."
    return f"{words}\n\n![MRR over K]({drawing})\n\n{markdown_table(head, rows)}\n\n{claims}".rstrip()


def _missing(record: ResultRecord, part: str) -> str:
    """Why a record has no such part; nothing where it has."""
    found = record.theory.get(part)
    if record.status == "failed":
        return f"{_title(record)}: failed: {record.reason}"
    if found is None:
        return f"{_title(record)}: not measured."
    return f"{_title(record)}: does not apply: {found['absent']}" if "absent" in found else ""


def _title(record: ResultRecord) -> str:
    return f"{record.model} on {record.dataset}, recipe {record.recipe_words}, seed {record.seed}"


def _beside(value: float | None, place: int, paper: Sequence[float] | None) -> str:
    if value is None:
        return "-"
    if paper is None:
        return f"{value:.3g}"
    return f"{value:.3g} ({paper[place]:g}, {value - paper[place]:+.3g})"


def _coefficient(found: Mapping[str, Any] | None, paper: float | None) -> str:
    beside = f" (paper {paper:+.2f})" if paper is not None else ""
    if found is None or found["pearson"] is None:
        return f"-{beside}"
    return f"{found['pearson']:+.2f} [{found['low']:+.2f}, {found['high']:+.2f}], p {found['p']:.2f}{beside}"
