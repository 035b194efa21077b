"""The project's page of results, and the table of its README, from the records alone."""

from __future__ import annotations

from collections.abc import Sequence

from relwalk.models import MODELS
from relwalk.progress import duration
from relwalk.recipes import RECIPES
from relwalk.report.anchors import ANCHORS
from relwalk.report.paper import PAPER_TABLE, Published
from relwalk.reproduction.markdown import PROTOCOLS, markdown_table, part_markdown, table2_markdown
from relwalk.reproduction.record import ResultRecord
from relwalk.reproduction.table import Line, best_line, figure, groups, table2_lines, title

DATASETS = ("fb15k-237", "wn18rr", "fb13")
PRINTED = {"fb15k-237": "FB15k-237", "wn18rr": "WN18RR", "fb13": "FB13"}
BEGIN, END = "<!-- made by make results -->", "<!-- end of what make results makes -->"
SHORT_OF = 0.03  # MRR below what is published from which a model is named
FIGURES = ("mrr", "mr", "hits@1", "hits@3", "hits@10")
SECTIONS = {
    "table3": "Table 3: the theory's conditions, relation by relation",
    "figure1": "Figure 1: how orthogonal the matrices are",
    "figure2": "Figure 2: accuracy over the components that are kept",
}


def results_page(records: Sequence[ResultRecord]) -> str:
    """results/README.md."""
    known = [record for record in records if record.dataset in DATASETS]
    parts = [
        "# Results",
        "Made from [records/](records) by `make results`; do not edit. A record is what one command made: settings, "
        "seed, commit, versions, machine, time, figures by both protocols and of each relation. `relwalk reproduce` "
        "and `relwalk record` write them, `relwalk train GRAPH --config RECORD.json` repeats one; "
        "[record.schema.json](record.schema.json) is their form.",
        f"## Table 2\n\n{PROTOCOLS}",
        table2_markdown(table2_lines(known, DATASETS), "###"),
        f"## What to hold RelWalk against\n\n{_anchors()}",
        f"## Every model\n\n{_models(known)}",
        *(f"## {words}\n\n{_theory(target, records)}" for target, words in SECTIONS.items()),
        f"## The records\n\n{_listed(records)}",
    ]
    return "\n\n".join(parts) + "\n"


def _anchors() -> str:
    rows = [_anchor(p) for dataset in DATASETS for p in ANCHORS if p.dataset == dataset and not p.model]
    words = "Figures of other systems, which are not trained here, by those who published them."
    return f"{words}\n\n" + markdown_table(["graph", "system", "candidates", "MRR", "H@10", "accuracy", "source"], rows)


def _anchor(p: Published) -> list[str]:
    values = [("mrr", p.mrr), ("hits@10", p.hits_at_10), ("accuracy", p.accuracy)]
    cells = [figure(name, value) if value is not None else "-" for name, value in values]
    return [PRINTED[p.dataset], p.system, p.candidates, *cells, p.source]


def _models(records: Sequence[ResultRecord]) -> str:
    """The best record of each model on each graph, by valid, beside the best figure that is published of it."""
    rows = [row for model in MODELS for dataset in DATASETS[:2] if (row := _model(model, dataset, records))]
    ranked = ["MRR, all", "published", "difference", "MRR, argument", "H@10, all"]
    head = ["model", "graph", *ranked, "time", "memory", "ours"]
    words = (
        "Of each model the recipe that is best on valid. Published: the highest MRR over all entities of that model in "
        f"Table 2 and in the table above. One that falls more than {SHORT_OF} short is marked with *."
    )
    judged = [_judged(model, records) for model in MODELS if _judged(model, records)]
    accuracy = (
        markdown_table(["model", "accuracy on FB13", "combined", "counting", "published", "ours"], judged)
        if judged
        else ""
    )
    return "\n\n".join(filter(None, [words, markdown_table(head, rows), accuracy]))


def _model(model: str, dataset: str, records: Sequence[ResultRecord]) -> list[str]:
    """The line of a model on a graph; nothing where there is neither a record nor a published figure."""
    known = [p.mrr for p in (*PAPER_TABLE, *ANCHORS) if (p.dataset, p.model, p.candidates) == (dataset, model, "all")]
    published = max((mrr for mrr in known if mrr is not None), default=None)
    line = best_line(model, dataset, records)
    if line is None and published is None:
        return []
    if line is None:
        return [title(model), PRINTED[dataset], "-", figure("mrr", published or 0.0), *["-"] * 5, "no record"]
    mrr, argument = line.ours("mrr"), Line(dataset, model, "argument", line.records).ours("mrr")
    gap = None if published is None or mrr is None else mrr - published
    mark = "*" if gap is not None and gap < -SHORT_OF else ""
    ten = line.ours("hits@10")
    return [
        title(model),
        PRINTED[dataset],
        *("-" if value is None else figure("mrr", value) for value in (mrr, published)),
        "-" if gap is None else f"{gap:+.3f}{mark}",
        *("-" if value is None else figure("mrr", value) for value in (argument, ten)),
        *_cost(line.records[0]),
        line.records[0].recipe_words,
    ]


def _judged(model: str, records: Sequence[ResultRecord]) -> list[str]:
    """The accuracy of a model on FB13; nothing without a record."""
    own = [record for record in records if record.model == model and record.accuracy is not None]
    if not own:
        return []
    best = max(own, key=lambda record: record.metrics.valid_mrr or 0.0)
    published = [p.accuracy for p in (*PAPER_TABLE, *ANCHORS) if p.model == model and p.accuracy is not None]
    beside = figure("accuracy", max(published)) if published else "-"
    values = [best.judged(name) for name in ("accuracy", "combined_accuracy", "baseline_accuracy")]
    shown = ["-" if value is None else figure("accuracy", value) for value in values]
    return [title(model), *shown, beside, best.recipe_words]


def _cost(record: ResultRecord) -> list[str]:
    seconds, peak = record.cost.seconds, record.cost.peak_bytes
    return ["-" if seconds is None else duration(seconds), "-" if peak is None else f"{peak / 1e6:,.0f} MB"]


def _theory(target: str, records: Sequence[ResultRecord]) -> str:
    own = [record for record in records if target in record.theory]
    if not own:
        return f"No record has it yet: `relwalk reproduce {target} --results results`."
    return "\n\n".join(part_markdown(target, record, "figures") for record in own)


def _listed(records: Sequence[ResultRecord]) -> str:
    rows = []
    for r in records:
        where = "-" if r.machine is None else f"{r.machine.cores or '?'} cores of {r.machine.processor}"
        threads = "" if r.machine is None or r.machine.threads is None else f", {r.machine.threads} threads"
        said = " ".join(filter(None, [r.note, f"Failed: {r.reason}" if r.status == "failed" else ""])) or "-"
        commit = (r.commit or "-")[:12]
        rows.append([f"[{r.name}](records/{r.name}.json)", f"`{r.command}`", *_cost(r), where + threads, commit, said])
    return markdown_table(["record", "command", "time", "memory", "machine", "commit", "note"], rows)


def readme_table(records: Sequence[ResultRecord]) -> str:
    """The results of RelWalk by the recipes that have a name, each above what the paper reports."""
    head = ["graph", "protocol", "MRR", "MR", "H@1", "H@3", "H@10", "training"]
    rows: list[list[str]] = []
    own = [r for r in records if (r.model, r.status) == ("relwalk", "finished") and r.recipe in RECIPES and not r.asked]
    for dataset in DATASETS[:2]:
        for group in groups([record for record in own if record.dataset == dataset]):
            rows += [_ranked(dataset, rule, group) for rule in ("all", "argument")]
        paper = next(p for p in PAPER_TABLE if (p.dataset, p.model) == (dataset, "relwalk"))
        values = [figure(name, value or 0.0) for name, value in paper.figures().items()]
        rows.append([PRINTED[dataset], "argument", *values, "*the paper, RelWalk d=100*"])
    return "\n".join([BEGIN, markdown_table(head, rows), *_judged_lines(own), END])


def _ranked(dataset: str, rule: str, group: tuple[ResultRecord, ...]) -> list[str]:
    line = Line(dataset, "RelWalk", rule, group)
    seeds = ", ".join(str(record.seed) for record in group)
    time, _ = _cost(group[0])
    training = f"{group[0].recipe}, seed{'s' * (len(group) > 1)} {seeds}: {time}"
    return [PRINTED[dataset], rule, *(line.own_cell(name) for name in FIGURES), training]


def _judged_lines(own: Sequence[ResultRecord]) -> list[str]:
    """FB13, under the table."""
    lines = []
    for group in groups([record for record in own if record.accuracy is not None]):
        line = Line(group[0].dataset, "RelWalk", "classification", group)
        cell = f"{line.own_cell('accuracy')}, combined {line.own_cell('combined_accuracy')}"
        dataset = PRINTED.get(group[0].dataset, group[0].dataset)
        lines.append(f"\n{dataset}, accuracy of `classify`: {cell} ({group[0].recipe}; the paper 0.886).")
    return lines


def with_part(document: str, part: str) -> str:
    """The document with what stands between the marks that the part begins and ends with replaced by it."""
    begin, end = part.splitlines()[0], part.splitlines()[-1]
    before, _, rest = document.partition(begin)
    _, _, after = rest.partition(end)
    return before + part + after
