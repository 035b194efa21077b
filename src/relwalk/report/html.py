"""Words and numbers as HTML: every name escaped, never a NaN, a dash where there is no figure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from relwalk.theory.estimate import Absent, Estimate

DASH = '<span class="none">–</span>'
_MINUS = "\N{MINUS SIGN}"


def text(value: object) -> str:
    """Anything as text between tags or in a quoted attribute."""
    return escape(str(value), quote=True)


def prose(words: str) -> str:
    """A sentence of the analysis, with its symbols as they are printed."""
    found = text(words)
    for plain, printed in (("nu_R", "ν<sub>R</sub>"), ("Z_c", "Z<sub>c</sub>"), ("sigma", "σ")):
        found = found.replace(plain, printed)
    return found


def known(x: float | None) -> bool:
    return x is not None and math.isfinite(x)


def num(x: float | None, digits: int = 3) -> str:
    """A figure with so many decimals; very large and very small ones as a power of ten."""
    if x is None or not math.isfinite(x):
        return DASH
    size = abs(x)
    if size and (size >= 1e6 or size < 0.5 * 10.0**-digits):
        mantissa, exponent = f"{x:.1e}".split("e")
        return f"{mantissa}×10<sup>{int(exponent)}</sup>".replace("-", _MINUS)
    return f"{x:,.{0 if size >= 1000 else min(digits, 1) if size >= 100 else digits}f}".replace("-", _MINUS)


def count(n: int) -> str:
    return f"{n:,}"


def percent(x: float | None, digits: int = 0) -> str:
    if x is None or not math.isfinite(x):
        return DASH
    least = 10.0**-digits
    return f"&lt;{least:g}%" if 0 < 100 * x < least / 2 else f"{100 * x:.{digits}f}%"


def rate(x: float | None) -> str:
    """A share or a reciprocal rank: three decimals, and no power of ten for a small one."""
    return "&lt;0.001" if x is not None and 0 < x < 0.0005 else num(x)


def interval(e: Estimate | None, digits: int = 2) -> str:
    if e is None or not all(map(math.isfinite, (e.value, e.low, e.high))):
        return DASH
    return f'{num(e.value, digits)} <span class="range">{num(e.low, digits)} to {num(e.high, digits)}</span>'


@dataclass(frozen=True)
class Cell:
    """What a table cell shows, and what it sorts by. `bar` is a share drawn behind the figure."""

    shown: str
    key: float | str | None = None
    bar: float | None = None
    left: bool = False

    def html(self) -> str:
        value = "" if self.key is None else f' data-value="{text(self.key)}"'
        style = "" if self.bar is None else f' style="--share:{min(1.0, max(0.0, self.bar)):.3f}"'
        names = " ".join(n for n, on in (("name", self.left), ("bar", self.bar is not None)) if on)
        return f"<td{f' class={chr(34)}{names}{chr(34)}' if names else ''}{value}{style}>{self.shown}</td>"


def name_cell(name: str) -> Cell:
    return Cell(f"<span>{text(name)}</span>", name.casefold(), left=True)


def figure_cell(x: float | None, digits: int = 3, bar: float | None = None) -> Cell:
    return Cell(num(x, digits), x if known(x) else None, bar if known(bar) else None)


def table(
    head: Sequence[str], rows: Iterable[Sequence[Cell]], *, sorts: bool = False, foot: Iterable[Sequence[Cell]] = ()
) -> str:
    """A table that scrolls inside its own frame. The heads are HTML."""
    rows = list(rows)
    left = [cell.left for cell in rows[0]] if rows else []
    heads = "".join(
        f'<th scope="col"{" class=name" if i < len(left) and left[i] else ""}{" aria-sort=none" if sorts else ""}>'
        + (f'<button type="button">{h}</button></th>' if sorts else f"{h}</th>")
        for i, h in enumerate(head)
    )
    body, last = ("".join(f"<tr>{''.join(cell.html() for cell in row)}</tr>" for row in part) for part in (rows, foot))
    kind = "sorts" if sorts else "plain"
    below = f"<tfoot>{last}</tfoot>" if last else ""
    return (
        f'<div class="scroll" tabindex="0"><table class="{kind}"><thead><tr>{heads}</tr></thead>'
        f"<tbody>{body}</tbody>{below}</table></div>"
    )


def figure(drawing: str, caption: str, *, kind: str = "") -> str:
    """A drawing with a sentence that says what it shows and what to conclude. Both are HTML."""
    return f'<figure class="{kind}">{drawing}<figcaption>{caption}</figcaption></figure>'


def grid(parts: Iterable[str], kind: str = "two") -> str:
    return f'<div class="grid {kind}">{"".join(parts)}</div>'


def paragraph(words: str, kind: str = "") -> str:
    return f'<p class="{kind}">{words}</p>' if kind else f"<p>{words}</p>"


def facts(pairs: Mapping[str, str]) -> str:
    """Terms and their values; the values are HTML."""
    return f"<dl>{''.join(f'<div><dt>{text(k)}</dt><dd>{v}</dd></div>' for k, v in pairs.items())}</dl>"


def why_not(part: object) -> str:
    """Why a part of the analysis is not there: it does not apply, or was not asked for."""
    return part.reason if isinstance(part, Absent) else "the analysis was made without this part."


def absent(reason: str) -> str:
    """A muted card in place of what does not apply."""
    return f'<div class="absent"><strong>Not shown.</strong> {prose(reason[:1].upper() + reason[1:])}</div>'
