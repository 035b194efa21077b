"""Parquet: one file for the whole graph, or a folder with one for each part."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from relwalk.errors import GraphError
from relwalk.graph.formats.base import Format, Journal, Options
from relwalk.graph.formats.folder import find, format_note, has, note_empty, parts, read_parts, source_of
from relwalk.graph.formats.frame import to_triples
from relwalk.graph.formats.source import Source, uncompressed
from relwalk.graph.formats.trial import try_out
from relwalk.graph.raw import RawGraph

SUFFIXES = (".parquet",)


def is_parquet(path: Path, _: Options) -> bool:
    return has(path, "train.parquet") or (path.is_file() and uncompressed(path).suffix.lower() == ".parquet")


def read_parquet(path: Path, options: Options) -> RawGraph:
    journal = Journal(options)
    return _read_folder(path, journal) if path.is_dir() else _read_file(source_of(path, journal), journal)


def _read_file(source: Source, journal: Journal) -> RawGraph:
    journal.note(f"read as parquet: {source.name}")
    try_out([source])
    frame = _triples(source, journal)
    if frame.is_empty():
        note_empty(source.path, "train", journal)
    return RawGraph(source.stem, {"train": frame}, whole=True, notes=journal.summary())


def _read_folder(folder: Path, journal: Journal) -> RawGraph:
    negatives = {part: find(folder, (part,), SUFFIXES) for part in ("valid_negatives", "test_negatives")}
    labels = {stem: find(folder, (stem,), SUFFIXES) for stem in ("labels", "relation_labels")}
    files = parts(folder, SUFFIXES) | {part: path for part, path in negatives.items() if path is not None}
    journal.note(format_note("parquet", files))
    try_out([source_of(path, journal) for path in (*files.values(), *labels.values()) if path is not None])
    frames = read_parts(files, journal, lambda source: _triples(source, journal))
    entity_labels, relation_labels = (_labels(path, journal) for path in labels.values())
    return RawGraph(
        folder.name,
        frames,
        entity_labels=entity_labels,
        relation_labels=relation_labels,
        notes=journal.summary(),
    )


def _triples(source: Source, journal: Journal) -> pl.DataFrame:
    return to_triples(_frame(source), str(source.path), journal)


def _labels(path: Path | None, journal: Journal) -> dict[str, str]:
    if path is None:
        return {}
    frame = _frame(source_of(path, journal))
    if frame.columns != ["name", "label"] or set(frame.dtypes) != {pl.String}:
        raise GraphError(f"{path}: found {frame.schema}; expected two columns of strings: name, label. Rename them.")
    frame = frame.drop_nulls()
    return dict(zip(frame["name"].to_list(), frame["label"].to_list(), strict=True))


def _frame(source: Source) -> pl.DataFrame:
    return pl.read_parquet(source.for_polars(), glob=False, hive_partitioning=False)


PARQUET = Format(
    "parquet", "one .parquet file, or a folder with train.parquet", is_parquet, read_parquet, takes=("columns",)
)
