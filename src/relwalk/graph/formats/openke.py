"""OpenKE's folders: ids in the order head, tail, relation below a count; type constraints and negatives beside."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from relwalk.errors import BadLine
from relwalk.graph.answers import Side
from relwalk.graph.formats.base import SKIP_CURE, Format, Journal, OnBadLine, shorten
from relwalk.graph.formats.columns import Column, Ids, Labels, Names
from relwalk.graph.formats.folder import find, has, need, parts, read_labels, read_parts, told
from relwalk.graph.formats.named import by_label
from relwalk.graph.formats.numbered import read_id_map
from relwalk.graph.formats.source import first_lines, lines
from relwalk.graph.formats.table import Table, read_table
from relwalk.graph.lists import Lists
from relwalk.graph.raw import RawGraph

SUFFIXES = (".txt",)
NAME_AND_ID = Table((Names("name"), Ids("id")), separator="space", header=True)


def is_openke(folder: Path) -> bool:
    return has(folder, "train2id.txt", "entity2id.txt")


def read_openke(folder: Path, on_bad_line: OnBadLine) -> RawGraph:
    journal = Journal(on_bad_line)
    entities = _read_names(need(folder, "entity2id", SUFFIXES), journal)
    relations = _read_names(need(folder, "relation2id", SUFFIXES), journal)
    files = parts(folder, SUFFIXES, ending="2id")
    journal.note(told("openke", files))
    columns = (Ids("head", len(entities)), Ids("tail", len(entities)), Ids("relation", len(relations)))
    frames = read_parts(files, journal, lambda path: _read_counted(path, columns, journal))
    frames |= _read_negatives(folder, columns, journal)
    types = _read_types(folder, len(entities), len(relations), journal)
    labels = read_labels(folder, journal)
    return RawGraph(folder.name, frames, entities, relations, **labels, type_lists=types, notes=journal.told())


def _read_names(path: Path, journal: Journal) -> list[str]:
    count = _read_count(path)
    names = read_id_map(path, NAME_AND_ID)
    _compare_count(path, count, len(names), journal)
    return names


def _read_counted(path: Path, columns: tuple[Column, ...], journal: Journal) -> pl.DataFrame:
    count = _read_count(path)
    frame = read_table(path, Table(columns, separator="space", header=True), journal)
    _compare_count(path, count, len(frame) + journal.skipped.get(path, 0), journal)
    return frame


def _read_count(path: Path) -> int:
    first = first_lines(path, 1)
    number, text = (first[0][0], first[0][1].strip()) if first else (1, b"")
    if not (text.isdigit() and len(text) < 19):
        shown = shorten(text.decode(errors="backslashreplace")) if first else "an empty file"
        cure = "Put the count there, or read the folder in another format."
        raise BadLine(path, number, found=shown, expected="the number of lines that follow", cure=cure)
    return int(text)


def _compare_count(path: Path, count: int, rows: int, journal: Journal) -> None:
    if count == rows:
        return
    if journal.on_bad_line == "skip":
        journal.note(f"{path.name}: the first line counts {count:,} lines, {rows:,} follow")
        return
    cure = "Correct the count; if lines are missing, fetch the file again. on_bad_line='skip' only notes it."
    raise BadLine(path, 1, found=f"the count {count}", expected=f"{rows}, the lines that follow", cure=cure)


def _read_negatives(folder: Path, columns: tuple[Column, ...], journal: Journal) -> dict[str, pl.DataFrame]:
    """The false triples; the true ones beside them stand in valid and test already."""
    table = Table((*columns, Labels()), separator="space")
    files = {part: find(folder, (f"{part}_neg",), SUFFIXES) for part in ("valid", "test")}
    labelled = {part: read_table(path, table, journal) for part, path in files.items() if path is not None}
    return {part: frame for part, frame in by_label(labelled).items() if part.endswith("_negatives")}


def _read_types(folder: Path, entities: int, relations: int, journal: Journal) -> dict[Side, Lists] | None:
    """The argument lists of type_constrain.txt; one bad line makes all of them useless."""
    path = find(folder, ("type_constrain",), SUFFIXES)
    if path is None:
        return None
    try:
        return _type_lists(path, entities, relations)
    except BadLine as error:
        journal.bad(error)
        journal.note(f"{path.name}: left out, for its bad line")
        return None


def _type_lists(path: Path, entities: int, relations: int) -> dict[Side, Lists]:
    """Below the count, two lines for each relation: its heads, then its tails."""
    numbered = list(lines(path))
    count = _read_count(path)
    if len(numbered) - 1 != 2 * count:
        found = f"{len(numbered) - 1} lines below the count {count}"
        raise BadLine(path, 1, found=found, expected="two lines for each relation", cure=SKIP_CURE)
    rows = [_type_row(path, number, line, entities, relations) for number, line in numbered[1:]]
    return {"head": _group(rows[0::2], relations), "tail": _group(rows[1::2], relations)}


def _type_row(path: Path, number: int, line: bytes, entities: int, relations: int) -> NDArray[np.int64]:
    """Relation, count and entities of one line, all checked."""
    try:
        row = np.array(line.split(), dtype=np.int64)
    except (ValueError, OverflowError):
        row = np.zeros(0, np.int64)
    in_range = len(row) >= 2 and 0 <= row[0] < relations and bool(((row[2:] >= 0) & (row[2:] < entities)).all())
    if not in_range or len(row) != row[1] + 2:
        expected = f"a relation id below {relations}, a count, and that many entity ids below {entities}"
        shown = shorten(line.decode(errors="backslashreplace"))
        raise BadLine(path, number, found=shown, expected=expected, cure=SKIP_CURE)
    return row


def _group(rows: list[NDArray[np.int64]], relations: int) -> Lists:
    keys = np.concatenate([np.full(len(row) - 2, row[0]) for row in rows] or [np.zeros(0, np.int64)])
    values = np.concatenate([row[2:] for row in rows] or [np.zeros(0, np.int64)])
    return Lists.group(keys, values, relations)


OPENKE = Format("openke", "folder with train2id.txt, entity2id.txt and relation2id.txt", is_openke, read_openke)
