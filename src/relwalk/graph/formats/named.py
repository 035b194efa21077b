"""Folders whose triples are names: plain, and Socher's with labelled valid and test."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from relwalk.graph.formats.base import Format, Journal, OnBadLine
from relwalk.graph.formats.columns import Labels, Names
from relwalk.graph.formats.folder import PARTS, TEXT, find, parts, read_labels, read_parts, told
from relwalk.graph.formats.source import first_lines
from relwalk.graph.formats.table import Table, read_table
from relwalk.graph.raw import COLUMNS, RawGraph

TRIPLES = Table(tuple(Names(column) for column in COLUMNS))
LABELLED = Table((*TRIPLES.columns, Labels()))


def has_train(folder: Path) -> bool:
    """Whether a folder holds train.txt, train.tsv or train."""
    return folder.is_dir() and find(folder, PARTS["train"], TEXT) is not None


def is_labelled(folder: Path) -> bool:
    """Whether valid or test have a fourth column. A look at more than one line: the first may be a bad one."""
    if not has_train(folder):
        return False
    held_out = [find(folder, PARTS[part], TEXT) for part in ("valid", "test")]
    return any(line.count(b"\t") == 3 for path in held_out if path is not None for _, line in first_lines(path, 10))


def read_plain(folder: Path, on_bad_line: OnBadLine) -> RawGraph:
    journal = Journal(on_bad_line)
    files = parts(folder, TEXT)
    journal.note(told("plain", files))
    frames = read_parts(files, journal, lambda path: read_table(path, TRIPLES, journal))
    labels = read_labels(folder, journal)
    return RawGraph(folder.name, frames, **labels, notes=journal.told())


def read_socher(folder: Path, on_bad_line: OnBadLine) -> RawGraph:
    journal = Journal(on_bad_line)
    files = parts(folder, TEXT)
    journal.note(told("socher", files))
    train = read_parts({"train": files.pop("train")}, journal, lambda path: read_table(path, TRIPLES, journal))
    labelled = read_parts(files, journal, lambda path: read_table(path, LABELLED, journal))
    frames = train | by_label(labelled)
    labels = read_labels(folder, journal)
    return RawGraph(folder.name, frames, **labels, notes=journal.told())


def by_label(labelled: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """Positives to valid and test, negatives to valid_negatives and test_negatives."""
    frames = {}
    for part, frame in labelled.items():
        frames[part] = frame.filter("label").select(COLUMNS)
        frames[f"{part}_negatives"] = frame.filter(~pl.col("label")).select(COLUMNS)
    return frames


PLAIN = Format("plain", "folder with train, valid, test: head, relation, tail by tabs", has_train, read_plain)
SOCHER = Format("socher", "plain, with a label 1 or -1 at the end of valid (dev) and test", is_labelled, read_socher)
