"""A search for settings as one page: what was chosen, what mattered, slices, learning curves, every trial."""

from __future__ import annotations

from statistics import median

from markupsafe import Markup

from relwalk.evaluation.tuning import WORDS, Trial, Tuning, ranked, tried_words
from relwalk.progress import duration
from relwalk.report.charts import Plot, padded
from relwalk.report.html import (
    Cell,
    absent,
    count,
    figure,
    figure_cell,
    grid,
    joined,
    name_cell,
    num,
    paragraph,
    percent,
    phrase,
    table,
    text,
    title,
    whole_page,
)
from relwalk.space import Among, Between

KINDS = {"finished": "a", "pruned": "b", "failed": "role2"}
LINES = 60  # learning curves that are drawn: the best ones


def write_tuning(found: Tuning) -> str:
    """The page of a search, as text."""
    return whole_page(
        "tune.html",
        found=found,
        spent=duration(found.spent),
        chosen=_chosen(found),
        mattered=_mattered(found),
        slices=_slices(found),
        curves=_curves(found),
        trials=_trials(found),
        settings=_settings(found),
    )


def _chosen(found: Tuning) -> Markup:
    best, default = found.best, found.default
    parts = [paragraph(found.protocol, "note")]
    if best is None:
        return joined([*parts, absent("no trial finished, so nothing is chosen.")])
    rows = [_row("chosen", best)] + ([_row("default recipe", default)] if default is not None else [])
    parts.append(table(["", "trial", "valid MRR", "best epoch", "epochs", "minutes"], rows))
    if found.test:
        rows = [
            [
                name_cell(WORDS.get(rule, rule)),
                figure_cell(m.mrr),
                figure_cell(m.mr, 1),
                figure_cell(m.hits_at_1),
                figure_cell(m.hits_at_3),
                figure_cell(m.hits_at_10, bar=m.hits_at_10),
            ]
            for rule, m in found.test.items()
        ]
        head = ["candidates", "MRR", "MR", "H@1", "H@3", "H@10"]
        parts += [title("The chosen one on test"), table(head, rows)]
        parts.append(paragraph("Test was ranked by the chosen trial alone, after it was chosen.", "note"))
    return joined(parts)


def _row(name: str, trial: Trial) -> list[Cell]:
    last = trial.curve[-1].epoch if trial.curve else 0
    return [
        name_cell(name),
        Cell(str(trial.number)),
        figure_cell(trial.valid_mrr, 4),
        Cell(count(trial.best_epoch or 0)),
        Cell(count(last)),
        figure_cell(trial.seconds / 60, 1),
    ]


def _mattered(found: Tuning) -> Markup:
    parts = []
    if found.importance:
        rows = [
            [name_cell(_name(name)), Cell(percent(share), share, share), Cell(_span(found, name), left=True)]
            for name, share in found.importance.items()
        ]
        words = (
            "How much a setting decides whether a trial is among the best quarter (PED-ANOVA), as shares of all. A few "
            "dozen trials make this a hint, no more."
        )
        parts += [table(["Setting", "share", "searched"], rows), paragraph(words, "note")]
    else:
        parts.append(absent("there were too few trials to say which settings mattered."))
    parts += [absent(f"{_name(name)} was not searched: {reason}") for name, reason in found.left_out.items()]
    return joined(parts)


def _name(name: str) -> str:
    return name.replace("_", " ")


def _span(found: Tuning, name: str) -> str:
    search = found.space[name]
    if isinstance(search, Among):
        return ", ".join(map(str, search.choices))
    words = {"linear": "", "log": ", logarithmic", "powers": ", powers of two"}[search.scale]
    return f"{search.low:g} to {search.high:g}{words}"


def _slices(found: Tuning) -> Markup:
    """MRR on valid over every setting, by itself."""
    names = [*found.importance, *(name for name in found.space if name not in found.importance)]
    drawn = [part for name in names if (part := _slice(found, name))]
    if not drawn:
        return absent("no trial has figures yet.")
    words = "Each dot is a trial: teal finished, orange pruned (its best until then). The chosen one has its number."
    return joined([paragraph(words, "note"), grid(drawn)])


def _slice(found: Tuning, name: str) -> Markup | None:
    shown = [trial for trial in ranked(found.trials) if trial.tried.get(name) is not None]
    search = found.space[name]
    if not shown:
        return None
    if isinstance(search, Among):
        return _choices(name, search, shown)
    xs = [float(trial.tried[name]) for trial in shown]
    plot = _plot(name, search, shown, xs)
    for status in ("pruned", "finished"):
        some = [(x, trial) for x, trial in zip(xs, shown, strict=True) if trial.status == status]
        titles = [f"trial {t.number}: {t.valid_mrr:.4f}, {tried_words(t, found.trials)}" for _, t in some]
        plot.dots([x for x, _ in some], [t.valid_mrr or 0.0 for _, t in some], KINDS[status], radius=4, titles=titles)
    best = found.best
    if best is not None and best.tried.get(name) is not None:
        x, y = float(best.tried[name]), best.valid_mrr or 0.0
        plot.word(x, y, f"{best.number}", anchor="middle", up=8)
    return figure(plot.svg(), phrase("valid MRR over {}", _name(name)))


def _plot(name: str, search: Between, shown: list[Trial], xs: list[float]) -> Plot:
    low, high = min(search.low, *xs), max(search.high, *xs)
    log = search.scale != "linear" and low > 0
    mrrs = [trial.valid_mrr or 0.0 for trial in shown]
    bottom, top = padded(mrrs, 0.08)
    label = text(_name(name))
    across = (low / 1.1, high * 1.1) if log else padded([low, high], 0.03)
    return Plot(across, (max(0.0, bottom), top), label, "valid MRR", f"MRR on valid over {label}", log_x=log)


def _choices(name: str, search: Among, shown: list[Trial]) -> Markup:
    rows = []
    for choice in search.choices:
        mrrs = [trial.valid_mrr or 0.0 for trial in shown if trial.tried[name] == choice]
        figures = [figure_cell(max(mrrs), 4), figure_cell(median(mrrs), 4)] if mrrs else [Cell(""), Cell("")]
        rows.append([name_cell(str(choice)), Cell(count(len(mrrs))), *figures])
    return table([_name(name), "trials", "best", "median"], rows)


def _curves(found: Tuning) -> Markup:
    """MRR on valid by the share of its epochs, a line for each trial."""
    drawn = [trial for trial in ranked(found.trials) if trial.curve and trial.epochs][:LINES]
    best = found.best
    if not drawn:
        return absent("no trial was validated, so there are no curves of valid MRR.")
    top = max(moment.valid_mrr or 0.0 for trial in drawn for moment in trial.curve)
    plot = Plot((0.0, 100.0), (0.0, top * 1.08 or 1.0), "% of its epochs", "valid MRR", "MRR on valid of every trial")
    for trial in reversed(drawn):  # the best on top
        chosen = best is not None and trial.number == best.number
        kind = "role2" if chosen else f"{KINDS[trial.status]} faint"
        points = [(100 * m.epoch / trial.epochs, m.valid_mrr or 0.0) for m in trial.curve]
        plot.line([x for x, _ in points], [y for _, y in points], kind, dots=len(points) == 1 or chosen)
    for kind, name in (("a", "finished"), ("b", "pruned"), ("role2", "chosen")):
        plot.names.append((kind, name))
    pruned = sum(trial.status == "pruned" for trial in found.trials)
    words = phrase(
        "MRR on valid of {} trials, each over its own epochs; {} were pruned. Highest: {}.",
        count(len(drawn)),
        count(pruned),
        num(top, 4),
    )
    return figure(plot.svg(), words)


def _trials(found: Tuning) -> Markup:
    names = list(found.space)
    rows = []
    for trial in found.trials:
        tried = [_value_cell(trial.tried.get(name)) for name in names]
        last = trial.curve[-1].epoch if trial.curve else 0
        status = Cell(phrase('<span title="{}">{}</span>', trial.reason, trial.status), trial.status)
        number = Cell(count(trial.number), trial.number)
        epochs = Cell(f"{count(last)}/{count(trial.epochs)}", last)
        rows.append([number, figure_cell(trial.valid_mrr, 4), status, epochs, figure_cell(trial.seconds, 1), *tried])
    parts = [table(["Trial", "valid MRR", "status", "epochs", "seconds", *map(_name, names)], rows, sorts=True)]
    failed = [trial for trial in found.trials if trial.status == "failed"]
    parts += [absent(f"trial {trial.number} failed: {trial.reason}") for trial in failed]
    return joined(parts)


def _value_cell(value: object) -> Cell:
    if isinstance(value, float):
        return figure_cell(value)
    key = value if isinstance(value, int | str) and not isinstance(value, bool) else str(value)
    return Cell("" if value is None else str(value), key)


def _settings(found: Tuning) -> Markup:
    best = found.best
    if best is None:
        return absent("no trial finished.")
    rows = [[name_cell(_name(name)), Cell(str(value))] for name, value in best.settings.items() if value is not None]
    note = "best.toml has them for relwalk train --config, and repeats the trial."
    return table(["Setting", "value"], rows) + paragraph(note, "note")
