"""A Graph to disk, in each format that other tools read."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from uuid import uuid4

import numpy as np
import polars as pl
import pyoxigraph as ox

from relwalk.errors import GraphError, RefusedOverwrite, choose
from relwalk.graph.answers import SIDES
from relwalk.graph.formats.base import shorten
from relwalk.graph.formats.rdf_parser import RDFS_LABEL, to_iri
from relwalk.graph.formats.source import MAGIC
from relwalk.graph.graph import SPLITS, Graph
from relwalk.graph.lists import Ints
from relwalk.graph.raw import COLUMNS
from relwalk.graph.vocabulary import Vocabulary

UNHOLDABLE = ("\t", "\n", "\r")
OPENKE_ORDER = [0, 2, 1]  # head, tail, relation


@dataclass(frozen=True)
class Writer:
    """How to write a format: into an empty folder, or (`single`) to one file."""

    write: Callable[[Graph, Path], None]
    single: bool = False
    text: bool = True  # no name may hold a tab or the end of a line
    negatives: bool = False  # it can hold false triples
    type_lists: bool = False  # it can hold argument lists


def write_graph(graph: Graph, out: Path, format: str, *, force: bool = False) -> list[Path]:
    """Write a graph and return its files. Nothing appears at `out` before all of it is written.

    Only openke, socher and parquet hold negatives, and only openke argument lists; nt is one file without splits.
    With `force`, files of an earlier graph in the folder are replaced or removed; others are left alone.
    """
    writer, out = choose("format", format, WRITERS), Path(out)
    out = out.resolve() if out.name in ("", "..") else out  # "." has no name of its own
    if not force and in_the_way(out):
        raise RefusedOverwrite(out)
    if writer.text:
        _check_names(graph, format)
    try:
        return _write_aside(writer, graph, out)
    except OSError as error:
        raise GraphError(f"{out} cannot be written: {error}. Choose another place, or make room there.") from error


def lost_in(graph: Graph, format: str) -> list[str]:
    """What this graph has and a format cannot hold, for a person to be told."""
    writer = choose("format", format, WRITERS)
    has_negatives = graph.valid_negatives is not None or graph.test_negatives is not None
    lost = ["false triples"] if has_negatives and not writer.negatives else []
    lost += ["argument lists"] if graph.type_lists is not None and not writer.type_lists else []
    return lost + (["the split into train, valid and test"] if writer.single else [])


def in_the_way(out: Path) -> bool:
    return any(out.iterdir()) if out.is_dir() else out.exists()


def _write_aside(writer: Writer, graph: Graph, out: Path) -> list[Path]:
    """Write beside the target, on the same disk, and rename when all is done."""
    aside = out.parent / f".{out.name}.{uuid4().hex}"
    aside.mkdir(parents=True)
    try:
        writer.write(graph, aside / out.name if writer.single else aside)
        return [(aside / out.name).replace(out)] if writer.single else _put_folder(aside, out)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _put_folder(aside: Path, out: Path) -> list[Path]:
    names = sorted(path.name for path in aside.iterdir())
    if not out.exists():
        aside.replace(out)
        return [out / name for name in names]
    for stale in OWNED - set(names):  # a part of another graph would be read as part of this one
        if (out / stale).is_file() or (out / stale).is_symlink():
            (out / stale).unlink()
    return [(aside / name).replace(out / name) for name in names]


def _check_names(graph: Graph, format: str) -> None:
    for vocabulary in (graph.entities, graph.relations):
        for name in (*vocabulary.names, *(label for label in vocabulary.labels or () if label is not None)):
            if not name or name.startswith("\ufeff") or any(mark in name for mark in UNHOLDABLE):
                raise GraphError(
                    f"the {vocabulary.kind} {shorten(name)} cannot be written as {format}: found a tab, the end of a "
                    "line, a byte order mark, or no character; expected none of these. Write parquet, which can."
                )


def _write_plain(graph: Graph, out: Path) -> None:
    for part in SPLITS:
        if part == "train" or len(graph.split(part)):
            _write_table(_named(graph, graph.split(part)), out / f"{part}.txt")
    _write_labels(graph, out)


def _write_rotate(graph: Graph, out: Path) -> None:
    _write_plain(graph, out)
    _write_id_map(graph.entities, out / "entities.dict")
    _write_id_map(graph.relations, out / "relations.dict")


def _write_libkge(graph: Graph, out: Path) -> None:
    for part in SPLITS:
        _write_table(_numbered(graph.split(part)), out / f"{part}.del")
    _write_id_map(graph.entities, out / "entity_ids.del")
    _write_id_map(graph.relations, out / "relation_ids.del")
    _write_labels(graph, out)


def _write_socher(graph: Graph, out: Path) -> None:
    if graph.valid_negatives is None and graph.test_negatives is None:
        raise GraphError(
            f"graph {graph.name!r} has no negatives; the format socher is made of them. Write plain instead."
        )
    _write_table(_named(graph, graph.train), out / "train.txt")
    for part, stem in (("valid", "dev"), ("test", "test")):
        _write_table(_labelled(graph, part, _named), out / f"{stem}.txt")
    _write_labels(graph, out)


def _write_openke(graph: Graph, out: Path) -> None:
    for part in SPLITS:
        frame = _numbered(graph.split(part)[:, OPENKE_ORDER])
        _write_table(frame, out / f"{part}2id.txt", count=len(frame))
        if graph.negatives(part) is not None:
            ordered = _labelled(graph, part, lambda _, triples: _numbered(triples[:, OPENKE_ORDER]))
            _write_table(ordered, out / f"{part}_neg.txt")
    for vocabulary, stem in ((graph.entities, "entity2id"), (graph.relations, "relation2id")):
        names = _id_map(vocabulary).select("name", "id")
        _write_table(names, out / f"{stem}.txt", count=len(names))
    _write_lines(_type_lines(graph), out / "type_constrain.txt")
    _write_labels(graph, out)


def _write_parquet(graph: Graph, out: Path) -> None:
    parts = ((part, _named(graph, triples)) for part, triples in graph.parts().items())
    for stem, frame in (*parts, *_labels(graph).items()):
        packed = BytesIO()  # polars tells of a full disk in an exception of its own
        frame.write_parquet(packed)
        (out / f"{stem}.parquet").write_bytes(packed.getbuffer())


def _write_nt(graph: Graph, out: Path) -> None:
    with out.open("wb") as file:
        ox.serialize(_rdf(graph), file, format=ox.RdfFormat.N_TRIPLES)


def _rdf(graph: Graph) -> Iterator[ox.Triple]:
    """All triples, then the labels of entities and relations."""
    entities = [ox.NamedNode(to_iri(name)) for name in graph.entities]
    relations = [ox.NamedNode(to_iri(name)) for name in graph.relations]
    for head, relation, tail in graph.triples.tolist():
        yield ox.Triple(entities[head], relations[relation], entities[tail])
    for nodes, labels in ((entities, graph.entities.labels), (relations, graph.relations.labels)):
        for node, label in zip(nodes, labels or (), strict=False):
            if label is not None:
                yield ox.Triple(node, ox.NamedNode(RDFS_LABEL), ox.Literal(label))


def _named(graph: Graph, triples: Ints) -> pl.DataFrame:
    entities = pl.Series(tuple(graph.entities.names), dtype=pl.String)
    relations = pl.Series(tuple(graph.relations.names), dtype=pl.String)
    vocabularies = (entities, relations, entities)
    return pl.DataFrame({name: vocabularies[column].gather(triples[:, column]) for column, name in enumerate(COLUMNS)})


def _numbered(triples: Ints) -> pl.DataFrame:
    return pl.from_numpy(np.ascontiguousarray(triples), schema=["first", "second", "third"], orient="row")


def _labelled(graph: Graph, part: str, table: Callable[[Graph, Ints], pl.DataFrame]) -> pl.DataFrame:
    """The true triples of a part with 1, then its false ones with -1."""
    parts: Mapping[str, Ints] = graph.parts()
    true = table(graph, parts[part]).with_columns(label=pl.lit("1"))
    negatives = parts.get(f"{part}_negatives")
    if negatives is None:
        return true
    return pl.concat([true, table(graph, negatives).with_columns(label=pl.lit("-1"))])


def _id_map(vocabulary: Vocabulary) -> pl.DataFrame:
    names = pl.Series(tuple(vocabulary.names), dtype=pl.String)
    return pl.DataFrame({"id": np.arange(len(names)), "name": names})


def _write_id_map(vocabulary: Vocabulary, path: Path) -> None:
    _write_table(_id_map(vocabulary), path)


def _labels(graph: Graph) -> dict[str, pl.DataFrame]:
    """The labels that there are, by the stem of their file."""
    vocabularies = {"labels": graph.entities, "relation_labels": graph.relations}
    return {
        stem: pl.DataFrame({"name": tuple(names.names), "label": tuple(names.labels or ())}).drop_nulls()
        for stem, names in vocabularies.items()
        if any(label is not None for label in names.labels or ())
    }


def _write_labels(graph: Graph, out: Path) -> None:
    for stem, labels in _labels(graph).items():
        _write_table(labels, out / f"{stem}.tsv")


def _type_lines(graph: Graph) -> Iterator[str]:
    yield str(len(graph.relations))
    for relation in range(len(graph.relations)):
        for side in SIDES:
            ids = graph.argument_lists[side][relation].tolist()
            yield "\t".join(map(str, [relation, len(ids), *ids]))


def _write_table(frame: pl.DataFrame, path: Path, count: int | None = None) -> None:
    with path.open("wb") as file:
        if count is not None:
            file.write(b"%d\n" % count)
        frame.write_csv(file, include_header=False, separator="\t", quote_style="never")


def _write_lines(lines: Iterable[str], path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(line + "\n" for line in lines)


WRITERS: dict[str, Writer] = {
    "plain": Writer(_write_plain),
    "rotate": Writer(_write_rotate),
    "openke": Writer(_write_openke, negatives=True, type_lists=True),
    "libkge": Writer(_write_libkge),
    "socher": Writer(_write_socher, negatives=True),
    "parquet": Writer(_write_parquet, text=False, negatives=True),
    "nt": Writer(_write_nt, single=True, text=False),
}

_STEMS = ("train", "valid", "dev", "test")
_NAMES = {
    *(stem + suffix for stem in _STEMS for suffix in ("", ".txt", ".tsv", ".del", ".parquet", "2id.txt", "_neg.txt")),
    *(f"{stem}_negatives.parquet" for stem in _STEMS),
    *(stem + suffix for stem in ("labels", "relation_labels") for suffix in (".tsv", ".parquet")),
    *("entities.dict", "relations.dict", "entity_ids.del", "relation_ids.del"),
    *("entity2id.txt", "relation2id.txt", "type_constrain.txt"),
}
# Every file that a writer makes, or that a reader would take for one of its own.
OWNED: set[str] = {name + packed for name in _NAMES for packed in ("", *MAGIC)}
