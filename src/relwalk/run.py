"""A saved run: a folder of JSON, TSV and safetensors that holds everything needed to use the model.

    run.json                settings, seed, versions, graph, protocol, figures, checksums of the other files
    weights.safetensors     the learned weights
    graph.safetensors       the triples of each split, as ids
    entities.tsv            id, name, label
    relations.tsv           id, name, label
    history.jsonl           one line per epoch
    checkpoint.safetensors  where training stands, for `relwalk resume`

Everything is checked on load; nothing in it can run code.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from relwalk import __version__
from relwalk.errors import GraphError, RefusedOverwrite, RelWalkError, RunError
from relwalk.files import sha256, write_atomically
from relwalk.graph.answers import SIDES
from relwalk.graph.graph import Graph, empty_triples
from relwalk.graph.lists import Lists
from relwalk.graph.vocabulary import Vocabulary
from relwalk.models import Scorer, build_model
from relwalk.training.checkpoint import best_weights
from relwalk.training.settings import TrainingSettings

RUN_FORMAT = 1
RECORD, WEIGHTS, GRAPH = "run.json", "weights.safetensors", "graph.safetensors"
ENTITIES, RELATIONS, HISTORY, CHECKPOINT = "entities.tsv", "relations.tsv", "history.jsonl", "checkpoint.safetensors"
FILES = (RECORD, WEIGHTS, GRAPH, ENTITIES, RELATIONS, HISTORY, CHECKPOINT)


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ModelRecord(_Record):
    """Which model, and with which options it was built."""

    name: str
    dim: int = Field(ge=1)
    options: dict[str, bool | int | float | str] = Field(default_factory=dict)


class GraphRecord(_Record):
    """Which graph the run was trained on."""

    name: str
    source: str
    fingerprint: str
    entities: int
    relations: int
    notes: tuple[str, ...] = ()


class RunRecord(_Record):
    """run.json."""

    format: Literal["relwalk-run"] = "relwalk-run"
    version: int = RUN_FORMAT
    status: Literal["training", "finished"] = "training"
    created: str = Field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    versions: dict[str, str] = Field(default_factory=lambda: software_versions())
    recipe: str = "default"
    graph: GraphRecord
    model: ModelRecord
    training: TrainingSettings
    metrics: dict[str, Any] = Field(default_factory=dict)
    files: dict[str, str] = Field(default_factory=dict)  # sha256 of each


def software_versions() -> dict[str, str]:
    return {
        "relwalk": __version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
    }


@dataclass(frozen=True, eq=False)
class Run:
    """A trained model with the graph it was trained on."""

    path: Path | None
    record: RunRecord
    graph: Graph
    model: Scorer

    def __str__(self) -> str:
        where = self.path if self.path is not None else "(not saved)"
        return f"{where}: {self.record.model.name} d={self.record.model.dim} on {self.graph} ({self.record.status})"


def create_run(path: Path, record: RunRecord, graph: Graph, *, force: bool) -> RunRecord:
    """Begin a run in a new folder; with force, in place of an earlier run, of which only its own files go."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        if not force or not (path / RECORD).is_file():
            raise RefusedOverwrite(path)
        for name in FILES:
            (path / name).unlink(missing_ok=True)
    path.mkdir(parents=True, exist_ok=True)
    write_atomically(path / GRAPH, _graph_bytes(graph))
    write_atomically(path / ENTITIES, _vocabulary_bytes(graph.entities))
    write_atomically(path / RELATIONS, _vocabulary_bytes(graph.relations))
    record = record.model_copy(update={"files": {n: sha256(path / n) for n in (GRAPH, ENTITIES, RELATIONS)}})
    write_record(path, record)
    return record


def write_record(path: Path, record: RunRecord) -> None:
    write_atomically(path / RECORD, (record.model_dump_json(indent=2) + "\n").encode())


def finish_run(path: Path, record: RunRecord, model: Scorer, metrics: Mapping[str, Any]) -> RunRecord:
    """Write the weights, then the record that vouches for them: a crash in between leaves an unfinished run."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
    write_atomically(path / WEIGHTS, save_tensors(tensors))
    files = record.files | {WEIGHTS: sha256(path / WEIGHTS)}
    record = record.model_copy(update={"status": "finished", "metrics": dict(metrics), "files": files})
    write_record(path, record)
    return record


def load_run(path: Path | str, *, device: str = "cpu") -> Run:
    """A run from its folder. An unfinished one comes with the best weights of its last checkpoint."""
    path = Path(path)
    record, graph = read_record(path), read_run_graph(path)
    model = fresh_model(record, graph)
    if record.status == "finished":
        weights = _weights(path, record)
    elif (path / CHECKPOINT).is_file():
        weights = best_weights(path / CHECKPOINT)
    else:
        raise RunError(f"{path} has no weights yet: its training stopped before the first checkpoint. Train again.")
    _fill(model, weights, path)
    return Run(path, record, graph, model.to(device).eval())


def fresh_model(record: RunRecord, graph: Graph) -> Scorer:
    """The model of a run before its first step."""
    return build_model(
        record.model.name,
        len(graph.entities),
        len(graph.relations),
        record.model.dim,
        seed=record.training.seed,
        options=record.model.options,
    )


def read_record(path: Path) -> RunRecord:
    """run.json, checked: what it says, and that the other files are the ones it vouches for."""
    file = path / RECORD
    if not file.is_file():
        raise RunError(f"{path} is not a relwalk run: it has no {RECORD}. Give the folder that `relwalk train` made.")
    try:
        content = json.loads(file.read_bytes())
    except ValueError as error:
        raise RunError(f"{file} is not readable JSON ({error}). Restore it, or train again.") from error
    _check_version(file, content)
    try:
        record = RunRecord.model_validate(content)
    except (ValidationError, RelWalkError) as error:
        raise RunError(
            f"{file} is not a valid run record: {_first_fault(error)}. Restore it, or train again."
        ) from error
    for name, digest in record.files.items():
        _check_file(path, name, digest)
    return record


def _check_version(file: Path, content: Any) -> None:
    if not isinstance(content, dict) or content.get("format") != "relwalk-run":
        raise RunError(f'{file} was not written by relwalk: found no "format": "relwalk-run" in it.')
    version = content.get("version")
    if not isinstance(version, int) or version > RUN_FORMAT:
        raise RunError(f"{file} has run format {version!r}; this relwalk reads up to {RUN_FORMAT}. Upgrade relwalk.")


def _check_file(path: Path, name: str, digest: str) -> None:
    if name not in FILES:
        raise RunError(f"{path / RECORD} names a file {name!r} that is no part of a run.")
    if not (path / name).is_file():
        raise RunError(f"{path / name} is missing. Restore it, or train again.")
    if sha256(path / name) != digest:
        raise RunError(f"{path / name} is truncated or was changed after the run wrote it. Restore it, or train again.")


def _first_fault(error: Exception) -> str:
    if isinstance(error, ValidationError):
        fault = error.errors()[0]
        return f"{'.'.join(str(part) for part in fault['loc'])}: {fault['msg']}"
    return str(error)


def _weights(path: Path, record: RunRecord) -> dict[str, Tensor]:
    if WEIGHTS not in record.files:
        raise RunError(f"{path / RECORD} does not vouch for {WEIGHTS}. Restore it, or train again.")
    try:
        return load_tensors((path / WEIGHTS).read_bytes())
    except (SafetensorError, OSError) as error:
        raise RunError(f"{path / WEIGHTS} is not readable ({error}). Restore it, or train again.") from error


def _fill(model: Scorer, weights: Mapping[str, Tensor], path: Path) -> None:
    expected = {name: tuple(t.shape) for name, t in model.state_dict().items()}
    found = {name: tuple(t.shape) for name, t in weights.items()}
    if expected != found:
        raise RunError(f"{path}: weights {found} do not fit the model; expected {expected}. Restore the run.")
    model.load_state_dict(dict(weights))


def read_run_graph(path: Path) -> Graph:
    """The graph as the run keeps it; the record must have been checked first."""
    record = read_record(path)
    for name in (GRAPH, ENTITIES, RELATIONS):
        if name not in record.files:
            raise RunError(f"{path / RECORD} does not vouch for {name}. Restore it, or train again.")
    try:
        arrays = load_arrays((path / GRAPH).read_bytes())
        graph = Graph(
            name=record.graph.name,
            entities=_read_vocabulary("entity", path / ENTITIES),
            relations=_read_vocabulary("relation", path / RELATIONS),
            train=arrays["train"].copy(),
            valid=arrays.get("valid", empty_triples()).copy(),
            test=arrays.get("test", empty_triples()).copy(),
            valid_negatives=arrays.get("valid_negatives"),
            test_negatives=arrays.get("test_negatives"),
            type_lists=_read_lists(arrays),
            notes=record.graph.notes,
        )
    except (SafetensorError, KeyError, GraphError) as error:
        raise RunError(f"{path / GRAPH} does not hold a graph ({error}). Restore it, or train again.") from error
    if graph.fingerprint != record.graph.fingerprint:
        raise RunError(f"{path} holds another graph than its record names. Restore it, or train again.")
    return graph


def _graph_bytes(graph: Graph) -> bytes:
    arrays: dict[str, Any] = {name: np.ascontiguousarray(part) for name, part in graph.parts().items()}
    for side, lists in (graph.type_lists or {}).items():
        arrays |= {f"{side}_offsets": lists.offsets, f"{side}_values": lists.values}
    return bytes(save_arrays(arrays))


def _read_lists(arrays: Mapping[str, Any]) -> dict[Any, Lists] | None:
    if "head_offsets" not in arrays:
        return None
    return {side: Lists(arrays[f"{side}_offsets"], arrays[f"{side}_values"]) for side in SIDES}


_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}


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
        lines = path.read_bytes().decode("utf-8").split("\n")[:-1]
    except UnicodeDecodeError as error:
        raise RunError(f"{path} is not UTF-8 ({error}). Restore it, or train again.") from error
    names: list[str] = []
    labels: list[str | None] = []
    for expected, line in enumerate(lines):
        number, name, *label = line.split("\t")
        if number != str(expected) or len(label) > 1:
            raise RunError(f"{path}, line {expected + 1}: found {line[:80]!r}; expected id {expected}, name, label.")
        names.append(_unescape(name))
        labels.append(_unescape(label[0]) if label else None)
    return Vocabulary(kind, tuple(names), tuple(labels) if any(x is not None for x in labels) else None)


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    plain = {escaped[1]: character for character, escaped in _ESCAPES.items()}
    parts = iter(text)
    return "".join(plain.get(next(parts, ""), "") if character == "\\" else character for character in parts)
