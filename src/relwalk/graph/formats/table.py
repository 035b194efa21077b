"""Text tables: a fast reading by polars, and a careful one that finds the line to blame.

The fast reading never decides that a line is bad. When anything looks odd (an error, an empty field, an id out of
range) the careful one reads the file again, line by line, and its word counts.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Literal

import polars as pl

from relwalk.errors import BadLine
from relwalk.graph.formats.base import SKIP_CURE, Journal, shorten
from relwalk.graph.formats.columns import Column, Names
from relwalk.graph.formats.headings import COLUMNS_CURE
from relwalk.graph.formats.quoted import quoted_rows
from relwalk.graph.formats.source import Source, not_utf8

Separator = Literal["\t", ",", "space"]  # space: a tab, or runs of white space
SEPARATORS: dict[Separator, str] = {"\t": "tabs", ",": "commas", "space": "tabs or spaces"}
CHUNK = 100_000
LOOK = 20  # lines that tell what all lines are like

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

    @property
    def named(self) -> bool:
        """Whether its columns are names, so that --columns can choose among those of a file."""
        return any(column.needed and isinstance(column, Names) for column in self.columns)

    def fits(self, fields: list[str]) -> bool:
        """Whether a row has as many fields as it should."""
        return self.needed <= len(fields) <= len(self.columns)

    def fields(self, line: bytes) -> list[bytes]:
        if self.separator != "space":
            return line.split(self.separator.encode())
        by_tab = line.rsplit(b"\t", len(self.columns) - 1)  # from the right: a name may hold spaces
        return by_tab if len(by_tab) == len(self.columns) else line.rsplit(None, len(self.columns) - 1)

    def expects(self, fields: list[str]) -> str | None:
        """None for a good row, else what was expected."""
        if not self.fits(fields):
            names = ", ".join(column.name for column in self.columns if column.needed)
            return f"{len(self.columns)} columns separated by {SEPARATORS[self.separator]}: {names}"
        wrong = (column.expects(field) for column, field in zip(self.columns, fields, strict=False))
        return next((expected for expected in wrong if expected is not None), None)


def read_table(source: Source, table: Table, journal: Journal) -> pl.DataFrame:
    """The needed columns of a file, converted."""
    frame = None if table.quoted else _fast(source, table)
    return frame if frame is not None else _careful(source, table, journal)


def _fast(source: Source, table: Table) -> pl.DataFrame | None:
    separator = _one_separator(source, table)
    if separator is None or source.holds(b"\0"):
        return None
    if source.holds(b"\r" + separator.encode()):  # polars would take that end of a name for the end of a line
        return None
    if source.ends_with(separator.encode()):  # polars would overlook the empty field behind it
        return None
    plain = source.for_polars()
    try:
        frame = pl.read_csv(
            plain,
            has_header=False,
            skip_rows=int(table.header),
            separator=separator,
            quote_char=None,
            schema={column.name: column.dtype for column in table.columns},
            glob=False,
            raise_if_empty=False,
        )
        return _convert(_without_blank_lines(frame, source, table), table)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        return None


def _one_separator(source: Source, table: Table) -> str | None:
    """The separator to give to polars; None where only the careful reading can tell fields or header."""
    start = source.first_lines(2)
    if table.header and start and start[0][0] != 1:  # polars would skip a blank line in place of the header
        return None
    if table.separator != "space":
        return table.separator
    if any(b"\t" in line for _, line in start[table.header : table.header + 1]):
        return "\t"
    has_names = any(column.dtype is pl.String for column in table.columns)
    return None if has_names else " "


def _without_blank_lines(frame: pl.DataFrame, source: Source, table: Table) -> pl.DataFrame:
    """Polars makes a blank line a row of nulls, but it does the same to a line of separators alone."""
    if not frame[:, table.needed - 1].has_nulls():
        return frame
    empty = frame.select(pl.all_horizontal(pl.all().is_null())).to_series()
    return frame.filter(~empty) if empty.sum() == source.blank_lines(int(table.header)) else frame


def _convert(frame: pl.DataFrame, table: Table) -> pl.DataFrame | None:
    converted = {}
    for column in table.columns:
        if column.needed:
            values = column.convert(frame[column.name])
            if values is None:
                return None
            converted[column.name] = values
    return pl.DataFrame(converted)


def _careful(source: Source, table: Table, journal: Journal) -> pl.DataFrame:
    good = _good_rows(source, table, journal)
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


def _good_rows(source: Source, table: Table, journal: Journal) -> Iterator[list[str]]:
    for row in _rows(source, table, journal):
        expected = table.expects(row[1])
        if expected is None:
            yield row[1] + [""] * (len(table.columns) - len(row[1]))
        else:
            journal.bad(_bad_row(source, table, row, expected, journal))


def _rows(source: Source, table: Table, journal: Journal) -> Iterator[Row]:
    if table.quoted:
        yield from quoted_rows(source, table.header, journal)
        return
    for number, line in islice(source.lines(), int(table.header), None):
        try:
            yield number, [field.decode() for field in table.fields(line)]
        except UnicodeDecodeError:
            journal.bad(not_utf8(source.path, number, line))


def first_rows(source: Source, table: Table, count: int = LOOK) -> list[list[str]]:
    """The fields of the first rows, whatever is in them."""
    start = [line for _, line in source.first_lines(count + table.header)]
    found = _quoted(start) if table.quoted else map(table.fields, start)
    return [[field.decode(errors="replace") for field in fields] for fields in islice(found, int(table.header), None)]


def _quoted(start: list[bytes]) -> Iterator[list[bytes]]:
    with suppress(csv.Error):  # the careful reading tells it
        for row in csv.reader(line.decode(errors="surrogateescape") for line in start):
            yield [field.encode(errors="surrogateescape") for field in row]


def _bad_row(source: Source, table: Table, row: Row, expected: str, journal: Journal) -> BadLine:
    number, fields = row
    text = shorten((" " if table.separator == "space" else table.separator).join(fields))
    found, cure = f"{_columns(len(fields))}: {text}", SKIP_CURE
    if journal.on_bad_line == "error" and not table.fits(fields):
        start = first_rows(source, table)
        if all(len(other) == len(fields) for other in start):  # to skip this line would be to skip them all
            where = "its only line" if len(start) == 1 else f"each of its first {len(start)} lines"
            found, cure = f"{_columns(len(fields))} in {where}: {text}", _shape_cure(table, start)
    return BadLine(source.path, number, found=found, expected=expected, cure=cure)


def _columns(count: int) -> str:
    return f"{count} column{'s' * (count != 1)}"


def _shape_cure(table: Table, start: list[list[str]]) -> str:
    """What to do about a file whose every line has the same other shape."""
    if all(field.count(",") >= 2 for row in start for field in row[:1]):
        return "Its lines hold commas: separate the columns by tabs, or say --format csv of a single file."
    if all(field.count("\t") >= 2 for row in start for field in row[:1]):
        return "Its lines hold tabs: say --format tsv."
    if start and len(start[0]) < table.needed:
        return f"Separate the columns by {SEPARATORS[table.separator]}, or read it in another format."
    return f"Say what each column is: {COLUMNS_CURE}." if table.named else "Read it in another format (--format)."
