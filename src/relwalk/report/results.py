"""The sections about the run itself: figures, learning, relations, predictions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from markupsafe import Markup

from relwalk.checks import MOST
from relwalk.evaluation.classification import ClassificationResult
from relwalk.evaluation.estimate import Absent
from relwalk.evaluation.metrics import RankMetrics
from relwalk.graph.cardinality import cardinalities
from relwalk.report.charts import Plot, padded
from relwalk.report.facts import Facts, Figures, Question
from relwalk.report.html import (
    DASH,
    Cell,
    absent,
    count,
    figure,
    figure_cell,
    grid,
    name_cell,
    num,
    panel,
    paragraph,
    part,
    percent,
    phrase,
    rate,
    table,
    title,
)
from relwalk.report.paper import PAPER, PAPER_ACCURACY
from relwalk.training.settings import TrainingSettings

RULES = {"all": "all entities", "argument": "entities of the argument"}
COLUMNS = ("MRR", "H@1", "H@3", "H@10", "MR", "AMRI")


def headline(f: Facts) -> Markup:
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
    protocol = phrase(
        "<strong>Large:</strong> {}. <strong>Argument:</strong> the same, {}. <strong>Random:</strong> what a random "
        "order of all entities would give. {} questions; equal scores share the mean of their ranks.",
        every.result.protocol,
        candidates,
        count(m.queries),
    )
    return (
        part("cards", cards)
        + paragraph(protocol, "note")
        + title("Beside the baselines")
        + _comparison(f, f.figures)
        + paragraph(_lead(m, every), "note")
        + _classified(f)
    )


def _card(name: str, value: str, argument: str, random: str, share: float) -> dict[str, Any]:
    """A large figure, what it is by the other protocol and at random, and the share of its meter that is full."""
    share = min(1.0, max(0.0, share))
    return {"name": name, "value": value, "argument": argument, "random": random, "share": share}


def _lead(m: RankMetrics, every: Figures) -> Markup:
    gain = num(m.mrr / max(every.random.mrr, 1e-12), 1)
    words = phrase("Against all entities the model's MRR is {} times a random order's", gain)
    if every.popularity is not None:
        words += phrase(" and {} times that of popularity", num(m.mrr / max(every.popularity.mrr, 1e-12), 1))
    return words + (
        ". The argument protocol ranks among fewer candidates, which the test set helps to choose: ranks can only gain."
    )


def _comparison(f: Facts, figures: dict[str, Figures]) -> Markup:
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
    shown = phrase("<strong>{}</strong>", name) if strong else name
    values = (m.mrr, m.hits_at_1, m.hits_at_3, m.hits_at_10, m.mr, m.amri)
    cells = [Cell(num(v, 1) if column == "MR" else rate(v)) for column, v in zip(COLUMNS, values, strict=True)]
    return [Cell(shown, left=True), Cell(rule, left=True), *cells]


def _classified(f: Facts) -> Markup:
    head = title("True or false?")
    if isinstance(f.classification, Absent):
        return head + absent(f.classification.reason)
    c: ClassificationResult = f.classification
    rows = [
        [Cell(phrase("<strong>{}</strong>", f.model.title), left=True), *map(figure_cell, _verdict(c.model))],
        [Cell("count of (relation, tail) in train", left=True), *map(figure_cell, _verdict(c.baseline))],
    ]
    if f.graph.name in PAPER_ACCURACY:
        paper = [figure_cell(PAPER_ACCURACY[f.graph.name]), Cell(DASH), Cell(DASH)]
        rows.append([Cell("RelWalk, as the paper reports it", left=True), *paper])
    gain = c.model.accuracy - c.baseline.accuracy
    side = "above" if gain >= 0 else "below"
    words = phrase(
        "One threshold per relation, chosen on valid and judged on {} test triples; negatives: {}. The model is {} "
        "points {} counting.",
        count(c.test_triples),
        c.negatives,
        num(abs(100 * gain), 1),
        side,
    ) + phrase(
        " As a probability of being true, fitted on valid, it has an ECE of {} and a Brier score of {}.",
        num(c.ece, 3),
        num(c.brier, 3),
    )
    return head + table(["Triple classification", "accuracy", "F1", "ROC-AUC"], rows) + paragraph(words, "note")


def _verdict(v: Any) -> tuple[float, float, float]:
    return v.accuracy, v.f1, v.roc_auc


def subject(f: Facts) -> Markup:
    """What graph, what run, and how it learned."""
    graph, record = f.graph, f.run.record
    about_graph = {
        "Name": graph.name,
        "Entities": count(len(graph.entities)),
        "Relations": count(len(graph.relations)),
        "Triples": phrase(
            "{} / {} / {} <small>train / valid / test</small>",
            *(count(len(graph.split(s))) for s in ("train", "valid", "test")),
        ),
        "Never in train": f"{count(len(graph.unseen))} entities",
        "Fingerprint": phrase("<code>{}</code>", graph.fingerprint[:12]),
    }
    if graph.notes:
        about_graph["Read as"] = "; ".join(graph.notes)
    options = ", ".join(f"{k} {v}" for k, v in record.model.options.items())
    weights = sum(p.numel() for p in f.model.parameters())
    about_run = {
        "Model": f"{f.model.title}, {record.model.dim} dimensions" + (f" ({options})" if options else ""),
        **({"Compression": str(how)} if (how := record.model.compression) is not None else {}),
        "Orthogonality": str(getattr(f.model, "orthogonality", "not part of this model")),
        "Weights": count(weights),
        "Objective": str(record.training.objective),
        "Settings": _settings(record.training) or "all as by default",
        "Recipe, seed": f"{record.recipe}, {record.training.seed}",
        "Made": phrase(
            "{} with relwalk {}, torch {} <small>({})</small>",
            record.created[:10],
            *(record.versions.get(name, "?") for name in ("relwalk", "torch")),
            record.status,
        ),
    }
    return grid([panel("Graph", about_graph), panel("Run", about_run)]) + title("Learning curve") + _learning(f)


def _settings(training: TrainingSettings) -> str:
    """The settings that are not the default ones."""
    default = TrainingSettings.model_validate({}).flat()
    changed = {k: v for k, v in training.flat().items() if k not in default or v != default[k]}
    hidden = ("seed", "objective", "threads", "checkpoint_seconds")
    shown = {k: v for k, v in changed.items() if k not in hidden and v is not None and v != MOST}  # MOST: no end
    return ", ".join(f"{k.replace('_', ' ')} {v}" for k, v in shown.items())


def _learning(f: Facts) -> Markup:
    if isinstance(f.history, Absent):
        return absent(f.history.reason)
    epochs = [e.epoch for e in f.history]
    losses = [e.loss for e in f.history]
    span = (0.0, float(max(epochs)))
    positive = min(losses) > 0 and max(losses) / min(losses) > 20
    low, high = (min(losses) * 0.9, max(losses) * 1.1) if positive else padded(losses)
    loss = Plot(span, (low, high), "epoch", "loss per triple", "Training loss by epoch", log_y=positive)
    loss.line(epochs, losses, "a", dots=len(epochs) < 12)
    ends = [phrase("{} in epoch {}", num(losses[i], 2), epochs[i]) for i in (0, -1)]
    words = phrase("Training loss went from {} to {}.", *ends)
    parts = [figure(loss.svg(), words)]
    valid = [(e.epoch, e.metric) for e in f.history if e.metric is not None and math.isfinite(e.metric)]
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
    words = phrase("MRR on valid is best at epoch {}, {}", at[best], num(values[best])) + (
        ": it was still rising at the end, so more epochs may help." if still else ", whose weights the run keeps."
    )
    return grid([*parts, figure(curve.svg(), words)])


def relations(f: Facts) -> Markup:
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
            cells += [Cell(Markup('<span class="none">no test triples</span>')), *[Cell(DASH)] * 4]
        else:
            m = result.metrics(where=result.triples[:, 1] == r)
            hits[r] = m.hits_at_10
            cells += [figure_cell(m.mrr), figure_cell(m.hits_at_1), figure_cell(m.hits_at_3)]
            cells += [figure_cell(m.hits_at_10, bar=m.hits_at_10), figure_cell(m.mr, 1)]
        rows.append(cells)
    head = ["Relation", "class", "train", "test", "MRR", "H@1", "H@3", "H@10", "MR"]
    words = Markup()
    note = "Filtered, against all entities, head and tail together. Press a column's head to sort by it."
    if hits:
        best, worst = (pick(hits, key=lambda r: hits[r]) for pick in (max, min))
        words = phrase(
            "Of {} tested relations <em>{}</em> does best (H@10 {}) and <em>{}</em> worst ({}). ",
            count(len(hits)),
            graph.relations.label(best),
            num(hits[best]),
            graph.relations.label(worst),
            num(hits[worst]),
        )
    find = part("find_relation") if len(rows) > 12 else Markup()
    return paragraph(words + note) + find + table(head, rows, sorts=True)


def predictions(f: Facts) -> Markup:
    """Some test questions with the model's best answers."""
    if isinstance(f.questions, Absent):
        return absent(f.questions.reason)
    first = sum(q.rank == 1 for q in f.questions)
    words = (
        f"{len(f.questions)} test questions drawn with seed {f.seed}, of different relations. The model puts the test "
        f"answer first in {first} of them. Rank is filtered: other known answers do not count against it. "
        + ("Shares are as fitted on valid." if f.run.probabilities is not None else "p is the model's own.")
    )
    return paragraph(words) + grid([_question(q) for q in f.questions], "three")


def _question(q: Question) -> Markup:
    shares = [a.share if a.share is not None else a.probability for a in q.answers]
    return part("question", q, shares, max([1e-12, *shares]))
