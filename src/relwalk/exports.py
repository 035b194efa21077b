"""Embeddings for other tools: one function and one line in EXPORTERS each."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
from safetensors.numpy import save as save_arrays

from relwalk.errors import RefusedOverwrite, choose
from relwalk.files import write_atomically
from relwalk.models import Reciprocal
from relwalk.models.compressed import whole_weights
from relwalk.models.tables import EntityTable
from relwalk.runs.folder import writing_into
from relwalk.runs.run import Run
from relwalk.vector_files import NAMES, VECTORS, underscored
from relwalk.walk2vec import WalkVectors

Arrays = dict[str, NDArray[Any]]
Embedded = Run | WalkVectors  # a graph and its vectors


def export(run: Embedded, out: Path | str, format: str, *, force: bool = False) -> list[Path]:
    """Write the embeddings of a run, or vectors from walks, in a format of EXPORTERS; says which files it wrote."""
    exporter = choose("export format", format, EXPORTERS)
    files = {Path(path): content for path, content in exporter(run, Path(out)).items()}
    if not force:
        for path in files:
            if path.exists():
                raise RefusedOverwrite(path)
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        with writing_into(path.parent):
            write_atomically(path, content)
    return list(files)


def weights(run: Embedded) -> Arrays:
    """Every weight of the model by name, the tables of entities (entities, dim) among them. RelWalk's R1 and R2 are
    always both there, and the weights of reciprocal relations as `<name>_inverse`."""
    by_entity, by_relation, shared = _weights(run)
    return by_entity | by_relation | shared


def _weights(run: Embedded) -> tuple[Arrays, Arrays, Arrays]:
    """The weights of entities, of relations, and those that all of them share."""
    if isinstance(run, WalkVectors):
        return {VECTORS: run.vectors}, {}, {}
    model = run.model
    base = model.base if isinstance(model, Reciprocal) else model
    tables = {name for name, module in base.named_modules() if isinstance(module, EntityTable)}
    by_entity, by_relation, shared = Arrays(), Arrays(), Arrays()
    for name, tensor in whole_weights(base).items():
        owner = by_entity if name.removesuffix(".weight") in tables else by_relation
        owner = shared if name.split(".")[0] in base.shared else owner
        owner[name if owner is shared else name.removesuffix(".weight")] = tensor.detach().cpu().numpy()
    for name in ("R1", "R2"):
        if hasattr(base, name):
            by_relation[name] = getattr(base, name).detach().cpu().numpy()
    by_relation.pop("free_R1", None)
    if base is not model:
        inverse = {f"{name}_inverse": array[model.relations :] for name, array in by_relation.items()}
        by_relation = {name: array[: model.relations] for name, array in by_relation.items()} | inverse
    return by_entity, by_relation, shared


def _vectors(run: Embedded) -> NDArray[np.float32]:
    """One vector for each entity: its rows in all tables, side by side (CP: as head, then as tail)."""
    if isinstance(run, WalkVectors):
        return run.vectors
    with torch.no_grad():
        vectors: NDArray[np.float32] = run.model.vectors().cpu().numpy()
    return vectors


def npz(run: Embedded, out: Path) -> dict[Path, bytes]:
    """One .npz: every weight, and the names as Unicode arrays that np.load reads as they are."""
    buffer = io.BytesIO()
    both = {NAMES: run.graph.entities, "relation_names": run.graph.relations}
    names = {kind: np.array(tuple(vocabulary.names)) for kind, vocabulary in both.items()}
    np.savez(buffer, **weights(run), **names)  # type: ignore[arg-type]
    return {out: buffer.getvalue()}


def safetensors(run: Embedded, out: Path) -> dict[Path, bytes]:
    """One .safetensors: every weight, and the names as lists in JSON in its metadata."""
    names = {NAMES: tuple(run.graph.entities.names), "relation_names": tuple(run.graph.relations.names)}
    arrays = {name: np.ascontiguousarray(array) for name, array in weights(run).items()}
    return {out: bytes(save_arrays(arrays, {name: json.dumps(listed) for name, listed in names.items()}))}


def parquet(run: Embedded, out: Path) -> dict[Path, bytes]:
    """A folder: entities.parquet and relations.parquet with name, label and one column per weight. What all relations
    share, a network's weights, has no row in either."""
    by_entity, by_relation, _ = _weights(run)
    files = {}
    for file, vocabulary, own in (
        ("entities.parquet", run.graph.entities, by_entity),
        ("relations.parquet", run.graph.relations, by_relation),
    ):
        size = len(vocabulary)
        frame = pl.DataFrame(
            {"name": tuple(vocabulary.names), "label": [vocabulary.label(i) for i in range(size)]}
            | {name: array.reshape(size, -1) for name, array in own.items()}
        )
        buffer = io.BytesIO()
        frame.write_parquet(buffer)
        files[out / file] = buffer.getvalue()
    return files


def word2vec(run: Embedded, out: Path) -> dict[Path, bytes]:
    """The text format of word2vec: a line of counts, then a name and its vector; blanks in a name become _."""
    vectors = _vectors(run)
    lines = [f"{len(vectors)} {vectors.shape[1]}"]
    lines += [
        f"{underscored(name)} {_numbers(row, ' ')}" for name, row in zip(run.graph.entities, vectors, strict=True)
    ]
    return {out: ("\n".join(lines) + "\n").encode()}


def projector(run: Embedded, out: Path) -> dict[Path, bytes]:
    """A folder for the TensorBoard embedding projector: vectors.tsv and metadata.tsv."""
    vectors = _vectors(run)
    labels = [" ".join(run.graph.entities.label(i).split()) for i in range(len(vectors))]
    return {
        out / "vectors.tsv": ("\n".join(_numbers(row, "\t") for row in vectors) + "\n").encode(),
        out / "metadata.tsv": ("\n".join(labels) + "\n").encode(),
    }


EXPORTERS: dict[str, Callable[[Embedded, Path], dict[Path, bytes]]] = {
    "npz": npz,
    "safetensors": safetensors,
    "parquet": parquet,
    "word2vec": word2vec,
    "projector": projector,
}


def _numbers(row: NDArray[Any], separator: str) -> str:
    return separator.join(f"{value:.7g}" for value in row.tolist())
