"""The graph as a run keeps it: triples as ids in one safetensors file, names in two tables of text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

from relwalk.errors import GraphError, RunError
from relwalk.files import write_atomically
from relwalk.graph.answers import SIDES
from relwalk.graph.graph import Graph, empty_triples
from relwalk.graph.lists import Lists
from relwalk.graph.vocabulary import Vocabulary
from relwalk.runs.folder import ENTITIES, GRAPH, RELATIONS

GRAPH_FILES = (GRAPH, ENTITIES, RELATIONS)
CURE = "Restore it, or train again."


def write_graph_files(path: Path, graph: Graph) -> None:
    write_atomically(path / GRAPH, _graph_bytes(graph))
    write_atomically(path / ENTITIES, _vocabulary_bytes(graph.entities))
    write_atomically(path / RELATIONS, _vocabulary_bytes(graph.relations))


def read_graph_files(path: Path, name: str, notes: tuple[str, ...]) -> Graph:
    """The graph of those files, checked as any other."""
    entities = _read_vocabulary("entity", path / ENTITIES)
    relations = _read_vocabulary("relation", path / RELATIONS)
    try:
        arrays = load_arrays((path / GRAPH).read_bytes())
        return Graph(
            name=name,
            entities=entities,
            relations=relations,
            train=arrays["train"].copy(),
            valid=arrays.get("valid", empty_triples()).copy(),
            test=arrays.get("test", empty_triples()).copy(),
            valid_negatives=arrays.get("valid_negatives"),
            test_negatives=arrays.get("test_negatives"),
            type_lists=_read_lists(arrays, len(entities), len(relations)),
            notes=notes,
        )
    except (SafetensorError, KeyError, TypeError, ValueError, GraphError) as error:
        raise RunError(f"{path / GRAPH} does not hold a graph ({error}). {CURE}") from error


def _graph_bytes(graph: Graph) -> bytes:
    arrays: dict[str, Any] = {name: np.ascontiguousarray(part) for name, part in graph.parts().items()}
    for side, lists in (graph.type_lists or {}).items():
        arrays |= {f"{side}_offsets": lists.offsets, f"{side}_values": lists.values}
    return bytes(save_arrays(arrays))


def _read_lists(arrays: Mapping[str, Any], entities: int, relations: int) -> dict[Any, Lists] | None:
    if "head_offsets" not in arrays:
        return None
    lists = {side: Lists(arrays[f"{side}_offsets"], arrays[f"{side}_values"]) for side in SIDES}
    for side, own in lists.items():
        offsets, values = own.offsets, own.values
        whole = offsets.dtype == np.int64 and values.dtype == np.int32 and (offsets.ndim, values.ndim) == (1, 1)
        if not whole or len(offsets) != relations + 1 or offsets[0] != 0 or offsets[-1] != len(values):
            raise GraphError(f"the lists of {side}s are not those of {relations} relations")
        if (np.diff(offsets) < 0).any() or (len(values) and not 0 <= values.min() <= values.max() < entities):
            raise GraphError(f"the lists of {side}s name entities that are not there")
    return lists


_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
_ESCAPED = re.compile(r"\\(.?)", re.DOTALL)
_PLAIN = {escaped[1]: character for character, escaped in _ESCAPES.items()}


def _vocabulary_bytes(vocabulary: Vocabulary) -> bytes:
    """id, name, label: a tab, a line end or a backslash in a name is written with a backslash."""
    table = str.maketrans(_ESCAPES)
    labels = vocabulary.labels or (None,) * len(vocabulary)
    rows = (
        f"{i}\t{name.translate(table)}" + (f"\t{label.translate(table)}" if label is not None else "")
        for i, (name, label) in enumerate(zip(vocabulary.names, labels, strict=True))
    )
    return "".join(row + "\n" for row in rows).encode("utf-8")


def _read_vocabulary(kind: str, path: Path) -> Vocabulary:
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise RunError(f"{path} is not UTF-8 ({error}). {CURE}") from error
    if (names := _plain_names(text)) is not None:
        return Vocabulary(kind, names)
    lines = text.split("\n")
    if lines.pop():
        raise RunError(f"{path} ends in the middle of line {len(lines) + 1}. {CURE}")
    rows = [_row(path, number, line) for number, line in enumerate(lines)]
    labels = tuple(label for _, label in rows)
    return Vocabulary(kind, tuple(name for name, _ in rows), labels if any(x is not None for x in labels) else None)


def _plain_names(text: str) -> tuple[str, ...] | None:
    """The names of a table without labels and backslashes, a few times as fast; None of any other."""
    count = text.count("\n")
    if "\\" in text or not text.endswith("\n") or text.count("\t") != count:
        return None
    fields = text[:-1].replace("\n", "\t").split("\t")
    return tuple(fields[1::2]) if fields[::2] == list(map(str, range(count))) else None


def _row(path: Path, number: int, line: str) -> tuple[str, str | None]:
    """The name and the label in a line of a vocabulary."""
    found, *names = line.split("\t")
    try:
        if found == str(number) and 1 <= len(names) <= 2:
            return _unescape(names[0]), _unescape(names[1]) if len(names) > 1 else None
    except KeyError:
        pass  # a backslash before something else
    raise RunError(
        f"{path}, line {number + 1}: found {line[:80]!r}; expected id {number}, name, and a label if there is one, "
        f"with tabs between. {CURE}"
    )


def _unescape(text: str) -> str:
    return _ESCAPED.sub(lambda found: _PLAIN[found[1]], text) if "\\" in text else text
