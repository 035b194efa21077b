"""One text file for the whole graph: TSV or CSV, with or without headings."""

from __future__ import annotations

from pathlib import Path

from relwalk.graph.formats.base import Format, Journal, Options
from relwalk.graph.formats.folder import note_empty
from relwalk.graph.formats.layout import read_names
from relwalk.graph.formats.source import Source, uncompressed
from relwalk.graph.formats.table import Separator
from relwalk.graph.raw import RawGraph


def is_tsv(path: Path, _: Options) -> bool:
    return path.is_file() and uncompressed(path).suffix.lower() in (".tsv", ".txt")


def is_csv(path: Path, _: Options) -> bool:
    return path.is_file() and uncompressed(path).suffix.lower() == ".csv"


def read_tsv(path: Path, options: Options) -> RawGraph:
    return _read(Source(path, options.max_unpacked), "tsv", "\t", Journal(options))


def read_csv(path: Path, options: Options) -> RawGraph:
    return _read(Source(path, options.max_unpacked), "csv", ",", Journal(options))


def _read(source: Source, kind: str, separator: Separator, journal: Journal) -> RawGraph:
    """Without a quote anywhere, CSV is a matter of splitting at commas."""
    journal.note(f"read as {kind}: {source.name}")
    frame = read_names(source, separator, separator == "," and source.holds(b'"'), journal)
    if frame.is_empty():
        note_empty(source.path, "train", journal)
    return RawGraph(source.stem, {"train": frame}, whole=True, notes=journal.summary())


TAKES = ("columns", "header")
TSV = Format("tsv", "one .tsv or .txt file, also .gz or .zst: head, relation, tail by tabs", is_tsv, read_tsv, TAKES)
CSV = Format("csv", "one .csv file, also .gz or .zst, with headings or with three columns", is_csv, read_csv, TAKES)
