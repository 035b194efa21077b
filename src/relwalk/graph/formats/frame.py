"""Frames that come with columns of their own: found by their headings, made strings, checked for missing names."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from relwalk.errors import GraphError
from relwalk.graph.formats.base import Journal, listing
from relwalk.graph.raw import COLUMNS

HEADINGS = (
    COLUMNS,
    ("subject", "predicate", "object"),
    ("s", "p", "o"),
    ("h", "r", "t"),
    ("from", "rel", "to"),
)
KNOWN_HEADINGS = "; ".join(", ".join(headings) for headings in HEADINGS)


def triple_columns(headings: Sequence[str]) -> tuple[int, int, int] | None:
    """The positions of head, relation and tail among the headings."""
    folded = [heading.strip().casefold() for heading in headings]
    for head, relation, tail in HEADINGS:
        if {head, relation, tail} <= set(folded):
            return folded.index(head), folded.index(relation), folded.index(tail)
    return None


def to_triples(frame: pl.DataFrame, where: str, journal: Journal) -> pl.DataFrame:
    """Head, relation and tail as strings; `where` is what an error calls the frame."""
    chosen = triple_columns(frame.columns)
    if chosen is None:
        if frame.width != 3:
            raise GraphError(
                f"{where}: found the columns {listing(frame.columns)}; expected {KNOWN_HEADINGS}, or three columns. "
                "Rename the columns, or select three."
            )
        chosen = (0, 1, 2)
        if tuple(frame.columns) != ("column_0", "column_1", "column_2"):
            journal.note(f"{where}: took {', '.join(frame.columns)} as head, relation, tail")
    columns = [_to_names(frame[:, position], where) for position in chosen]
    return _without_gaps(pl.DataFrame(dict(zip(COLUMNS, columns, strict=True))), where, journal)


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
