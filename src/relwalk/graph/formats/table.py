"""Text tables: a fast reading by polars, and a careful one that finds the line to blame.

The fast reading never decides that a line is bad. When anything looks odd (an error, an empty field, an id out of
range) the careful one reads the file again, line by line, and its word counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

import polars as pl

from relwalk.errors import BadLine
from relwalk.graph.formats.base import SKIP_CURE, Journal, shorten
from relwalk.graph.formats.columns import Column
from relwalk.graph.formats.quoted import quoted_rows
from relwalk.graph.formats.source import check_compression, first_lines, lines, not_utf8, read_lines

Separator = Literal["\t", ",", "space"]  # space: a tab, or runs of white space
SEPARATORS: dict[Separator, str] = {"\t": "tabs", ",": "commas", "space": "tabs or spaces"}
CHUNK = 100_000

Row = tuple[int, list[str]]


@dataclass(frozen=True)
class Table:
    """What a text file should look like. `header` says that its first line is not a row of it."""

    columns: tuple[Column, ...]
    separator: Separator = "\t"
    header: bool = False
    quoted: bool = False  # fields may stand in quotes, as in CSV

    @property
    def needed(self) -> int:
        """How many fields a line must have at least."""
        return max(position for position, column in enumerate(self.columns, 1) if column.needed)

    def fields(self, line: bytes) -> list[bytes]:
        if self.separator != "space":
            return line.split(self.separator.encode())
        by_tab = line.rsplit(b"\t", len(self.columns) - 1)  # from the right: a name may hold spaces
        return by_tab if len(by_tab) == len(self.columns) else line.rsplit(None, len(self.columns) - 1)

    def expects(self, fields: list[str]) -> str | None:
        """None for a good row, else what was expected."""
        if not self.needed <= len(fields) <= len(self.columns):
            names = ", ".join(column.name for column in self.columns if column.needed)
            return f"{len(self.columns)} columns separated by {SEPARATORS[self.separator]}: {names}"
        wrong = (column.expects(field) for column, field in zip(self.columns, fields, strict=False))
        return next((expected for expected in wrong if expected is not None), None)


def read_table(path: Path, table: Table, journal: Journal) -> pl.DataFrame:
    """The needed columns of a file, converted."""
    check_compression(path)
    frame = None if table.quoted else _fast(path, table)
    return frame if frame is not None else _careful(path, table, journal)


def _fast(path: Path, table: Table) -> pl.DataFrame | None:
    separator = _one_separator(path, table)
    if separator is None:
        return None
    try:
        frame = pl.read_csv(
            path,
            has_header=False,
            skip_rows=int(table.header),
            separator=separator,
            quote_char=None,
            schema={column.name: column.dtype for column in table.columns},
            glob=False,
            raise_if_empty=False,
        )
        return _convert(_without_blank_lines(frame, path, table), table)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        return None


def _one_separator(path: Path, table: Table) -> str | None:
    """The separator to give to polars; None where only the careful reading can tell fields or header."""
    start = first_lines(path, 2)
    if table.header and start and start[0][0] != 1:  # polars would skip a blank line in place of the header
        return None
    if table.separator != "space":
        return table.separator
    if any(b"\t" in line for _, line in start[table.header : table.header + 1]):
        return "\t"
    has_names = any(column.dtype is pl.String for column in table.columns)
    return None if has_names else " "


def _without_blank_lines(frame: pl.DataFrame, path: Path, table: Table) -> pl.DataFrame:
    """Polars makes a blank line a row of nulls, but it does the same to a line of separators alone."""
    if not frame[:, table.needed - 1].has_nulls():
        return frame
    empty = frame.select(pl.all_horizontal(pl.all().is_null())).to_series()
    blank = read_lines(path).slice(int(table.header)).null_count()
    return frame.filter(~empty) if empty.sum() == blank else frame


def _convert(frame: pl.DataFrame, table: Table) -> pl.DataFrame | None:
    converted = {}
    for column in table.columns:
        if column.needed:
            values = column.convert(frame[column.name])
            if values is None:
                return None
            converted[column.name] = values
    return pl.DataFrame(converted)


def _careful(path: Path, table: Table, journal: Journal) -> pl.DataFrame:
    good = _good_rows(path, table, journal)
    schema = {column.name: pl.String for column in table.columns}
    parts = [pl.DataFrame(schema=schema)]
    while chunk := list(islice(good, CHUNK)):
        parts.append(pl.DataFrame(chunk, schema=schema, orient="row"))
    frame = pl.concat(parts).with_columns(
        pl.col(column.name).str.strip_chars(" \t").str.strip_prefix("+").cast(column.dtype)
        for column in table.columns
        if column.dtype is not pl.String
    )
    converted = _convert(frame, table)
    assert converted is not None, "a row that passed every check does not convert"
    return converted


def _good_rows(path: Path, table: Table, journal: Journal) -> Iterator[list[str]]:
    rows = quoted_rows(path, table.header, journal) if table.quoted else _rows(path, table, journal)
    for number, fields in rows:
        expected = table.expects(fields)
        if expected is None:
            yield fields + [""] * (len(table.columns) - len(fields))
        else:
            count = f"{len(fields)} column{'s' * (len(fields) != 1)}"
            found = f"{count}: {shorten((' ' if table.separator == 'space' else table.separator).join(fields))}"
            journal.bad(BadLine(path, number, found=found, expected=expected, cure=SKIP_CURE))


def _rows(path: Path, table: Table, journal: Journal) -> Iterator[Row]:
    for number, line in islice(lines(path), int(table.header), None):
        try:
            yield number, [field.decode() for field in table.fields(line)]
        except UnicodeDecodeError:
            journal.bad(not_utf8(path, number, line))
