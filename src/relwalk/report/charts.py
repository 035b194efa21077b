"""Small charts as SVG. Colours are classes of the page's style, so one drawing serves light and dark."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from relwalk.report.html import text

Numbers = Sequence[float] | NDArray[np.floating]
WIDTH, HEIGHT = 440, 280
RIGHT, TOP, BOTTOM = 14, 14, 44  # of the frame; the left side is as wide as its ticks need
LETTER = 6.6  # pixels of a digit


@dataclass(frozen=True)
class Scale:
    """Numbers to pixels, linear or logarithmic."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, x: float) -> float:
        low, high = self._map(self.low), self._map(self.high)
        share = (self._map(x) - low) / (high - low) if high > low else 0.5
        return self.start + share * (self.end - self.start)

    def _map(self, x: float) -> float:
        return math.log10(max(x, 1e-300)) if self.log else x

    def ticks(self, about: int = 5) -> list[float]:
        if self.log:
            return log_ticks(self.low, self.high)
        return nice_ticks(self.low, self.high, about)


def nice_ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten within the range."""
    if not high > low:
        return [low]
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = min((power * m for m in (1, 2, 5, 10)), key=lambda s: abs(math.log(s / rough)))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(k * step, 12) + 0.0 for k in range(first, last + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten; their 1-2-5 multiples where there would be fewer than three."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for steps in ((1,), (1, 3), (1, 2, 5)):
        found = [m * 10.0**k for k in range(first, last + 1) for m in steps]
        found = [x for x in found if low * (1 - 1e-9) <= x <= high * (1 + 1e-9)]
        if len(found) >= 3:
            break
    return found[:: math.ceil(len(found) / 7)] if found else [low, high]


def padded(values: Numbers, share: float = 0.05) -> tuple[float, float]:
    """A range around all values, wider than a point."""
    low, high = float(np.min(values)), float(np.max(values))
    gap = (high - low) * share or abs(high) * share or 1.0
    return low - gap, high + gap


@dataclass
class Plot:
    """Axes, and marks added one after the other."""

    x: tuple[float, float]
    y: tuple[float, float]
    x_label: str
    y_label: str
    title: str  # for those who cannot see it
    log_x: bool = False
    log_y: bool = False
    width: int = WIDTH
    height: int = HEIGHT
    marks: list[str] = field(default_factory=list)
    names: list[tuple[str, str]] = field(default_factory=list)  # class, words: the legend

    def __post_init__(self) -> None:
        self.up = Scale(*self.y, self.height - BOTTOM, TOP, self.log_y)
        ticks = self.up.ticks()
        self.left = round(30 + LETTER * max(len(tick_text(t, ticks)) for t in ticks))
        self.across = Scale(*self.x, self.left, self.width - RIGHT, self.log_x)

    def at(self, x: float, y: float) -> str:
        return f"{self.across(x):.1f},{self.up(y):.1f}"

    def line(self, xs: Numbers, ys: Numbers, kind: str, *, dots: bool = False, name: str = "") -> None:
        points = " ".join(self.at(float(x), float(y)) for x, y in zip(xs, ys, strict=True))
        self.marks.append(f'<polyline class="line {kind}" points="{points}"/>')
        if dots:
            self.dots(xs, ys, kind, radius=3)
        if name:
            self.names.append((kind, name))

    def dots(
        self, xs: Numbers, ys: Numbers, kind: str, *, radius: float = 2.5, titles: Sequence[str] = (), name: str = ""
    ) -> None:
        for i, (x, y) in enumerate(zip(xs, ys, strict=True)):
            cx, cy = self.at(float(x), float(y)).split(",")
            words = f"<title>{text(titles[i])}</title>" if titles else ""
            self.marks.append(f'<circle class="dot {kind}" cx="{cx}" cy="{cy}" r="{radius:g}">{words}</circle>')
        if name:
            self.names.append((kind, name))

    def bar(self, left: float, right: float, y: float, kind: str, title: str = "", *, weight: float = 1.0) -> None:
        x0, x1, top = self.across(left), self.across(right), self.up(y)
        base = self.up(self.y[0])
        words = f"<title>{text(title)}</title>" if title else ""
        shade = f' opacity="{weight:.2f}"' if weight < 1 else ""
        self.marks.append(
            f'<rect class="{kind}"{shade} x="{x0:.1f}" y="{top:.1f}" width="{max(0.5, x1 - x0 - 0.6):.1f}" '
            f'height="{max(0.0, base - top):.1f}">{words}</rect>'
        )

    def word(self, x: float, y: float, words: str, *, anchor: str = "start", up: float = 6) -> None:
        place = f'x="{self.across(x):.1f}" y="{self.up(y) - up:.1f}"'
        self.marks.append(f'<text class="word" {place} text-anchor="{anchor}">{text(words)}</text>')

    def svg(self) -> Markup:
        legend = ""
        if len(self.names) > 1:
            keys = "".join(f'<span><i class="{kind}"></i>{text(name)}</span>' for kind, name in self.names)
            legend = f'<div class="legend">{keys}</div>'
        frame = [*self._x_axis(), *self._y_axis()]
        return Markup(
            f'{legend}<svg viewBox="0 0 {self.width} {self.height}" role="img" aria-label="{text(self.title)}">'
            f"{''.join(frame)}{''.join(self.marks)}</svg>"
        )

    def _x_axis(self) -> list[str]:
        base = self.height - BOTTOM
        ticks = self.across.ticks()
        parts = [f'<line class="axis" x1="{self.left}" x2="{self.width - RIGHT}" y1="{base}" y2="{base}"/>']
        parts += [
            f'<text class="tick" x="{self.across(t):.1f}" y="{base + 16}" text-anchor="middle">{tick_text(t, ticks)}'
            "</text>"
            for t in ticks
        ]
        middle = (self.left + self.width - RIGHT) / 2
        words = f'<text class="label" x="{middle:g}" y="{self.height - 8}" text-anchor="middle">{self.x_label}</text>'
        return [*parts, words]

    def _y_axis(self) -> list[str]:
        ticks, parts = self.up.ticks(), []
        for t in ticks:
            y = self.up(t)
            parts.append(f'<line class="rule" x1="{self.left}" x2="{self.width - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
            parts.append(
                f'<text class="tick" x="{self.left - 8}" y="{y + 4:.1f}" text-anchor="end">{tick_text(t, ticks)}</text>'
            )
        middle = (TOP + self.height - BOTTOM) / 2
        turn = f'transform="rotate(-90 13 {middle:g})"'
        return [*parts, f'<text class="label" x="13" y="{middle:g}" text-anchor="middle" {turn}>{self.y_label}</text>']


def tick_text(t: float, ticks: Sequence[float]) -> str:
    """As many decimals as the ticks need to differ."""
    size = max(abs(x) for x in ticks)
    if size >= 1e5 or (size and size < 1e-3):
        return f"{t:.0e}".replace("e+0", "e").replace("e-0", "e−").replace("e+", "e") if t else "0"
    step = min((abs(b - a) for a, b in pairwise(ticks)), default=abs(t) or 1)
    digits = max(0, -math.floor(math.log10(step) + 1e-9)) if step else 0
    return f"{t:,.{min(digits, 6)}f}".replace("-", "\N{MINUS SIGN}")


def histogram(
    values: Sequence[Numbers], names: Sequence[str], kinds: Sequence[str], x_label: str, title: str, *, bins: int = 36
) -> Markup:
    """Shares of values in equal bins, one set as bars and the others as outlines on top of it."""
    every = np.concatenate([np.asarray(v, np.float64) for v in values])
    low, high = padded(every, 0.02)
    edges = np.linspace(low, high, bins + 1)
    shares = [np.histogram(v, edges)[0] / max(1, len(v)) for v in values]
    plot = Plot((low, high), (0, float(max(s.max() for s in shares)) * 1.06), x_label, "share of directions", title)
    for number, (share, name, kind) in enumerate(zip(shares, names, kinds, strict=True)):
        if number == 0:
            for left, right, y in zip(edges[:-1], edges[1:], share, strict=True):
                if y:
                    plot.bar(left, right, y, f"fill {kind}", f"{left:.4g} to {right:.4g}: {y:.1%}")
            plot.names.append((kind, name))
        else:
            steps = [(x, y) for i, y in enumerate(share) for x in (edges[i], edges[i + 1])]
            plot.line([x for x, _ in steps], [y for _, y in steps], kind, name=name)
    return plot.svg()


def dial(angles: Numbers, title: str) -> Markup:
    """Eigenvalues on the unit circle, from their angles in degrees (0 to 180; conjugate pairs twice)."""
    size, radius = 150, 58
    middle = size / 2
    turned = np.radians(np.asarray(angles, np.float64))
    signs = np.where(np.arange(len(turned)) % 2, -1.0, 1.0)  # of each pair one above, one below
    dots = "".join(
        f'<circle class="dot a" r="2.6" cx="{middle + radius * math.cos(a):.1f}" '
        f'cy="{middle - s * radius * math.sin(a):.1f}"/>'
        for a, s in zip(turned.tolist(), signs.tolist(), strict=True)
    )
    return Markup(
        f'<svg class="dial" viewBox="0 0 {size} {size}" role="img" aria-label="{text(title)}">'
        f'<circle class="ring" cx="{middle:g}" cy="{middle:g}" r="{radius}"/>'
        f'<line class="rule" x1="8" x2="{size - 8}" y1="{middle:g}" y2="{middle:g}"/>'
        f'<text class="tick" x="{middle + radius - 8:g}" y="{middle - 4:g}" text-anchor="end">0°</text>'
        f'<text class="tick" x="{middle - radius + 8:g}" y="{middle - 4:g}">180°</text>{dots}</svg>'
    )
