"""The sections about probability: does Z concentrate, does the theorem hold, is a confidence of 0.7 right in 70%?"""

from __future__ import annotations

import numpy as np

from relwalk.report.charts import Plot, histogram
from relwalk.report.facts import Facts, Partition
from relwalk.report.html import (
    Cell,
    absent,
    count,
    figure,
    figure_cell,
    grid,
    interval,
    num,
    paragraph,
    percent,
    prose,
    table,
    text,
    why_not,
)
from relwalk.theory.calibration import Calibration, Reliability
from relwalk.theory.concentration import Concentration
from relwalk.theory.estimate import Absent
from relwalk.theory.lemma import Shrinkage


def concentration(f: Facts) -> str:
    """Histograms of Z_c and Z_c', and how their spread falls with the number of entities."""
    if isinstance(f.partitions, Absent):
        return absent(f.partitions.reason)
    spread = f.analysis.parts.get("concentration")
    note = paragraph(prose(spread.note), "note") if isinstance(spread, Concentration) else ""
    return grid([*(_partition(f, p) for p in f.partitions), _lemma(f)]) + note


def _partition(f: Facts, p: Partition) -> str:
    name = f.graph.relations.label(p.relation)
    # One far direction would flatten all others into a single bar: it is said in words instead.
    cut = float(np.quantile(np.concatenate([p.head, p.tail]), 0.995)) * 1.2
    inside = [z[z <= cut] for z in (p.head, p.tail)]
    beyond = len(p.head) + len(p.tail) - sum(map(len, inside))
    drawing = histogram(inside, ["heads, Z", "tails, Z′"], ["a", "b"], "Z / mean of Z", f"Z of {name}")
    within = float((np.abs(p.head - 1) <= 0.1).mean())
    words = (
        f"<em>{text(name)}</em>: over {count(len(p.head))} random directions σ/mean is {num(float(p.head.std()))} for "
        f"Z<sub>c</sub> and {num(float(p.tail.std()))} for Z<sub>c</sub>′; {percent(within)} of Z<sub>c</sub> lie "
        f"within 10% of their mean, which the theory takes to be all."
    )
    if beyond:
        words += f" {count(beyond)} values up to {num(float(max(p.head.max(), p.tail.max())), 1)} lie off the chart."
    return figure(drawing, words)


def _lemma(f: Facts) -> str:
    found = f.analysis.parts.get("lemma")
    if not isinstance(found, Shrinkage):
        return absent(why_not(found))
    sizes, eps = np.array(found.sizes, float), np.array(found.eps, float)
    law = eps[0] * np.sqrt(sizes[0] / sizes)
    low, high = min(eps.min(), law.min()) * 0.8, max(eps.max(), law.max()) * 1.25
    plot = Plot(
        (sizes[0] * 0.85, sizes[-1] * 1.2),
        (low, high),
        "entities summed",
        "σ / mean of Z",
        "Spread against n",
        log_x=True,
        log_y=True,
    )
    plot.line(sizes, law, "c dashed", name="the lemma: 1/√n")
    plot.line(sizes, eps, "a", dots=True, name="measured")
    verdict = "which agrees with the lemma's −1/2" if found.agrees else "which is not the lemma's −1/2"
    words = (
        f"The spread of Z against the number of entities: exponent {interval(found.exponent)}, {verdict}. Over all "
        f"directions and entities it is {num(found.exact_of_all)}, and {num(found.floor)} would remain for any number."
    )
    return figure(plot.svg(), words)


def calibration(f: Facts) -> str:
    """Reliability diagrams before and after what valid teaches."""
    found = f.analysis.parts.get("calibration")
    if not isinstance(found, Calibration):
        return absent(why_not(found))
    before = found.methods[0]
    side = "too sure" if before.confidence > before.accuracy else "too modest"
    lead = (
        f"Asked {count(found.queries['test'])} test questions, the model gives its first answer a confidence of "
        f"{percent(before.confidence, 1)} on average and is right in {percent(before.accuracy, 1)}: it is {side}."
    )
    if found.temperature is not None:
        lead += f" A temperature of {num(found.temperature, 2)}, fitted on valid, was then applied to test."
    rows = [
        [
            Cell(text(m.name), left=True),
            Cell(interval(m.ece, 3), m.ece.value),
            *(figure_cell(x) for x in (m.chance, m.confidence, m.accuracy, m.nll)),
        ]
        for m in found.methods
    ]
    heads = ["Confidence", "ECE, 95%", "ECE by chance", "confidence", "accuracy", "−log p"]
    note = (paragraph(text(found.note), "note") if found.note else "") + paragraph(
        "ECE by chance is what a perfectly calibrated model would show on as many questions.", "note"
    )
    return paragraph(lead) + grid([_reliability(m) for m in found.methods], "three") + table(heads, rows) + note


def _reliability(m: Reliability) -> str:
    bins = [b for b in m.bins if b.count and b.confidence is not None and b.accuracy is not None]
    total, most = (max([1, *counts]) for counts in ([sum(b.count for b in bins)], [b.count for b in bins]))
    plot = Plot((0, 1), (0, 1), "confidence", "accuracy", f"Reliability, {m.name}", width=340, height=270)
    for b in bins:
        words = f"confidence {b.low:.2f} to {b.high:.2f}: {b.count:,} questions, {b.accuracy:.1%} right"
        plot.bar(b.low, b.high, b.accuracy or 0.0, "fill a", words, weight=0.2 + 0.8 * (b.count / most) ** 0.5)
    plot.line([0, 1], [0, 1], "c dashed")
    for b in bins:
        plot.dots([b.confidence or 0.0], [b.accuracy or 0.0], "b", radius=2 + 6 * (b.count / total) ** 0.5)
    near = (
        "no farther from the line than chance"
        if m.ece.value <= 1.5 * m.chance
        else f"chance would give {num(m.chance)}"
    )
    caption = f"<strong>{text(m.name)}</strong>: ECE {num(m.ece.value)}, {near}. Dots grow with the questions in a bin."
    return figure(plot.svg(), caption)
