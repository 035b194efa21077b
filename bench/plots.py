"""Plots of results.json: an epoch of training, ranking, growth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import growth
import matplotlib
from machine import in_words
from process import Row

matplotlib.use("Agg")
import matplotlib.pyplot as plt

COLOURS = {"ours": "#1f6f8b", "pykeen": "#d98c3f", "torchkge": "#8a8a8a"}
NAMES = {"ours": "relwalk", "pykeen": "PyKEEN", "torchkge": "TorchKGE"}


def draw(found: Row, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    where = f"{in_words(found['machine'])}, {found['threads']} threads"
    bars(found["training"], "epoch_seconds", f"Seconds an epoch of training, d = 100\n{where}", folder / "training.png")
    bars(
        found["ranking"], "seconds", f"Seconds to rank the filtered test set, d = 100\n{where}", folder / "ranking.png"
    )
    if "growth" in found:
        lines(found["growth"], f"Growth of relwalk's cost\n{where}", folder / "growth.png")


def bars(graphs: Row, key: str, title: str, path: Path) -> None:
    """A group of bars for each graph, the spread as a whisker; the scale is logarithmic."""
    figure, axes = plt.subplots(figsize=(6.4, 3.6))
    sides = [side for side in NAMES if any(key in rows.get(side, {}) for rows in graphs.values())]
    if not sides:
        plt.close(figure)
        return
    width = 0.8 / len(sides)
    for place, side in enumerate(sides):
        for group, rows in enumerate(graphs.values()):
            row = rows.get(side, {})
            if key not in row:
                continue
            low, high = row["spread"]
            whisker = [[row[key] - low], [high - row[key]]]
            at, label = group + (place - (len(sides) - 1) / 2) * width, NAMES[side] if group == 0 else None
            axes.bar(at, row[key], width * 0.92, yerr=whisker, color=COLOURS[side], label=label, capsize=3)
            axes.annotate(f"{row[key]:.3g}", (at, high), (0, 3), textcoords="offset points", ha="center", fontsize=8)
    axes.set_yscale("log")
    axes.set_xticks(range(len(graphs)), list(graphs))
    axes.set_ylabel("seconds")
    axes.margins(y=0.15)
    axes.legend(frameon=False, fontsize=8)
    save(figure, title, path)


def lines(part: Row, title: str, path: Path) -> None:
    """One panel for each size that grows, all costs relative to the smallest point."""
    figure, panels = plt.subplots(1, len(growth.SWEEPS), figsize=(9.6, 3.4), sharey=True)
    labels = {"step_seconds": "step", "query_seconds": "query", "training_mb": "memory, training"}
    for axes, sweep in zip(panels, growth.SWEEPS, strict=True):
        good = [row for row in part["points"] if row["sweep"] in ("base", sweep) and "error" not in row]
        for cost, label in labels.items():
            rows = [row for row in good if row[cost] > 0]
            if len(rows) < 2:
                continue
            slope = part["exponents"][sweep][cost]
            values = [row[cost] / rows[0][cost] for row in rows]
            axes.plot([row[sweep] for row in rows], values, "o-", markersize=4, label=f"{label}: {slope}")
        axes.set_xscale("log")
        axes.set_xticks(
            growth.SWEEPS[sweep], [f"{size:g}" if size < 10_000 else f"{size:.0e}" for size in growth.SWEEPS[sweep]]
        )
        axes.minorticks_off()
        axes.set_yscale("log")
        axes.set_xlabel({"dim": "d"}.get(sweep, sweep))
        if axes.lines:
            axes.legend(frameon=False, fontsize=7, title="fitted exponent", title_fontsize=7)
    panels[0].set_ylabel("times the smallest")
    save(figure, title, path)


def save(figure: Any, title: str, path: Path) -> None:
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(True, axis="y", alpha=0.25)
    figure.suptitle(title, fontsize=10)
    figure.tight_layout()
    figure.savefig(path, dpi=90, metadata={"Software": None})
    plt.close(figure)
