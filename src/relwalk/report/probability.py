"""The sections about probability: does Z concentrate, does the theorem hold, is a confidence of 0.7 right in 70%?"""

from __future__ import annotations

import numpy as np
from markupsafe import Markup

from relwalk.evaluation.calibration import Calibration, Reliability
from relwalk.evaluation.estimate import Absent
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
    phrase,
    prose,
    table,
    why_not,
)
from relwalk.theory.concentration import Concentration
from relwalk.theory.lemma import Shrinkage


def concentration(f: Facts) -> Markup:
    """Histograms of Z_c and Z_c', and how their spread falls with the number of entities."""
    if isinstance(f.partitions, Absent):
        return absent(f.partitions.reason)
    spread = f.analysis.parts.get("concentration")
    note = paragraph(prose(spread.note), "note") if isinstance(spread, Concentration) else Markup()
    return grid([*(_partition(f, p) for p in f.partitions), _lemma(f)]) + note


def _partition(f: Facts, p: Partition) -> Markup:
    name = f.graph.relations.label(p.relation)
    # One far direction would flatten all others into a single bar: it is said in words instead.
    cut = float(np.quantile(np.concatenate([p.head, p.tail]), 0.995)) * 1.2
    inside = [z[z <= cut] for z in (p.head, p.tail)]
    beyond = len(p.head) + len(p.tail) - sum(map(len, inside))
    drawing = histogram(inside, ["heads, Z", "tails, Z′"], ["a", "b"], "Z / mean of Z", f"Z of {name}")
    within = float((np.abs(p.head - 1) <= 0.1).mean())
    words = phrase(
        "<em>{}</em>: over {} random directions σ/mean is {} for Z<sub>c</sub> and {} for Z<sub>c</sub>′; {} of "
        "Z<sub>c</sub> lie within 10% of their mean, which the theory takes to be all.",
        name,
        count(len(p.head)),
        num(float(p.head.std())),
        num(float(p.tail.std())),
        percent(within),
    )
    if beyond:
        largest = num(float(max(p.head.max(), p.tail.max())), 1)
        words += phrase(" {} values up to {} lie off the chart.", count(beyond), largest)
    return figure(drawing, words)


def _lemma(f: Facts) -> Markup:
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
    words = phrase(
        "The spread of Z against the number of entities: exponent {}, {}. Over all directions and entities it is {}, "
        "and {} would remain for any number.",
        interval(found.exponent),
        verdict,
        num(found.exact_of_all),
        num(found.floor),
    )
    return figure(plot.svg(), words)


def calibration(f: Facts) -> Markup:
    """Reliability diagrams of the model as it is, and as fitted on valid."""
    found = f.analysis.parts.get("calibration")
    if not isinstance(found, Calibration):
        return absent(why_not(found))
    before = found.methods[0]
    side = "too sure" if before.confidence > before.accuracy else "too modest"
    lead = phrase(
        "Asked {} test questions, the model gives its first answer a confidence of {} on average and is right in {}: "
        "it is {}.",
        count(found.queries["test"]),
        percent(before.confidence, 1),
        percent(before.accuracy, 1),
        side,
    )
    if found.methods[-1].name == "as fitted":
        after = found.methods[-1]
        lead += phrase(
            " As fitted on valid when training ended, which is what <code>predict</code> calls <em>share</em>, it says "
            "{}, and its expected calibration error is {} in place of {}.",
            percent(after.confidence, 1),
            num(after.ece.value, 3),
            num(before.ece.value, 3),
        )
    elif f.run.uncalibrated is not None:
        lead += phrase(" The run is not calibrated: {}.", f.run.uncalibrated)
    if found.temperature is not None:
        fitted = num(found.temperature, 2)
        lead += phrase(" A temperature of {}, fitted on valid, was then applied to test.", fitted)
    rows = [
        [
            Cell(m.name, left=True),
            Cell(interval(m.ece, 3), m.ece.value),
            *(figure_cell(x) for x in (m.chance, m.confidence, m.accuracy, m.nll)),
        ]
        for m in found.methods
    ]
    heads = ["Confidence", "ECE, 95%", "ECE by chance", "confidence", "accuracy", "−log p"]
    note = (paragraph(found.note or "", "note") if found.note else Markup()) + paragraph(
        "ECE by chance is what a perfectly calibrated model would show on as many questions.", "note"
    )
    return paragraph(lead) + grid([_reliability(m) for m in found.methods], "three") + table(heads, rows) + note


def _reliability(m: Reliability) -> Markup:
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
        else phrase("chance would give {}", num(m.chance))
    )
    caption = phrase(
        "<strong>{}</strong>: ECE {}, {}. Dots grow with the questions in a bin.", m.name, num(m.ece.value), near
    )
    return figure(plot.svg(), caption)
