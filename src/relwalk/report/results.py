"""The sections about the run itself: figures, learning, relations, predictions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from relwalk.evaluation.classification import ClassificationResult
from relwalk.evaluation.metrics import RankMetrics
from relwalk.graph.cardinality import cardinalities
from relwalk.report.baselines import PAPER, PAPER_ACCURACY
from relwalk.report.charts import Plot, padded
from relwalk.report.facts import Facts, Figures, Question
from relwalk.report.html import (
    DASH,
    Cell,
    absent,
    count,
    facts,
    figure,
    figure_cell,
    grid,
    name_cell,
    num,
    paragraph,
    percent,
    rate,
    table,
    text,
)
from relwalk.theory.estimate import Absent
from relwalk.training.settings import TrainingSettings

RULES = {"all": "all entities", "argument": "entities of the argument"}
COLUMNS = ("MRR", "H@1", "H@3", "H@10", "MR", "AMRI")


def headline(f: Facts) -> str:
    """Five large figures, then everything they should be compared with."""
    if isinstance(f.figures, Absent):
        return absent(f.figures.reason) + _classified(f)
    every, argument = f.figures["all"], f.figures["argument"]
    m, a, r = every.result.metrics(), argument.result.metrics(), every.random
    cards = [
        _card("MRR", num(m.mrr), num(a.mrr), num(r.mrr), m.mrr),
        _card("Hits@1", percent(m.hits_at_1, 1), percent(a.hits_at_1, 1), percent(r.hits_at_1, 1), m.hits_at_1),
        _card("Hits@3", percent(m.hits_at_3, 1), percent(a.hits_at_3, 1), percent(r.hits_at_3, 1), m.hits_at_3),
        _card("Hits@10", percent(m.hits_at_10, 1), percent(a.hits_at_10, 1), percent(r.hits_at_10, 1), m.hits_at_10),
        _card("Mean rank", num(m.mr, 1), num(a.mr, 1), num(r.mr, 1), m.amri),
    ]
    candidates = str(argument.result.protocol).split("; ")[1]
    protocol = paragraph(
        f"<strong>Large:</strong> {text(every.result.protocol)}. <strong>Argument:</strong> the same, "
        f"{text(candidates)}. <strong>Random:</strong> what a random order of all entities would give. "
        f"{count(m.queries)} questions; equal scores share the mean of their ranks.",
        "note",
    )
    return (
        f'<div class="cards">{"".join(cards)}</div>{protocol}<h3>Beside the baselines</h3>{_comparison(f, f.figures)}'
        + paragraph(_lead(m, every), "note")
        + _classified(f)
    )


def _card(name: str, value: str, argument: str, random: str, share: float) -> str:
    return (
        f'<div class="card"><h3>{name}</h3><div class="big">{value}</div>'
        f'<div class="meter"><i style="width:{100 * min(1, max(0, share)):.1f}%"></i></div>'
        f"<dl><div><dt>argument</dt><dd>{argument}</dd></div><div><dt>random</dt><dd>{random}</dd></div></dl></div>"
    )


def _lead(m: RankMetrics, every: Figures) -> str:
    words = (
        f"Against all entities the model's MRR is {num(m.mrr / max(every.random.mrr, 1e-12), 1)} times a random order's"
    )
    if every.popularity is not None:
        words += f" and {num(m.mrr / max(every.popularity.mrr, 1e-12), 1)} times that of popularity"
    words += (
        ". The argument protocol ranks among fewer candidates, which the test set helps to choose: ranks can only gain."
    )
    return words


def _comparison(f: Facts, figures: dict[str, Figures]) -> str:
    rows = []
    for rule, found in figures.items():
        rows.append(_row(f.model.title, RULES[rule], found.result.metrics(), strong=True))
        if found.popularity is not None:
            rows.append(_row("popularity in train", RULES[rule], found.popularity))
        rows.append(_row("random order, expected", RULES[rule], found.random))
    if f.graph.name in PAPER:
        rows.append(_row("RelWalk, as the paper reports it", RULES["argument"], PAPER[f.graph.name]))
    return table(["Order of candidates", "Candidates", *COLUMNS], rows)


def _row(name: str, rule: str, m: RankMetrics, strong: bool = False) -> list[Cell]:
    shown = f"<strong>{text(name)}</strong>" if strong else text(name)
    values = (m.mrr, m.hits_at_1, m.hits_at_3, m.hits_at_10, m.mr, m.amri)
    cells = [Cell(num(v, 1) if column == "MR" else rate(v)) for column, v in zip(COLUMNS, values, strict=True)]
    return [Cell(shown, left=True), Cell(text(rule), left=True), *cells]


def _classified(f: Facts) -> str:
    title = "<h3>True or false?</h3>"
    if isinstance(f.classification, Absent):
        return title + absent(f.classification.reason)
    c: ClassificationResult = f.classification
    rows = [
        [Cell(f"<strong>{text(f.model.title)}</strong>", left=True), *map(figure_cell, _verdict(c.model))],
        [Cell("count of (relation, tail) in train", left=True), *map(figure_cell, _verdict(c.baseline))],
    ]
    if f.graph.name in PAPER_ACCURACY:
        paper = [figure_cell(PAPER_ACCURACY[f.graph.name]), Cell(DASH), Cell(DASH)]
        rows.append([Cell("RelWalk, as the paper reports it", left=True), *paper])
    gain = c.model.accuracy - c.baseline.accuracy
    side = "above" if gain >= 0 else "below"
    words = (
        f"One threshold per relation, chosen on valid and judged on {count(c.test_triples)} test triples; negatives: "
        f"{text(c.negatives)}. The model is {num(abs(100 * gain), 1)} points {side} counting."
    )
    return title + table(["Triple classification", "accuracy", "F1", "ROC-AUC"], rows) + paragraph(words, "note")


def _verdict(v: Any) -> tuple[float, float, float]:
    return v.accuracy, v.f1, v.roc_auc


def subject(f: Facts) -> str:
    """What graph, what run, and how it learned."""
    graph, record = f.graph, f.run.record
    about_graph = {
        "Name": text(graph.name),
        "Entities": count(len(graph.entities)),
        "Relations": count(len(graph.relations)),
        "Triples": " / ".join(count(len(graph.split(s))) for s in ("train", "valid", "test"))
        + " <small>train / valid / test</small>",
        "Never in train": f"{count(len(graph.unseen))} entities",
        "Fingerprint": f"<code>{text(graph.fingerprint[:12])}</code>",
    }
    if graph.notes:
        about_graph["Read as"] = text("; ".join(graph.notes))
    options = ", ".join(f"{k} {v}" for k, v in record.model.options.items())
    weights = sum(p.numel() for p in f.model.parameters())
    about_run = {
        "Model": text(f"{f.model.title}, {record.model.dim} dimensions") + (f" ({text(options)})" if options else ""),
        "Orthogonality": text(getattr(f.model, "orthogonality", "not part of this model")),
        "Weights": count(weights),
        "Objective": text(record.training.objective),
        "Settings": text(_settings(record.training)) or "all as by default",
        "Recipe, seed": f"{text(record.recipe)}, {record.training.seed}",
        "Made": text(
            f"{record.created[:10]} with relwalk {record.versions.get('relwalk', '?')}, "
            f"torch {record.versions.get('torch', '?')}"
        )
        + f" <small>({text(record.status)})</small>",
    }
    cards = [f'<div class="panel"><h3>Graph</h3>{facts(about_graph)}</div>']
    cards.append(f'<div class="panel"><h3>Run</h3>{facts(about_run)}</div>')
    return grid(cards) + "<h3>Learning curve</h3>" + _learning(f)


def _settings(training: TrainingSettings) -> str:
    """The settings that are not the default ones."""
    default = TrainingSettings.model_validate({})
    changed = {k: v for k, v in training.model_dump().items() if v != getattr(default, k)}
    hidden = ("seed", "objective", "threads", "checkpoint_seconds")
    return ", ".join(f"{k.replace('_', ' ')} {v}" for k, v in changed.items() if v is not None and k not in hidden)


def _learning(f: Facts) -> str:
    if isinstance(f.history, Absent):
        return absent(f.history.reason)
    epochs = [e.number for e in f.history]
    losses = [e.loss for e in f.history]
    span = (0.0, float(max(epochs)))
    positive = min(losses) > 0 and max(losses) / min(losses) > 20
    low, high = (min(losses) * 0.9, max(losses) * 1.1) if positive else padded(losses)
    loss = Plot(span, (low, high), "epoch", "training loss", "Training loss by epoch", log_y=positive)
    loss.line(epochs, losses, "a", dots=len(epochs) < 12)
    ends = [f"{num(losses[i], 2)} in epoch {epochs[i]}" for i in (0, -1)]
    words = f"Training loss went from {ends[0]} to {ends[1]}."
    parts = [figure(loss.svg(), words)]
    valid = [(e.number, e.valid_mrr) for e in f.history if e.valid_mrr is not None and math.isfinite(e.valid_mrr)]
    if not valid:
        return grid([*parts, absent("training did not validate, so there is no curve of valid MRR.")])
    at, values = [n for n, _ in valid], [v for _, v in valid]
    best = int(np.argmax(values))
    curve = Plot(span, (0.0, max(values) * 1.15 or 1.0), "epoch", "valid MRR", "MRR on valid by epoch")
    curve.line(at, values, "a", dots=True)
    curve.word(
        at[best], values[best], f"{values[best]:.3f}", anchor="end" if at[best] > 0.8 * span[1] else "middle", up=10
    )
    still = best == len(values) - 1 and len(values) > 1
    words = f"MRR on valid is best at epoch {at[best]}, {num(values[best])}" + (
        ": it was still rising at the end, so more epochs may help." if still else ", whose weights the run keeps."
    )
    return grid([*parts, figure(curve.svg(), words)])


def relations(f: Facts) -> str:
    """Every relation, sortable; a relation without test triples says so."""
    graph = f.graph
    train, test = (np.bincount(t[:, 1], minlength=len(graph.relations)) for t in (graph.train, graph.test))
    classes = cardinalities(graph)
    result = None if isinstance(f.figures, Absent) else f.figures["all"].result
    rows, hits = [], {}
    for r in np.argsort(-test, kind="stable").tolist():
        cells = [name_cell(graph.relations.label(r)), Cell(classes[r], classes[r])]
        cells += [Cell(count(int(n)), int(n)) for n in (train[r], test[r])]
        if result is None or test[r] == 0:
            cells += [Cell('<span class="none">no test triples</span>'), *[Cell(DASH)] * 4]
        else:
            m = result.metrics(where=result.triples[:, 1] == r)
            hits[r] = m.hits_at_10
            cells += [figure_cell(m.mrr), figure_cell(m.hits_at_1), figure_cell(m.hits_at_3)]
            cells += [figure_cell(m.hits_at_10, bar=m.hits_at_10), figure_cell(m.mr, 1)]
        rows.append(cells)
    head = ["Relation", "class", "train", "test", "MRR", "H@1", "H@3", "H@10", "MR"]
    find = '<input type="search" class="filter" placeholder="Find a relation" aria-label="Find a relation">'
    words = "Filtered, against all entities, head and tail together. Press a column's head to sort by it."
    if hits:
        best, worst = (pick(hits, key=lambda r: hits[r]) for pick in (max, min))
        words = (
            f"Of {count(len(hits))} tested relations <em>{text(graph.relations.label(best))}</em> does best (H@10 "
            f"{num(hits[best])}) and <em>{text(graph.relations.label(worst))}</em> worst ({num(hits[worst])}). {words}"
        )
    return paragraph(words) + (find if len(rows) > 12 else "") + table(head, rows, sorts=True)


def predictions(f: Facts) -> str:
    """Some test questions with the model's best answers."""
    if isinstance(f.questions, Absent):
        return absent(f.questions.reason)
    first = sum(q.rank == 1 for q in f.questions)
    words = (
        f"{len(f.questions)} test questions drawn with seed {f.seed}, of different relations. The model puts the test "
        f"answer first in {first} of them. Rank is filtered: other known answers do not count against it."
    )
    return paragraph(words) + grid([_question(q) for q in f.questions], "three")


def _question(q: Question) -> str:
    blank = '<b class="blank">?</b>'
    head, tail = (text(x) if x is not None else blank for x in (q.head, q.tail))
    top = max([1e-12, *(a.probability for a in q.answers)])
    rows = "".join(
        f'<li class="{"truth" if a.name == q.truth_name else "known" if a.known else "new"}">'
        f'<i style="width:{100 * a.probability / top:.1f}%"></i><span>{text(a.label)}</span>'
        f"<small>{'test answer' if a.name == q.truth_name else 'known' if a.known else 'new'}</small>"
        f"<b>{percent(a.probability, 1)}</b></li>"
        for a in q.answers
    )
    rank = num(q.rank, 0 if q.rank == int(q.rank) else 1)
    return (
        f'<div class="question"><h3>{head} <em>{text(q.relation)}</em> {tail}</h3><ol>{rows}</ol>'
        f"<p>Test answer <strong>{text(q.truth)}</strong>: rank {rank} of {count(q.candidates)}.</p></div>"
    )
