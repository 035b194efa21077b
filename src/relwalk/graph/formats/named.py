"""Folders whose triples are names: plain, and Socher's with labelled valid and test."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from relwalk.graph.formats.base import Format, Journal, Options
from relwalk.graph.formats.columns import Labels, Names
from relwalk.graph.formats.folder import PARTS, TEXT, find, format_note, parts, read_labels, read_parts, there
from relwalk.graph.formats.layout import read_names
from relwalk.graph.formats.source import Source
from relwalk.graph.formats.table import Table, first_rows, read_table
from relwalk.graph.raw import COLUMNS, RawGraph

TRIPLES = Table(tuple(Names(column) for column in COLUMNS))
LABELLED = Table((*TRIPLES.columns, Labels()))


def has_train(folder: Path, _: Options) -> bool:
    """Whether a folder holds train.txt, train.tsv or train."""
    return folder.is_dir() and bool(there(folder, PARTS["train"], TEXT))


def is_labelled(folder: Path, options: Options) -> bool:
    """Whether a label ends at least half of the first lines of valid or of test, while train has three columns.

    One line decides nothing: it may be a bad one.
    """
    if not has_train(folder, options):
        return False
    train, *held_out = (_first_rows(folder, part, options) for part in ("train", "valid", "test"))
    if 2 * sum(len(row) == 4 for row in train) > len(train):
        return False
    return any(2 * sum(map(_ends_in_label, rows)) >= len(rows) > 0 for rows in held_out)


def _first_rows(folder: Path, part: str, options: Options) -> list[list[str]]:
    path = find(folder, PARTS[part], TEXT)
    return first_rows(Source(path, options.max_unpacked), LABELLED) if path is not None else []


def _ends_in_label(row: list[str]) -> bool:
    return len(row) == 4 and row[3] in ("1", "-1")


def read_plain(folder: Path, options: Options) -> RawGraph:
    journal = Journal(options)
    files = parts(folder, TEXT)
    journal.note(format_note("plain", files))
    frames = read_parts(files, journal, lambda source: read_names(source, "\t", False, journal))
    labels = read_labels(folder, journal)
    return RawGraph(folder.name, frames, **labels, notes=journal.summary())


def read_socher(folder: Path, options: Options) -> RawGraph:
    journal = Journal(options)
    files = parts(folder, TEXT)
    journal.note(format_note("socher", files))
    train = read_parts({"train": files.pop("train")}, journal, lambda source: read_table(source, TRIPLES, journal))
    labelled = read_parts(files, journal, lambda source: read_table(source, LABELLED, journal))
    frames = train | by_label(labelled)
    labels = read_labels(folder, journal)
    return RawGraph(folder.name, frames, **labels, notes=journal.summary())


def by_label(labelled: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """Positives to valid and test, negatives to valid_negatives and test_negatives."""
    frames = {}
    for part, frame in labelled.items():
        frames[part] = frame.filter("label").select(COLUMNS)
        frames[f"{part}_negatives"] = frame.filter(~pl.col("label")).select(COLUMNS)
    return frames


PLAIN = Format(
    "plain",
    "folder with train, valid, test: head, relation, tail by tabs",
    has_train,
    read_plain,
    takes=("columns", "header"),
)
SOCHER = Format("socher", "plain, with a label 1 or -1 at the end of valid (dev) and test", is_labelled, read_socher)
