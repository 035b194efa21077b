"""Frames that come with columns of their own: found by their headings, made strings, checked for missing names."""

from __future__ import annotations

import polars as pl

from relwalk.errors import GraphError
from relwalk.graph.formats.base import Journal, listing
from relwalk.graph.formats.headings import (
    COLUMNS_CURE,
    KNOWN_HEADINGS,
    Place,
    columns_by_words,
    place_of,
    triple_columns,
)
from relwalk.graph.raw import COLUMNS


def to_triples(frame: pl.DataFrame, where: str, journal: Journal) -> pl.DataFrame:
    """Head, relation and tail as strings; `where` is what an error calls the frame."""
    columns = [_to_names(frame[:, position], where) for position in _place(frame, where, journal)]
    return _without_gaps(pl.DataFrame(dict(zip(COLUMNS, columns, strict=True))), where, journal)


def _place(frame: pl.DataFrame, where: str, journal: Journal) -> Place:
    asked = journal.options.columns
    if asked is not None:
        if len(asked) != frame.width:
            raise GraphError(
                f"{where}: found the {frame.width} columns {listing(frame.columns)}; expected {len(asked)}, as "
                f"--columns has: {','.join(asked)}. Name each of them, or _ to leave it out."
            )
        return place_of(asked)
    known = triple_columns(frame.columns)
    if known is not None:
        return known
    by_words = columns_by_words(frame.columns)
    if all(len(places) == 1 for places in by_words):
        place: Place = (by_words[0][0], by_words[1][0], by_words[2][0])
    elif frame.width == 3:
        place = (0, 1, 2)
    else:
        raise GraphError(
            f"{where}: found the columns {listing(frame.columns)}; expected {KNOWN_HEADINGS}, or three columns. "
            f"Rename the columns, or say what each is: {COLUMNS_CURE}."
        )
    if tuple(frame.columns) != ("column_0", "column_1", "column_2"):
        journal.note(
            f"{where}: took {', '.join(frame.columns[position] for position in place)} as head, relation, tail"
        )
    return place


def _to_names(values: pl.Series, where: str) -> pl.Series:
    nameable = (pl.String, pl.Categorical, pl.Enum, pl.Null)
    if not (values.dtype.is_integer() or isinstance(values.dtype, nameable)):
        raise GraphError(
            f"{where}: column {values.name!r} holds {values.dtype}; expected strings or whole numbers. "
            "Convert it before reading."
        )
    return values.cast(pl.String)


def _without_gaps(frame: pl.DataFrame, where: str, journal: Journal) -> pl.DataFrame:
    """A row with a missing or empty name is a bad one."""
    named = frame.select(pl.all_horizontal(pl.all().is_not_null() & (pl.all() != ""))).to_series()
    if named.all():
        return frame
    first = int((~named).arg_max() or 0)
    message = f"row {first + 1}: found {frame.row(first)}; expected three names"
    if journal.on_bad_line == "error":
        raise GraphError(f"{where}, {message}. Fill the row, or leave such rows out with on_bad_line='skip'.")
    journal.note(f"{where}: skipped {(~named).sum():,} bad rows, first {message}")
    return frame.filter(named)
