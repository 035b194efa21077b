"""How the columns of a text file of names lie: with headings or without, with columns that are of no concern here.

Nothing is decided in silence: what was taken for headings, and what was left out, is noted with the option that says
otherwise.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from relwalk.errors import BadLine, GraphError
from relwalk.graph.formats.base import Journal, Options, shorten
from relwalk.graph.formats.columns import Column, Ignored, Names
from relwalk.graph.formats.headings import COLUMNS_CURE, Place, columns_by_words, place_of, triple_columns
from relwalk.graph.formats.source import Source
from relwalk.graph.formats.table import SEPARATORS, Separator, Table, first_rows, read_table
from relwalk.graph.raw import COLUMNS

FIRST_THREE: Place = (0, 1, 2)
LOOK = 200  # rows that tell what a column holds
ALONE = 10  # rows from which a first line of names that stand nowhere else is suspicious
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
TIME = re.compile(
    r"(1[0-9]|20)[0-9]{2}|[0-9]{4}-[0-9]{1,2}(-[0-9]{1,2}([T ].*)?)?|[0-9]{1,2}[./][0-9]{1,2}[./][0-9]{4}"
)
KINDS = {"times": TIME, "weights": NUMBER}  # the first one that fits every value


@dataclass(frozen=True)
class Layout:
    """Where head, relation and tail stand among `width` columns, and whether the first line is headings."""

    place: Place
    width: int
    headings: tuple[str, ...] | None = None
    guessed: bool = False  # the headings are none that are known: to be checked against the rows
    note: str = ""

    def table(self, separator: Separator, quoted: bool) -> Table:
        columns: list[Column] = [Ignored(f"column {position}") for position in range(1, self.width + 1)]
        for name, position in zip(COLUMNS, self.place, strict=True):
            columns[position] = Names(name)
        return Table(tuple(columns), separator, header=self.headings is not None, quoted=quoted)


def read_names(source: Source, separator: Separator, quoted: bool, journal: Journal) -> pl.DataFrame:
    """Head, relation and tail of every line, as names."""
    layout = find_layout(source, separator, quoted, journal.options)
    frame = _read(source, layout, separator, quoted, journal)
    if layout.guessed and _occurs(layout, frame):  # those are names like others: the first line is a triple
        journal.forget(source.path)
        layout = find_layout(source, separator, quoted, replace(journal.options, header=False))
        frame = _read(source, layout, separator, quoted, journal)
    elif layout.headings is None and journal.options.header is None and _stands_alone(frame):
        journal.note(
            f"{source.name}: the first line {shorten(', '.join(frame.row(0)))} was read as a triple, but its names "
            "stand nowhere else; say --header (header=True) if they are headings"
        )
    if layout.note:
        journal.note(f"{source.name}: {layout.note}")
    return frame


def _read(source: Source, layout: Layout, separator: Separator, quoted: bool, journal: Journal) -> pl.DataFrame:
    return read_table(source, layout.table(separator, quoted), journal).select(COLUMNS)


def _occurs(layout: Layout, frame: pl.DataFrame) -> bool:
    headings = [(layout.headings or ())[position] for position in layout.place]
    return any((frame[name] == heading).any() for name, heading in zip(COLUMNS, headings, strict=True))


def _stands_alone(frame: pl.DataFrame) -> bool:
    """Whether the first row is the only one with its relation, its head and its tail, and they look like headings."""
    if len(frame) < ALONE or not all(re.fullmatch(r"[A-Za-z][\w .:-]{0,30}", name) for name in frame.row(0)):
        return False
    head, relation, tail = frame.row(0)
    if (frame["relation"] == relation).sum() > 1:
        return False
    ends = pl.col("head").is_in([head, tail]) | pl.col("tail").is_in([head, tail])
    return bool(frame.select(ends.sum()).item() == 1)


def find_layout(source: Source, separator: Separator, quoted: bool, options: Options) -> Layout:
    """What the options say, else what the first line says, else the first three columns."""
    sample = first_rows(source, Table((), separator, quoted=quoted), LOOK)
    headings, guessed = _headings(sample, options)
    body = sample[1:] if headings is not None else sample
    if options.columns is not None:
        return _noted(Layout(place_of(options.columns), len(options.columns), headings, guessed), None)
    if headings is None:
        return _without_headings(source, separator, body)
    by_words = columns_by_words(headings)
    place = triple_columns(headings)
    if place is None and all(len(places) == 1 for places in by_words):
        place = (by_words[0][0], by_words[1][0], by_words[2][0])
    if place is None and all(by_words):
        raise _unclear(source, separator, headings, "several headings for the same")
    if place is None:
        _check_first_three(source, separator, body)
    return _noted(Layout(place or FIRST_THREE, max(len(headings), 3), headings, guessed), body)


def _headings(sample: list[list[str]], options: Options) -> tuple[tuple[str, ...] | None, bool]:
    """The first line where it is headings, and whether that is a guess."""
    first = tuple(sample[0]) if sample else ()
    if options.header is not None:
        return (first if options.header and first else None), False
    if triple_columns(first) is not None:
        return first, False
    if len(sample) == 1 or (options.columns is not None and len(options.columns) != len(first)):
        return None, False
    return (first, True) if all(columns_by_words(first)) or _heads_numbers(sample) else (None, False)


def _heads_numbers(sample: list[list[str]]) -> bool:
    """Whether the first line has words above a fourth or later column of numbers or times alone."""
    if len(sample) < 4 or len(sample[0]) < 4 or any(len(row) != len(sample[0]) for row in sample):
        return False
    columns = list(zip(*sample, strict=True))[3:]
    return any(_kind(column[1:]) and column[0] and not _kind(column[:1]) for column in columns)


def _without_headings(source: Source, separator: Separator, sample: list[list[str]]) -> Layout:
    """The first three columns, if most lines have more and nothing says that another choice is meant."""
    width, lines = Counter(map(len, sample)).most_common(1)[0] if sample else (3, 0)
    if width <= 3 or 2 * lines <= len(sample):
        return Layout(FIRST_THREE, 3)
    whole = [row for row in sample if len(row) == width]
    _check_first_three(source, separator, whole)
    return _noted(Layout(FIRST_THREE, width), whole)


def _check_first_three(source: Source, separator: Separator, sample: Sequence[Sequence[str]]) -> None:
    """Refuse to choose where an index stands in front, or where labels may tell true triples from false ones."""
    columns = list(zip(*(row for row in sample if len(row) == len(sample[0])), strict=True))
    numeric = [_kind(column) is not None for column in columns]
    if any(numeric[:3]) and not all(numeric[3:]):
        raise _unclear(source, separator, sample[0], "numbers among the first three and names behind them")
    if any(set(column) <= {"1", "-1", "0"} for column in columns[3:]):
        raise _unclear(source, separator, sample[0], "what may be labels of true and false triples at the end")


def _unclear(source: Source, separator: Separator, row: Sequence[str], why: str) -> GraphError:
    found = f"{len(row)} columns, with {why}: {shorten(', '.join(row))}"
    expected = f"head, relation and tail separated by {SEPARATORS[separator]}"
    return BadLine(
        source.path,
        source.first_lines(1)[0][0],
        found=found,
        expected=expected,
        cure=f"Say what each is: {COLUMNS_CURE}.",
    )


def _noted(layout: Layout, sample: Sequence[Sequence[str]] | None) -> Layout:
    """Say what was taken for headings; with a sample, of columns nobody asked for, also what was left out."""
    parts = []
    names = layout.headings or [f"column {position}" for position in range(1, layout.width + 1)]
    if layout.guessed:
        shown = ", ".join(layout.headings or ())
        parts.append(f"took the first line for headings ({shown}); --no-header (header=False) makes it a triple")
    ignored = [position for position in range(layout.width) if position not in layout.place]
    if sample is not None and (layout.guessed or ignored):
        parts.append(f"took {', '.join(names[position] for position in layout.place)} as head, relation, tail")
        left = [
            names[position] + _content([row[position] for row in sample if position < len(row)]) for position in ignored
        ]
        parts += [f"left out {', '.join(left)}"] if left else []
        parts.append(f"{_asked(layout)} (or another order) says what each column is")
    return replace(layout, note="; ".join(parts))


def _asked(layout: Layout) -> str:
    """The option that would have asked for this layout."""
    words = ["_"] * layout.width
    for name, position in zip(COLUMNS, layout.place, strict=True):
        words[position] = name
    return f"--columns {','.join(words)}"


def _content(values: Sequence[str]) -> str:
    kind = _kind(values)
    return f" (looks like {kind}: {shorten(next(filter(None, values)), 20)}, ...)" if kind else ""


def _kind(values: Sequence[str]) -> str | None:
    """Times or weights, if every value that is there looks so."""
    there = [value.strip() for value in values if value.strip()]
    fitting = (kind for kind, pattern in KINDS.items() if there and all(pattern.fullmatch(value) for value in there))
    return next(fitting, None)
