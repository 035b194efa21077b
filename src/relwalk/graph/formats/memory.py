"""Graphs that are in memory already: frames, arrays and lists of tuples, one or one for each part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np
import polars as pl

from relwalk.errors import GraphError, UnknownChoice
from relwalk.graph.formats.base import Journal, Options, shorten
from relwalk.graph.formats.frame import to_triples
from relwalk.graph.formats.headings import COLUMNS_CURE, Place, place_of
from relwalk.graph.raw import COLUMNS, RawGraph

PARTS = {
    "train": "train",
    "valid": "valid",
    "dev": "valid",
    "test": "test",
    "valid_negatives": "valid_negatives",
    "test_negatives": "test_negatives",
}
KINDS = "a polars or pandas frame, a list of (head, relation, tail), or a numpy array of shape (n, 3)"


def read_memory(data: object, options: Options) -> RawGraph:
    """One table is a whole graph, still to be split; a mapping holds its parts."""
    journal = Journal(options)
    if not isinstance(data, Mapping):
        frame = _triples(data, "the data", journal)
        return RawGraph("memory", {"train": frame}, whole=True, notes=journal.summary())
    unknown = [key for key in data if key not in PARTS]
    if unknown:
        raise UnknownChoice("part of a graph", str(unknown[0]), PARTS)
    if "train" not in data:
        raise GraphError(f"found the parts {', '.join(data) or 'none'}; expected train among them. Add it.")
    frames = {PARTS[key]: _triples(value, key, journal) for key, value in data.items()}
    return RawGraph("memory", frames, notes=journal.summary())


def _triples(data: object, where: str, journal: Journal) -> pl.DataFrame:
    try:
        return to_triples(_frame(data, where, journal), where, journal)
    except (pl.exceptions.PolarsError, UnicodeError, OverflowError, ImportError, TypeError, ValueError) as error:
        raise GraphError(f"{where}: found what polars refuses ({error}); expected {KINDS}.") from error


def _frame(data: object, where: str, journal: Journal) -> pl.DataFrame:
    if isinstance(data, pl.DataFrame):
        return data
    if isinstance(data, pl.LazyFrame):
        return data.collect()
    if isinstance(data, np.ndarray):
        return _from_array(data, where, journal)
    if type(data).__module__.partition(".")[0] == "pandas" and hasattr(data, "columns"):
        return _from_pandas(data)
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        return _from_rows(data, where, journal)
    raise GraphError(f"{where}: found {type(data).__name__}; expected {KINDS}. Convert it to one of these.")


def _from_pandas(data: Any) -> pl.DataFrame:
    """Pandas allows any heading, polars strings only."""
    return pl.from_pandas(data.set_axis([str(heading) for heading in data.columns], axis="columns"))


def _from_array(data: np.ndarray[Any, Any], where: str, journal: Journal) -> pl.DataFrame:
    width = _width(journal)
    if data.ndim != 2 or data.shape[1] != width or data.dtype.kind not in "iuUOT":
        raise GraphError(f"{where}: found {data.dtype} {data.shape}; expected strings or whole numbers (n, {width}).")
    if data.dtype.kind in "iu":
        return pl.from_numpy(np.ascontiguousarray(data), schema=_headings(journal), orient="row")
    return _from_rows(data.tolist(), where, journal)


def _from_rows(rows: Sequence[Any], where: str, journal: Journal) -> pl.DataFrame:
    """Names and numbers as strings, nothing in the columns that are left out; a row of another shape is a bad one."""
    asked = journal.options.columns
    place = (0, 1, 2) if asked is None else place_of(asked)
    wrong = [position for position, row in enumerate(rows) if not _is_triple(row, place, _width(journal))]
    if wrong:
        shape = "three" if asked is None else f"the columns {','.join(asked)}, three of them"
        message = (
            f"row {wrong[0] + 1}: found {shorten(repr(rows[wrong[0]]))}; expected {shape} strings or whole numbers"
        )
        if journal.on_bad_line == "error":
            cure = f"Mend it, say what each column is ({COLUMNS_CURE}), or leave such rows out with on_bad_line='skip'."
            raise GraphError(f"{where}, {message}. {cure}")
        journal.note(f"{where}: skipped {len(wrong):,} bad rows, first {message}")
        rows = [row for row in rows if _is_triple(row, place, _width(journal))]
    columns = {
        heading: [str(row[column]) if column in place else None for row in rows]
        for column, heading in enumerate(_headings(journal))
    }
    return pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))


def _width(journal: Journal) -> int:
    return len(_headings(journal))


def _headings(journal: Journal) -> list[str]:
    """What the columns of data without headings are called: those that are left out by their number."""
    asked = journal.options.columns or COLUMNS
    return [name if name in COLUMNS else f"column_{position}" for position, name in enumerate(asked)]


def _is_triple(row: Any, place: Place, width: int) -> bool:
    if isinstance(row, str) or not isinstance(row, Sequence | np.ndarray) or len(row) != width:
        return False
    return all(isinstance(row[column], str | Integral) and not isinstance(row[column], bool) for column in place)
