"""Words and numbers as HTML, by the templates beside this file: Jinja2 escapes every value that is not Markup.

Never a NaN: a dash where there is no figure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from relwalk import __version__
from relwalk.evaluation.estimate import Absent, Estimate

# Nothing but what the file itself holds: should a name ever slip through unescaped, it could not call out.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"

DASH = Markup('<span class="none">–</span>')
_MINUS = "\N{MINUS SIGN}"


def text(value: object) -> str:
    """Anything as text between tags or in a quoted attribute."""
    return str(escape(str(value)))


def phrase(template: str, *values: object) -> Markup:
    """A sentence with values in the place of each {}; they are escaped, unless they are Markup."""
    return Markup(template).format(*values)


def joined(parts: Iterable[str], between: str = "") -> Markup:
    return Markup(between).join(parts)


def prose(sentence: str) -> Markup:
    """A sentence of the analysis, with its symbols as they are printed."""
    found = text(sentence)
    for plain, printed in (("nu_R", "ν<sub>R</sub>"), ("Z_c", "Z<sub>c</sub>"), ("sigma", "σ")):
        found = found.replace(plain, printed)
    return Markup(found)


def known(x: float | None) -> bool:
    return x is not None and math.isfinite(x)


def num(x: float | None, digits: int = 3) -> Markup:
    """A figure with so many decimals; very large and very small ones as a power of ten."""
    if x is None or not math.isfinite(x):
        return DASH
    size = abs(x)
    if size and (size >= 1e6 or size < 0.5 * 10.0**-digits):
        mantissa, exponent = f"{x:.1e}".split("e")
        return Markup(f"{mantissa}×10<sup>{int(exponent)}</sup>".replace("-", _MINUS))
    decimals = 0 if size >= 1000 else min(digits, 1) if size >= 100 else digits
    return Markup(f"{x:,.{decimals}f}".replace("-", _MINUS))


def count(n: int) -> str:
    return f"{n:,}"


def percent(x: float | None, digits: int = 0) -> Markup:
    if x is None or not math.isfinite(x):
        return DASH
    least = 10.0**-digits
    return escape(f"<{least:g}%" if 0 < 100 * x < least / 2 else f"{100 * x:.{digits}f}%")


def rate(x: float | None) -> Markup:
    """A share or a reciprocal rank: three decimals, and no power of ten for a small one."""
    return escape("<0.001") if x is not None and 0 < x < 0.0005 else num(x)


def interval(e: Estimate | None, digits: int = 2) -> Markup:
    if e is None or not all(map(math.isfinite, (e.value, e.low, e.high))):
        return DASH
    return phrase('{} <span class="range">{} to {}</span>', *(num(x, digits) for x in (e.value, e.low, e.high)))


PAGES = Environment(
    loader=PackageLoader("relwalk.report"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
PAGES.filters |= {"num": num, "percent": percent, "count": count}
_PARTS: Any = PAGES.get_template("parts.html").module


def part(name: str, *values: object) -> Markup:
    """A macro of parts.html, filled in."""
    return Markup(getattr(_PARTS, name)(*values))


def whole_page(template: str, **values: Any) -> str:
    """A page in one file, with its style and script; `template` extends frame.html."""
    style, script = (Markup(files("relwalk.report").joinpath(n).read_text("utf-8")) for n in ("style.css", "script.js"))
    shared = {"policy": POLICY, "style": style, "script": script, "version": __version__}
    return PAGES.get_template(template).render(**shared, **values)


@dataclass(frozen=True)
class Cell:
    """What a table cell shows, and what it sorts by. `bar` is a share drawn behind the figure."""

    shown: str
    key: float | str | None = None
    bar: float | None = None
    left: bool = False

    @property
    def kinds(self) -> str:
        """The classes of the cell."""
        return " ".join(name for name, on in (("name", self.left), ("bar", self.bar is not None)) if on)

    @property
    def share(self) -> float:
        return min(1.0, max(0.0, self.bar or 0.0))


def name_cell(name: str) -> Cell:
    return Cell(phrase("<span>{}</span>", name), name.casefold(), left=True)


def figure_cell(x: float | None, digits: int = 3, bar: float | None = None) -> Cell:
    return Cell(num(x, digits), x if known(x) else None, bar if known(bar) else None)


def table(
    head: Sequence[str], rows: Iterable[Sequence[Cell]], *, sorts: bool = False, foot: Iterable[Sequence[Cell]] = ()
) -> Markup:
    """A table that scrolls inside its own frame."""
    rows = list(rows)
    left = [cell.left for cell in rows[0]] if rows else []
    heads = [(name, i < len(left) and left[i]) for i, name in enumerate(head)]
    return part("table", heads, rows, list(foot), sorts)


def figure(drawing: str, caption: str, *, kind: str = "") -> Markup:
    """A drawing with a sentence that says what it shows and what to conclude."""
    return part("figure", drawing, caption, kind)


def grid(parts: Iterable[str], kind: str = "two") -> Markup:
    return part("grid", list(parts), kind)


def paragraph(sentence: str, kind: str = "") -> Markup:
    return part("paragraph", sentence, kind)


def title(name: str) -> Markup:
    return part("title", name)


def panel(name: str, pairs: Mapping[str, str]) -> Markup:
    """Terms and their values in a frame."""
    return part("panel", name, pairs)


def why_not(found: object) -> str:
    """Why a part of the analysis is not there: it does not apply, or was not asked for."""
    return found.reason if isinstance(found, Absent) else "the analysis was made without this part."


def absent(reason: str) -> Markup:
    """A muted card in place of what does not apply."""
    return part("absent", prose(reason[:1].upper() + reason[1:]))
