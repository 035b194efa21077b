"""What discoveries have in common: rows as a frame, as text, and as a file for other tools."""

from __future__ import annotations

import io
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import IO, Any, NamedTuple

import polars as pl

from relwalk.display import Shown, caption, html_table
from relwalk.graph.graph import Graph
from relwalk.graph.lists import Ints

PRINTED = 100  # rows


class Column(NamedTuple):
    """A column as it is printed: its heading, the column of the frame, and how a number of it is written."""

    heading: str
    name: str
    form: str = "{}"


class Tabular(Shown):
    """A result of many rows: a frame, the first rows of it as text, and remarks below."""

    @abstractmethod
    def frame(self) -> pl.DataFrame:
        """All rows."""

    @abstractmethod
    def columns(self) -> tuple[Column, ...]:
        """The columns that are printed."""

    @abstractmethod
    def title(self) -> str:
        """What was found, in a line."""

    @abstractmethod
    def remarks(self) -> tuple[str, ...]:
        """What a reader of the figures has to know."""

    def summary(self) -> str:
        return self.title()

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        columns, frame = self.columns(), self.frame().head(PRINTED)
        rows = frame.select([column.name for column in columns]).rows()
        cells = [[_cell(c.form, value) for c, value in zip(columns, row, strict=True)] for row in rows]
        return [column.heading for column in columns], cells

    def _rest(self) -> list[str]:
        left = self.frame().height - PRINTED
        more = [f"and {left:,} more: --out has all of them, in Python frame()"] if left > 0 else []
        return [*more, *self.remarks()]

    def __str__(self) -> str:
        headings, rows = self._cells()
        lines = [self.title()]
        if rows:
            widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
            text = [isinstance(self.frame()[c.name].dtype, pl.String) for c in self.columns()]
            lines += [
                "  " + "  ".join(f"{cell:{'<' if t else '>'}{w}}" for cell, w, t in zip(row, widths, text, strict=True))
                for row in [headings, *rows]
            ]
        return "\n".join(line.rstrip() for line in [*lines, *self._rest()])

    def _repr_html_(self) -> str:
        table = html_table(*self._cells()) if self.frame().height else ""
        return caption(self.title()) + table + "".join(map(caption, self._rest()))


def _cell(form: str, value: object) -> str:
    """On one line, whatever a name holds."""
    text = "-" if value is None else form.format(value)
    return text.replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


def named(graph: Graph, **ids: Ints) -> dict[str, pl.Series]:
    """For each column of ids the names, then the labels; the column `relation` is one of relations."""
    found = {}
    for ending in ("", "_label"):
        for column, values in ids.items():
            words = graph.relations if column == "relation" else graph.entities
            texts = [words.label(i) if ending else words.names[i] for i in values.tolist()]
            # A name that is no Unicode text cannot be written as it is.
            found[column + ending] = pl.Series([t.encode("utf-8", "replace").decode() for t in texts], dtype=pl.String)
    return found


def _delimited(separator: str) -> Callable[[pl.DataFrame, IO[bytes]], Any]:
    def write(frame: pl.DataFrame, file: IO[bytes]) -> None:
        frame.write_csv(file, separator=separator, line_terminator="\n")  # quotes what holds either, or quotes

    return write


def _parquet(frame: pl.DataFrame, file: IO[bytes]) -> None:
    content = io.BytesIO()  # its writer goes back and forth, which a pipe cannot
    frame.write_parquet(content)
    file.write(content.getvalue())


WRITERS: dict[str, Callable[[pl.DataFrame, IO[bytes]], Any]] = {
    ".tsv": _delimited("\t"),
    ".csv": _delimited(","),
    ".jsonl": lambda frame, file: frame.write_ndjson(file),
    ".parquet": _parquet,
}


def endings(names: Sequence[str] = tuple(WRITERS)) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"
