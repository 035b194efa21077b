"""A comparison of models as one page: figures, learning curves over time, cost, settings."""

from __future__ import annotations

from markupsafe import Markup

from relwalk.checks import MOST
from relwalk.evaluation.comparison import RULES, Compared, Comparison
from relwalk.progress import duration
from relwalk.report.charts import Plot
from relwalk.report.html import (
    Cell,
    absent,
    count,
    figure,
    figure_cell,
    joined,
    name_cell,
    num,
    paragraph,
    phrase,
    table,
    title,
    whole_page,
)

COLOURS = 7  # of the page's style; further lines are dashed
WORDS = {"all": "Among all entities", "argument": "Among the entities of the relation's argument"}


def write_comparison(comparison: Comparison) -> str:
    """The page of a comparison, as text."""
    return whole_page(
        "compare.html",
        comparison=comparison,
        budget=duration(comparison.budget),
        figures=_figures(comparison),
        curves=_curves(comparison),
        cost=_cost(comparison),
        settings=_settings(comparison),
    )


def _figures(comparison: Comparison) -> Markup:
    parts = [paragraph(comparison.protocol + " Press a column's head to sort by it.", "note")]
    for rule in RULES:
        rows = [_ranked(row, rule) for row in comparison.models]
        parts += [title(WORDS[rule]), table(["Model", "MRR", "MR", "H@1", "H@3", "H@10"], rows, sorts=True)]
    failed = [row for row in comparison.models if row.status == "failed"]
    parts += [absent(f"{row.name} failed: {row.reason}") for row in failed]
    return joined(parts)


def _ranked(row: Compared, rule: str) -> list[Cell]:
    if rule not in row.test:
        return [name_cell(row.name), Cell(phrase('<span class="none">{}</span>', row.status)), *[Cell("")] * 4]
    m = row.test[rule]
    hits = [figure_cell(m.hits_at_1), figure_cell(m.hits_at_3), figure_cell(m.hits_at_10, bar=m.hits_at_10)]
    return [name_cell(row.name), figure_cell(m.mrr), figure_cell(m.mr, 1), *hits]


def _curves(comparison: Comparison) -> Markup:
    """MRR on valid by the seconds of training, a line for each model."""
    drawn = [
        (row, [(m.seconds, m.valid_mrr) for m in row.curve if m.valid_mrr is not None]) for row in comparison.models
    ]
    drawn = [(row, points) for row, points in drawn if points]
    if not drawn:
        return absent("no model was validated, so there are no curves of valid MRR.")
    last = max(points[-1][0] for _, points in drawn)
    top = max(y for _, points in drawn for _, y in points)
    plot = Plot((0.0, last), (0.0, top * 1.08 or 1.0), "seconds of training", "valid MRR", "MRR on valid over time")
    for number, (row, points) in enumerate(drawn):
        kind = f"role{number % COLOURS}" + (" dashed" if number >= COLOURS else "")
        plot.line([x for x, _ in points], [y for _, y in points], kind, dots=len(points) == 1, name=row.name)
    best, points = max(drawn, key=lambda part: max(y for _, y in part[1]))
    words = phrase(
        "MRR on valid, on the same triples for every model. Highest: <em>{}</em>, {}.",
        best.name,
        num(max(y for _, y in points)),
    )
    return figure(plot.svg(), words)


def _cost(comparison: Comparison) -> Markup:
    head = ["Model", "d", "numbers", "MB", "epochs", "best", "training s", "validation s", "ranking s", "peak MB"]
    rows = []
    for row in comparison.models:
        sizes = (row.dim, row.numbers, _mega(row.bytes), row.epochs, row.best_epoch)
        times = (row.seconds, row.validation_seconds, row.ranking_seconds, _mega(row.peak_bytes))
        cells = [_whole(x) if isinstance(x, int) else figure_cell(x, 1) for x in (*sizes, *times)]
        rows.append([name_cell(row.name), *cells])
    note = "Peak: the most memory that the model's own process held, torch and the ranking of test included."
    return table(head, rows, sorts=True) + paragraph(note, "note")


def _whole(x: int) -> Cell:
    return Cell(count(x), x)


def _mega(size: int | None) -> float | None:
    return None if size is None else size / 1e6


def _settings(comparison: Comparison) -> Markup:
    """All settings that are not the same for every model, a column for each."""
    rows = [row for row in comparison.models if row.settings]
    if not rows:
        return absent("no model was trained.")
    names = sorted({name for row in rows for name in row.settings})
    differ = [name for name in names if len({str(row.settings.get(name)) for row in rows}) > 1 or len(rows) == 1]
    body = [
        [name_cell(name.replace("_", " ")), *(Cell(_shown(row.settings.get(name))) for row in rows)] for name in differ
    ]
    note = f"The other {len(names) - len(differ)} settings are the same for all; compare.json has every one."
    return table(["Setting", *(row.name for row in rows)], body) + paragraph(note, "note")


def _shown(value: object) -> str:
    return "" if value is None else "no end" if value == MOST else str(value)
