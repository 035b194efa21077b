"""What people said of predicted links: accepted ones become facts of train, rejected ones are known to be false.

A file of judgements is a table, head, relation, tail and verdict with tabs between and headings on top, or JSON Lines
with those names: what `relwalk serve` exports, or keeps beside a run. Of several about a triple the last one counts.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from relwalk.checks import shown
from relwalk.errors import BadLine, GraphError, UnknownName
from relwalk.files import parse_json
from relwalk.graph.graph import Graph
from relwalk.graph.lists import Ints

Verdict = Literal["accept", "reject", "later", "none"]  # none: an earlier one is taken back
VERDICTS: tuple[Verdict, ...] = ("accept", "reject", "later", "none")
COLUMNS = ("head", "relation", "tail", "verdict")
SHAPE = "head, relation, tail and verdict (accept, reject, later or none)"
CURE = "Write it as `relwalk serve` exports it."


@dataclass(frozen=True)
class Judgement:
    """A link by name, and what was said of it."""

    head: str
    relation: str
    tail: str
    verdict: Verdict

    @property
    def triple(self) -> tuple[str, str, str]:
        return self.head, self.relation, self.tail

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def last_words(judgements: Iterable[Judgement]) -> dict[tuple[str, str, str], Judgement]:
    """What counts of each link, in the order of the first word about it; what was taken back is left out."""
    found: dict[tuple[str, str, str], Judgement] = {}
    for judgement in judgements:
        found[judgement.triple] = judgement
    return {triple: judgement for triple, judgement in found.items() if judgement.verdict != "none"}


def read_judgements(path: Path) -> list[Judgement]:
    """Those of a .tsv, .csv or .jsonl file."""
    lined = path.suffix.lower() in (".jsonl", ".ndjson")
    try:
        text = path.read_bytes().decode("utf-8-sig")  # a mark at its start is no part of it
    except UnicodeDecodeError as error:
        raise GraphError(f"{path} is not UTF-8 ({error}). Save the file as UTF-8.") from error
    except OSError as error:
        raise GraphError(f"{path} cannot be read: {error.strerror}. Give a file of judgements.") from error
    return list(_from_json(path, text) if lined else _from_table(path, text))


def _from_json(path: Path, text: str) -> Iterator[Judgement]:
    lines = text.split("\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip() or (number == len(lines) and not text.endswith("\n")):
            continue  # a last line that was being written when its writer was killed is no judgement yet
        try:
            content = parse_json(line)
        except ValueError:
            content = None
        fields = [content.get(name) for name in COLUMNS] if isinstance(content, dict) else [line]
        yield _checked(path, number, fields)


def _from_table(path: Path, text: str) -> Iterator[Judgement]:
    rows = csv.reader(text.splitlines(keepends=True), delimiter="," if path.suffix.lower() == ".csv" else "\t")
    try:
        for fields in rows:
            if fields and tuple(fields[:4]) != COLUMNS:
                yield _checked(path, rows.line_num, list(fields[:4]))
    except csv.Error as error:
        raise BadLine(path, rows.line_num, found=str(error), expected=SHAPE, cure=CURE) from error


def _checked(path: Path, number: int, fields: list[Any]) -> Judgement:
    words = all(isinstance(field, str) and field for field in fields)
    if len(fields) != 4 or not words or fields[3] not in VERDICTS:
        found = shown(" ".join(map(str, fields)))
        raise BadLine(path, number, found=found, expected=SHAPE, cure=CURE)
    return Judgement(*fields)


def with_judgements(graph: Graph, path: Path | str) -> Graph:
    """The graph with accepted links in train, and rejected ones among the false triples of valid."""
    path = Path(path)
    said = list(last_words(read_judgements(path)).values())
    accepted, rejected = (_ids(graph, path, said, verdict) for verdict in ("accept", "reject"))
    is_new = ~_among(graph, accepted, graph.triples)
    clash = _among(graph, rejected, graph.triples)
    new, false = accepted[is_new], rejected[~clash]
    notes = [
        f"judgements of {path}: {len(new):,} accepted links in train, {len(false):,} rejected ones known to be false"
    ]
    if clash.any():
        notes.append(
            f"{int(clash.sum()):,} rejected links are facts of the graph, and stay: remove them from its files"
        )
    held = [part for part in (graph.valid_negatives, false) if part is not None and len(part)]
    return replace(
        graph,
        train=np.concatenate([graph.train, new]),
        valid_negatives=np.unique(np.concatenate(held), axis=0) if len(false) else graph.valid_negatives,
        notes=(*graph.notes, *notes),
    )


def _ids(graph: Graph, path: Path, said: list[Judgement], verdict: str) -> Ints:
    rows = []
    for one in said:
        if one.verdict == verdict:
            try:
                ends = graph.entities.id(one.head), graph.entities.id(one.tail)
                rows.append((ends[0], graph.relations.id(one.relation), ends[1]))
            except UnknownName as error:
                raise GraphError(f"{path}: {error} It belongs to another graph than {graph.name!r}.") from error
    return np.array(rows, np.int32).reshape(-1, 3)


def _among(graph: Graph, some: Ints, triples: Ints) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Whether each of some is one of the triples."""
    n, r = len(graph.entities), len(graph.relations)
    keys = [(part[:, 0].astype(np.int64) * r + part[:, 1]) * n + part[:, 2] for part in (some, triples)]
    return np.isin(keys[0], keys[1])
