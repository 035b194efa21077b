"""Folders with id maps: RotatE's (names in the triples) and LibKGE's (ids in the triples)."""

from __future__ import annotations

from pathlib import Path

from relwalk.errors import BadLine
from relwalk.graph.formats.base import Format, Journal, Options, shorten
from relwalk.graph.formats.columns import Column, Ids, KnownNames, Names
from relwalk.graph.formats.folder import TEXT, format_note, has, need, parts, read_labels, read_parts, source_of
from relwalk.graph.formats.named import has_train
from relwalk.graph.formats.source import Source
from relwalk.graph.formats.table import Table, read_table
from relwalk.graph.raw import RawGraph

ID_AND_NAME = Table((Ids("id"), Names("name")))


def is_rotate(folder: Path, options: Options) -> bool:
    return has_train(folder, options) and has(folder, "entities.dict", "relations.dict")


def is_libkge(folder: Path, _: Options) -> bool:
    return has(folder, "train.del", "entity_ids.del")


def read_rotate(folder: Path, options: Options) -> RawGraph:
    journal = Journal(options)
    entities, relations = need(folder, "entities", (".dict",)), need(folder, "relations", (".dict",))
    entity_names = read_id_map(source_of(entities, journal), ID_AND_NAME)
    relation_names = read_id_map(source_of(relations, journal), ID_AND_NAME)
    columns: tuple[Column, ...] = (
        KnownNames("head", entity_names, entities.name),
        KnownNames("relation", relation_names, relations.name),
        KnownNames("tail", entity_names, entities.name),
    )
    return _read(folder, "rotate", TEXT, Table(columns), entity_names, relation_names, journal)


def read_libkge(folder: Path, options: Options) -> RawGraph:
    journal = Journal(options)
    entity_names = read_id_map(source_of(need(folder, "entity_ids", (".del",)), journal), ID_AND_NAME)
    relation_names = read_id_map(source_of(need(folder, "relation_ids", (".del",)), journal), ID_AND_NAME)
    table = Table(id_columns(len(entity_names), len(relation_names)))
    return _read(folder, "libkge", (".del",), table, entity_names, relation_names, journal)


def _read(
    folder: Path,
    layout: str,
    suffixes: tuple[str, ...],
    table: Table,
    entity_names: list[str],
    relation_names: list[str],
    journal: Journal,
) -> RawGraph:
    files = parts(folder, suffixes)
    journal.note(format_note(layout, files))
    frames = read_parts(files, journal, lambda source: read_table(source, table, journal))
    labels = read_labels(folder, journal)
    return RawGraph(folder.name, frames, entity_names, relation_names, **labels, notes=journal.summary())


def id_columns(entities: int, relations: int) -> tuple[Column, ...]:
    """Head, relation and tail as ids."""
    return Ids("head", entities), Ids("relation", relations), Ids("tail", entities)


def read_id_map(source: Source, table: Table) -> list[str]:
    """The names in the order of their ids. Its errors are never skipped: every triple leans on them."""
    frame = read_table(source, table, Journal())
    wrong = {
        f"an id from 0 to {len(frame) - 1}, without gaps": frame["id"] >= len(frame),
        "every id once": ~frame["id"].is_first_distinct(),
        "every name once": ~frame["name"].is_first_distinct(),
    }
    for expected, rows in wrong.items():
        if rows.any():
            raise _bad_row(source, table, int(rows.arg_max() or 0), expected)
    return frame.sort("id")["name"].to_list()


def _bad_row(source: Source, table: Table, row: int, expected: str) -> BadLine:
    wanted = row + table.header
    number, line = next(item for position, item in enumerate(source.lines()) if position == wanted)
    cure = "Number the names 0, 1, 2, ... and list each once."
    return BadLine(source.path, number, found=shorten(line.decode()), expected=expected, cure=cure)


ROTATE = Format("rotate", "plain, with entities.dict and relations.dict", is_rotate, read_rotate)
LIBKGE = Format("libkge", "folder with train.del, entity_ids.del and relation_ids.del", is_libkge, read_libkge)
