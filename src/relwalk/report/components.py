"""The section about the paper's Figure 2: accuracy over the number of components that are kept of each relation."""

from __future__ import annotations

from markupsafe import Markup

from relwalk.compression.curve import Curve
from relwalk.evaluation.estimate import Absent
from relwalk.report.charts import Plot
from relwalk.report.facts import Facts
from relwalk.report.html import absent, count, figure, num, phrase, text

# A drawing by itself has no page to take its colours from.
STYLE = """
svg { font: 12px system-ui, sans-serif; background: #fff; }
.line { fill: none; stroke-width: 2; } .rule { stroke: #e4e2dc; } .axis { stroke: #8d949b; }
.line.a { stroke: #0d7d74; } .line.b { stroke: #c96f0a; } .line.role2 { stroke: #4c63b6; }
.dot.a { fill: #0d7d74; } .dot.b { fill: #c96f0a; } .dot.role2 { fill: #4c63b6; } text { fill: #1d2125; }
"""
KINDS = ("a", "b", "role2")


def components(f: Facts) -> Markup:
    """MRR over K by each method, and what the paper says of it."""
    if isinstance(f.curve, Absent):
        return absent(f.curve.reason)
    words = phrase(
        "MRR of {} {} queries over all entities when each relation keeps K of its {} components; all of them give {}. "
        "{}.",
        count(f.curve.queries),
        f.curve.split,
        f.curve.dim,
        num(f.curve.mrr),
        "; ".join(f.curve.claims()),
    )
    return figure(curve_plot(f.curve).svg(), words)


def curve_plot(curve: Curve) -> Plot:
    """MRR over K, one line for each method."""
    top = max(curve.mrr, *(point.mrr for point in curve.points))
    plot = Plot((0, curve.dim), (0, 1.08 * top or 1.0), "components K", "MRR", f"MRR over K on {text(curve.graph)}")
    for kind, (name, points) in zip(KINDS, curve.series.items(), strict=False):
        plot.line([p.rank for p in points], [p.mrr for p in points], kind, dots=True, name=name)
    return plot


def curve_svg(curve: Curve) -> str:
    """The drawing as a file of its own, its lines named at their starts."""
    plot = curve_plot(curve)
    for place, (kind, name) in enumerate(plot.names):
        y = plot.y[1] * (0.45 - 0.08 * place)
        plot.dots([0.72 * curve.dim], [y], kind, radius=4)
        plot.word(0.745 * curve.dim, y, name, up=-4)
    drawing = plot.svg()
    start = drawing.index("<svg ") + len("<svg ")
    return f'<svg xmlns="http://www.w3.org/2000/svg" {drawing[start:]}'.replace(">", f"><style>{STYLE}</style>", 1)
