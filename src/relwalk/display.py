"""How results show themselves: one line as `repr`, a table in a notebook. Every name is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

WIDEST = 120  # characters of a `repr`


class Shown:
    """A result that prints itself (`str`). A dataclass of this kind says `repr=False`, to keep the short one."""

    def summary(self) -> str:
        """What was found, in a few words."""
        return str(self).splitlines()[-1]

    def __repr__(self) -> str:
        return f"<{one_line(f'{type(self).__name__} {self.summary()}', WIDEST - 2)}>"

    def _repr_html_(self) -> str:
        return preformatted(str(self))


def one_line(text: str, width: int) -> str:
    """Text on one line, in so many characters at most, without any that a terminal would obey."""
    plain = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return plain if len(plain) <= width else plain[: width - 1] + "…"


def caption(text: str) -> str:
    return f"<div>{escape(text)}</div>"


def preformatted(text: str) -> str:
    return f"<pre>{escape(text)}</pre>"


def folded(title: str, text: str) -> str:
    """A title that opens to show a text."""
    return f"<details><summary>{escape(title)}</summary>{preformatted(text)}</details>"


def html_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table; its first column is text, the others are figures."""
    body = "".join(f"<tr>{_cells('td', row)}</tr>" for row in rows)
    return f"<table><thead><tr>{_cells('th', head)}</tr></thead><tbody>{body}</tbody></table>"


def _cells(tag: str, values: Sequence[object]) -> str:
    sides = ["left", *["right"] * (len(values) - 1)]
    return "".join(
        f'<{tag} style="text-align:{side}">{escape(str(value))}</{tag}>'
        for side, value in zip(sides, values, strict=True)
    )
