"""The graph as a run keeps it: triples as ids in one safetensors file, names in two tables of text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as save_arrays

from relwalk.errors import GraphError, RunError
from relwalk.files import write_atomically
from relwalk.graph.answers import SIDES
from relwalk.graph.graph import Graph, empty_triples
from relwalk.graph.lists import Lists
from relwalk.graph.texts import MaybeTexts, Packer
from relwalk.graph.vocabulary import Vocabulary
from relwalk.runs.folder import ENTITIES, GRAPH, RELATIONS

GRAPH_FILES = (GRAPH, ENTITIES, RELATIONS)
CURE = "Restore it, or train again."
BLOCK, LINE_END = 1 << 17, b"\n"  # bytes of a vocabulary that are looked at together


def write_graph_files(path: Path, graph: Graph) -> None:
    write_atomically(path / GRAPH, _graph_bytes(graph))
    write_atomically(path / ENTITIES, _vocabulary_bytes(graph.entities))
    write_atomically(path / RELATIONS, _vocabulary_bytes(graph.relations))


def read_graph_files(path: Path, name: str, notes: tuple[str, ...]) -> Graph:
    """The graph of those files, checked as any other."""
    entities = _read_vocabulary("entity", path / ENTITIES)
    relations = _read_vocabulary("relation", path / RELATIONS)
    try:
        with safe_open(path / GRAPH, "numpy") as file:
            arrays = {part: file.get_tensor(part) for part in file.keys()}  # noqa: SIM118
        return Graph(
            name=name,
            entities=entities,
            relations=relations,
            train=arrays["train"],
            valid=arrays.get("valid", empty_triples()),
            test=arrays.get("test", empty_triples()),
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
_ESCAPED = re.compile(rb"\\(.?)", re.DOTALL)
_PLAIN = {escaped[1].encode(): character.encode() for character, escaped in _ESCAPES.items()}


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
    names, labels, there = Packer(), Packer(), bytearray()
    with path.open("rb") as file:
        while block := file.read(BLOCK) + file.readline():
            first = len(there)
            if not block.endswith(b"\n"):
                raise RunError(f"{path} ends in the middle of line {first + block.count(LINE_END) + 1}. {CURE}")
            plain = _plain_names(first, block)
            if plain is not None:
                names.add_lines(plain)
                there += bytes(names.count - first)
            else:
                rows = [_row(path, first + i, line) for i, line in enumerate(block[:-1].split(LINE_END))]
                names.add(name for name, _ in rows)
                there += bytes(label is not None for _, label in rows)
                labels.add(label for _, label in rows if label is not None)
    try:
        found, of_some = names.texts(), MaybeTexts(labels.texts(), np.asarray(there).astype(np.bool_))
    except UnicodeDecodeError as error:
        raise RunError(f"{path} is not UTF-8 ({error}). {CURE}") from error
    return Vocabulary(kind, found, of_some if any(there) else None)


def _plain_names(first: int, block: bytes) -> bytes | None:
    """The names in lines of ids and names, each with a line end; None of lines that have more, or other ids.

    As arrays: a graph may have millions of them.
    """
    letters = np.frombuffer(block, np.uint8)
    ends, tabs = np.flatnonzero(letters == ord("\n")), np.flatnonzero(letters == ord("\t"))
    starts = np.append(0, ends[:-1] + 1)
    if len(tabs) != len(ends) or (tabs < starts).any() or (tabs > ends).any() or b"\\" in block:
        return None
    numbers = [b"%d" % number for number in range(first, first + len(ends))]
    if (tabs - starts).tolist() != list(map(len, numbers)):
        return None
    step = np.zeros(len(letters), np.int8)
    step[starts], step[tabs] = 1, -1
    in_id = np.cumsum(step, dtype=np.int8).astype(np.bool_)
    if letters[in_id].tobytes() != b"".join(numbers):
        return None
    in_id[tabs] = True
    return letters[~in_id].tobytes()


def _row(path: Path, number: int, line: bytes) -> tuple[bytes, bytes | None]:
    """The name and the label in a line of a vocabulary."""
    found, *names = line.split(b"\t")
    try:
        if found == b"%d" % number and 1 <= len(names) <= 2:
            return _unescape(names[0]), _unescape(names[1]) if len(names) > 1 else None
    except KeyError:
        pass  # a backslash before something else
    raise RunError(
        f"{path}, line {number + 1}: found {line.decode(errors='replace')[:80]!r}; expected id {number}, name, and a "
        f"label if there is one, with tabs between. {CURE}"
    )


def _unescape(text: bytes) -> bytes:
    return _ESCAPED.sub(lambda found: _PLAIN[found[1]], text) if b"\\" in text else text
