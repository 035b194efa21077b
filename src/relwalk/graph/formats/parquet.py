"""Parquet: one file for the whole graph, or a folder with one for each part."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from relwalk.errors import GraphError
from relwalk.graph.formats.base import Format, Journal, OnBadLine
from relwalk.graph.formats.folder import find, has, note_empty, parts, read_parts, told
from relwalk.graph.formats.frame import to_triples
from relwalk.graph.formats.source import check_compression, open_bytes, uncompressed
from relwalk.graph.raw import RawGraph

SUFFIXES = (".parquet",)


def is_parquet(path: Path) -> bool:
    return has(path, "train.parquet") or (path.is_file() and uncompressed(path).suffix.lower() == ".parquet")


def read_parquet(path: Path, on_bad_line: OnBadLine) -> RawGraph:
    journal = Journal(on_bad_line)
    return _read_folder(path, journal) if path.is_dir() else _read_file(path, journal)


def _read_file(path: Path, journal: Journal) -> RawGraph:
    journal.note(f"read as parquet: {path.name}")
    frame = _triples(path, journal)
    if frame.is_empty():
        note_empty(path, "train", journal)
    return RawGraph(uncompressed(path).stem, {"train": frame}, whole=True, notes=journal.told())


def _read_folder(folder: Path, journal: Journal) -> RawGraph:
    files = parts(folder, SUFFIXES)
    for part in ("valid_negatives", "test_negatives"):
        path = find(folder, (part,), SUFFIXES)
        if path is not None:
            files[part] = path
    journal.note(told("parquet", files))
    frames = read_parts(files, journal, lambda path: _triples(path, journal))
    entity_labels, relation_labels = _labels(folder, "labels"), _labels(folder, "relation_labels")
    return RawGraph(
        folder.name,
        frames,
        entity_labels=entity_labels,
        relation_labels=relation_labels,
        notes=journal.told(),
    )


def _triples(path: Path, journal: Journal) -> pl.DataFrame:
    return to_triples(_frame(path), str(path), journal)


def _labels(folder: Path, stem: str) -> dict[str, str]:
    path = find(folder, (stem,), SUFFIXES)
    if path is None:
        return {}
    frame = _frame(path)
    if frame.columns != ["name", "label"] or set(frame.dtypes) != {pl.String}:
        raise GraphError(f"{path}: found {frame.schema}; expected two columns of strings: name, label. Rename them.")
    frame = frame.drop_nulls()
    return dict(zip(frame["name"].to_list(), frame["label"].to_list(), strict=True))


def _frame(path: Path) -> pl.DataFrame:
    check_compression(path)
    if path.suffix.lower() == ".zst":
        raise GraphError(f"{path}: parquet inside zstd cannot be unpacked here. Run `unzstd {path.name}` first.")
    if path.suffix.lower() == ".gz":
        with open_bytes(path) as file:
            return pl.read_parquet(file.read())
    return pl.read_parquet(path, glob=False, hive_partitioning=False)


PARQUET = Format("parquet", "one .parquet file, or a folder with train.parquet", is_parquet, read_parquet)
