"""One text file for the whole graph: TSV or CSV, with or without headings."""

from __future__ import annotations

import csv
from pathlib import Path

from relwalk.graph.formats.base import Format, Journal, OnBadLine
from relwalk.graph.formats.columns import Column, Ignored, Names
from relwalk.graph.formats.folder import note_empty
from relwalk.graph.formats.frame import triple_columns
from relwalk.graph.formats.named import TRIPLES
from relwalk.graph.formats.quoted import has_quotes
from relwalk.graph.formats.source import first_lines, uncompressed
from relwalk.graph.formats.table import Separator, Table, read_table
from relwalk.graph.raw import COLUMNS, RawGraph


def is_tsv(path: Path) -> bool:
    return path.is_file() and uncompressed(path).suffix.lower() in (".tsv", ".txt")


def is_csv(path: Path) -> bool:
    return path.is_file() and uncompressed(path).suffix.lower() == ".csv"


def read_tsv(path: Path, on_bad_line: OnBadLine) -> RawGraph:
    return _read(path, "\t", False, Journal(on_bad_line))


def read_csv(path: Path, on_bad_line: OnBadLine) -> RawGraph:
    return _read(path, ",", has_quotes(path), Journal(on_bad_line))


def _read(path: Path, separator: Separator, quoted: bool, journal: Journal) -> RawGraph:
    columns = _headed_columns(path, separator, quoted)
    table = Table(columns or TRIPLES.columns, separator, header=columns is not None, quoted=quoted)
    kind = "tsv" if separator == "\t" else "csv"
    journal.note(f"read as {kind}: {path.name}, {'with' if columns else 'without'} headings")
    frame = read_table(path, table, journal).select(COLUMNS)
    if frame.is_empty():
        note_empty(path, "train", journal)
    return RawGraph(uncompressed(path).stem, {"train": frame}, whole=True, notes=journal.told())


def _headed_columns(path: Path, separator: Separator, quoted: bool) -> tuple[Column, ...] | None:
    """The columns that the first line announces; None when it is a triple already."""
    first = [line.decode(errors="replace") for _, line in first_lines(path, 1)]
    try:
        headings = next(csv.reader(first), []) if quoted else "".join(first).split(separator)
    except csv.Error:
        return None
    chosen = triple_columns(headings)
    if chosen is None:
        return None
    columns: list[Column] = [Ignored(f"column {position}") for position in range(len(headings))]
    for name, position in zip(COLUMNS, chosen, strict=True):
        columns[position] = Names(name)
    return tuple(columns)


TSV = Format("tsv", "one .tsv or .txt file, also .gz or .zst: head, relation, tail by tabs", is_tsv, read_tsv)
CSV = Format("csv", "one .csv file, also .gz or .zst, with headings or with three columns", is_csv, read_csv)
