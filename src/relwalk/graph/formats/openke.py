"""OpenKE's folders: ids in the order head, tail, relation below a count; type constraints and negatives beside."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from relwalk.errors import BadLine
from relwalk.graph.answers import Side
from relwalk.graph.formats.base import SKIP_CURE, Format, Journal, Options, shorten
from relwalk.graph.formats.columns import Column, Ids, Labels, Names
from relwalk.graph.formats.folder import find, format_note, has, need, parts, read_labels, read_parts, source_of
from relwalk.graph.formats.named import by_label
from relwalk.graph.formats.numbered import read_id_map
from relwalk.graph.formats.source import Source
from relwalk.graph.formats.table import Table, read_table
from relwalk.graph.lists import Lists
from relwalk.graph.raw import RawGraph

SUFFIXES = (".txt",)
NAME_AND_ID = Table((Names("name"), Ids("id")), separator="space", header=True)


def is_openke(folder: Path, _: Options) -> bool:
    return has(folder, "train2id.txt", "entity2id.txt")


def read_openke(folder: Path, options: Options) -> RawGraph:
    journal = Journal(options)
    entities = _read_names(source_of(need(folder, "entity2id", SUFFIXES), journal), journal)
    relations = _read_names(source_of(need(folder, "relation2id", SUFFIXES), journal), journal)
    files = parts(folder, SUFFIXES, ending="2id")
    journal.note(format_note("openke", files))
    columns = (Ids("head", len(entities)), Ids("tail", len(entities)), Ids("relation", len(relations)))
    frames = read_parts(files, journal, lambda source: _read_counted(source, columns, journal))
    frames |= _read_negatives(folder, columns, journal)
    types = _read_types(folder, len(entities), len(relations), journal)
    labels = read_labels(folder, journal)
    return RawGraph(folder.name, frames, entities, relations, **labels, type_lists=types, notes=journal.summary())


def _read_names(source: Source, journal: Journal) -> list[str]:
    count = _read_count(source)
    names = read_id_map(source, NAME_AND_ID)
    _compare_count(source.path, count, len(names), journal)
    return names


def _read_counted(source: Source, columns: tuple[Column, ...], journal: Journal) -> pl.DataFrame:
    count = _read_count(source)
    frame = read_table(source, Table(columns, separator="space", header=True), journal)
    _compare_count(source.path, count, len(frame) + journal.skipped.get(source.path, 0), journal)
    return frame


def _read_count(source: Source) -> int:
    first = source.first_lines(1)
    number, text = (first[0][0], first[0][1].strip()) if first else (1, b"")
    if not (text.isdigit() and len(text) < 19):
        shown = shorten(text.decode(errors="backslashreplace")) if first else "an empty file"
        cure = "Put the count there, or read the folder in another format."
        raise BadLine(source.path, number, found=shown, expected="the number of lines that follow", cure=cure)
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
    found = {part: source_of(path, journal) for part, path in files.items() if path is not None}
    labelled = {part: read_table(source, table, journal) for part, source in found.items()}
    return {part: frame for part, frame in by_label(labelled).items() if part.endswith("_negatives")}


def _read_types(folder: Path, entities: int, relations: int, journal: Journal) -> dict[Side, Lists] | None:
    """The argument lists of type_constrain.txt; one bad line makes all of them useless."""
    path = find(folder, ("type_constrain",), SUFFIXES)
    if path is None:
        return None
    try:
        return _type_lists(source_of(path, journal), entities, relations)
    except BadLine as error:
        journal.bad(error)
        journal.note(f"{path.name}: left out, for its bad line")
        return None


def _type_lists(source: Source, entities: int, relations: int) -> dict[Side, Lists]:
    """Below the count, two lines for each relation: its heads, then its tails."""
    path, numbered = source.path, list(source.lines())
    count = _read_count(source)
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
