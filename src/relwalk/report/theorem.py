"""The sections about the theorem: does it hold, where does it stop, does learning find a known model again?"""

from __future__ import annotations

import numpy as np
from markupsafe import Markup

from relwalk.evaluation.estimate import Absent, Estimate
from relwalk.report.charts import Plot, padded
from relwalk.report.facts import Facts, Pairs
from relwalk.report.html import (
    Cell,
    absent,
    count,
    figure,
    figure_cell,
    grid,
    joined,
    num,
    paragraph,
    part,
    phrase,
    prose,
    table,
    title,
    why_not,
)
from relwalk.theory.sweep import Sweep
from relwalk.theory.theorem import TheoremCheck, fit

BEYOND = "An error counts as far as it exceeds three standard errors of the Monte Carlo."
AXES = {
    "norm": "length of the entities / √d",
    "dim": "dimensions d",
    "entities": "entities n",
    "step": "step of c, |c′ − c|",
}


def theorem(f: Facts) -> Markup:
    """log p by Monte Carlo against s/2d - 2 log Z."""
    if isinstance(f.pairs, Absent):
        return absent(f.pairs.reason)
    p: Pairs = f.pairs
    low, high = padded(np.concatenate([p.truth, p.theorem]))
    plot = Plot((low, high), (low, high), "theorem: s/2d − 2 log Z", "Monte Carlo: log p(h, t | R)", "The theorem")
    plot.line([low, high], [low, high], "c dashed", name="equal")
    for kind, mask, name in (("b", ~p.true, "random pairs"), ("a", p.true, "true triples")):
        titles = [title for title, on in zip(p.titles, mask, strict=True) if on]
        plot.dots(p.theorem[mask], p.truth[mask], kind, titles=titles, name=name)
    found = fit(p.theorem, p.truth)
    line = phrase("slope {}, R² {}", num(found.slope, 2), num(found.r2)) if found.slope is not None else "no slope"
    shown = joined((phrase("<em>{}</em>", f.graph.relations.label(r)) for r in f.shown), ", ")
    words = phrase(
        "{} true triples and as many random pairs of {}: {}, largest error {} in log p. On the dashed line the theorem "
        "is exact.",
        count(int(p.true.sum())),
        shown,
        line,
        num(found.largest_error, 2),
    )
    checked = f.analysis.parts.get("theorem")
    if not isinstance(checked, TheoremCheck):
        return figure(plot.svg(), words) + absent(why_not(checked))
    rows = []
    for name, fits in (("s/2d", checked.theorem), ("exact integral", checked.exact)):
        for kind, one in fits.items():
            cells = [figure_cell(x, 3) for x in (one.slope, one.r2, one.bias, one.largest_error)]
            rows.append([Cell(f"{name}, {kind}", left=True), *cells])
    figures = table(["Form, triples", "slope", "R²", "bias", "largest error"], rows)
    about = (
        f"{count(checked.triples)} true and as many random triples of {count(len(checked.relations))} relations. The "
        "exact form keeps the spherical integral (a Bessel function) and assumes only that Z is constant."
    )
    both = grid([figure(plot.svg(), words), part("beside", [figures, paragraph(about, "note")])])
    return both + paragraph(prose(checked.verdict), "note") + _limits(f)


def _limits(f: Facts) -> Markup:
    """Where the theorem stops holding: the largest error against each of what it assumes small or large."""
    found = f.analysis.parts.get("limits")
    if not isinstance(found, Sweep):
        return absent(why_not(found))
    return (
        title("Where it stops holding")
        + grid([_limit(found, name) for name in AXES], "two")
        + paragraph(prose(f"{found.verdict} {BEYOND}"), "note")
    )


def _limit(found: Sweep, name: str) -> Markup:
    rows, place = found.rows_of(name), (found.here or {}).get(name)
    xs = np.array([row.value for row in rows])
    curves = [np.array([max(1e-4, getattr(row, form).largest_error) for row in rows]) for form in ("theorem", "exact")]
    across = xs if place is None else np.append(xs, place)
    log = name in ("dim", "entities")
    wide = (across.min() * 0.9, across.max() * 1.1) if log else padded(across)
    errors = np.concatenate([*curves, [found.tolerance]])
    tall = (errors.min() * 0.7, errors.max() * 1.5)
    plot = Plot(wide, tall, AXES[name], "largest error in log p", f"Error against {name}", log, log_y=True)
    plot.line(wide, [found.tolerance] * 2, "c dashed", name=f"{found.tolerance:g}: as good as holding")
    plot.line(xs, curves[0], "a", dots=True, name="theorem")
    plot.line(xs, curves[1], "b", dots=True, name="exact integral")
    if place is not None:
        plot.line([place] * 2, tall, "here")
        left = place > sum(wide) / 2 if not log else place**2 > wide[0] * wide[1]
        plot.word(place, tall[1], "this run", anchor="end" if left else "start", up=-12)
    ends = found.breaks_at[name]
    way = "up" if name in ("norm", "step") else "down"
    verdict = f"it fails from {ends:g} {way}" if ends is not None else "it holds over the whole range"
    return figure(plot.svg(), f"The theorem against {AXES[name]}, all else as in the note below: {verdict}.")


def loop(f: Facts) -> Markup:
    """Learned against true log p of pairs that train does not hold, beside the same with entities renamed."""
    if isinstance(f.loop, Absent):
        return absent(f.loop.reason)
    found, some = f.loop.found, f.loop.found.some
    plot = Plot(
        padded(some.truth),
        padded(np.concatenate([some.learned, some.shuffled])),
        "true log p(h, t | R)",
        "learned s/2d",
        "Learned against true",
    )
    plot.dots(some.truth, some.shuffled, "b", name="learned, entities renamed at random")
    plot.dots(some.truth, some.learned, "a", name="learned")
    words = phrase(
        "{} of {} pairs that training did not see, by {}: the rank correlation with the truth is {}.",
        count(len(some.truth)),
        count(found.pairs),
        f.loop.about,
        num(found.learned, 2),
    )
    rows = [
        [Cell("learned", left=True), figure_cell(found.learned, 2), figure_cell(found.interaction, 2)],
        [Cell("entities renamed at random", left=True), *_spread(found.shuffled, found.shuffled_interaction)],
        [Cell("popularity of head and tail", left=True), figure_cell(found.popularity, 2), figure_cell(None)],
    ]
    lead = paragraph(
        phrase(
            "A graph is drawn from a RelWalk whose vectors are known, a fresh model learns it, and both are asked for "
            "log p(h, t | R) of pairs that are not in train. {}",
            "The loop closes." if found.closed else phrase("<strong>The loop does not close.</strong>"),
        )
    )
    about = "Interaction: what is left of log p when head and tail alone are taken out. Renamed: mean and range."
    side = [table(["Rank correlation with the truth", "log p", "interaction"], rows), paragraph(about, "note")]
    return lead + grid([figure(plot.svg(), words), part("beside", side)])


def _spread(*estimates: Estimate) -> list[Cell]:
    """Correlations near zero: two decimals say it, a power of ten would not."""
    shown = [[f"{x:.2f}".replace("-", "−") for x in (e.value, e.low, e.high)] for e in estimates]
    return [Cell(phrase('{} <span class="range">{} to {}</span>', *figures)) for figures in shown]
