"""What a reader hands over: names or ids as they stood in the files, before they become a Graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from relwalk.errors import GraphError
from relwalk.graph.answers import Side
from relwalk.graph.graph import Graph, empty_triples
from relwalk.graph.lists import Ints, Lists
from relwalk.graph.vocabulary import Vocabulary

COLUMNS = ("head", "relation", "tail")


@dataclass(frozen=True)
class RawGraph:
    """Frames with the columns head, relation, tail: all strings, or all ids when vocabularies are given.

    `frames` may hold train, valid, test, valid_negatives, test_negatives. A graph with only `train` and
    `whole=True` is one file, still to be split.
    """

    name: str
    frames: Mapping[str, pl.DataFrame]
    entity_names: Sequence[str] | None = None  # given: the frames hold ids into it
    relation_names: Sequence[str] | None = None
    entity_labels: Mapping[str, str] = field(default_factory=dict)
    relation_labels: Mapping[str, str] = field(default_factory=dict)
    type_lists: Mapping[Side, Lists] | None = None
    whole: bool = False
    notes: tuple[str, ...] = ()


def index(raw: RawGraph) -> Graph:
    """Names to ids, in the order of their first appearance; frames to arrays."""
    if raw.entity_names is None or raw.relation_names is None:
        entities, relations, arrays = _number(raw.frames)
    else:
        entities, relations = list(raw.entity_names), list(raw.relation_names)
        arrays = {part: frame.select(COLUMNS).to_numpy().astype(np.int32) for part, frame in raw.frames.items()}
    _check_names(raw.name, [*entities, *relations])
    if len(arrays.get("train", ())) == 0:
        raise GraphError(f"graph {raw.name!r} has no training triples. Give it at least one.")
    return Graph(
        name=raw.name,
        entities=Vocabulary("entity", tuple(entities), _labels(entities, raw.entity_labels)),
        relations=Vocabulary("relation", tuple(relations), _labels(relations, raw.relation_labels)),
        train=arrays["train"],
        valid=arrays.get("valid", empty_triples()),
        test=arrays.get("test", empty_triples()),
        valid_negatives=arrays.get("valid_negatives"),
        test_negatives=arrays.get("test_negatives"),
        type_lists=raw.type_lists,
        notes=raw.notes,
    )


def _check_names(graph: str, names: Sequence[str]) -> None:
    """The byte NUL is no part of a name: it would end the name in other programs, and mean a file that is no text."""
    wrong = next((name for name in names if "\0" in name), None)
    if wrong is not None:
        raise GraphError(
            f"graph {graph!r}: found the name {wrong[:80]!r}; expected names without the byte NUL. Rename it."
        )


def _number(frames: Mapping[str, pl.DataFrame]) -> tuple[list[str], list[str], dict[str, Ints]]:
    """Give every name its id; no Python object per triple is made on the way."""
    parts = list(frames)
    heads, relations, tails = (pl.concat([frames[part][column] for part in parts]) for column in COLUMNS)
    entity_ids, entities = _ids(pl.concat([heads, tails]))
    relation_ids, relation_names = _ids(relations)
    triples = np.stack([entity_ids[: len(heads)], relation_ids, entity_ids[len(heads) :]], axis=1)  # (n, 3)
    ends = np.cumsum([len(frames[part]) for part in parts])[:-1]
    arrays = {part: np.ascontiguousarray(a) for part, a in zip(parts, np.split(triples, ends), strict=True)}
    return entities, relation_names, arrays


def _ids(names: pl.Series) -> tuple[Ints, list[str]]:
    distinct = names.unique(maintain_order=True)
    table = pl.DataFrame({"name": distinct, "id": np.arange(len(distinct), dtype=np.int32)})
    ids = names.to_frame("name").join(table, on="name", how="left", maintain_order="left")["id"]
    return ids.to_numpy(), distinct.to_list()


def _labels(names: Sequence[str], labels: Mapping[str, str]) -> tuple[str | None, ...] | None:
    return tuple(labels.get(name) for name in names) if labels else None
