"""Embeddings for other tools: one function and one line in EXPORTERS each."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from relwalk.errors import RefusedOverwrite, choose
from relwalk.files import write_atomically
from relwalk.models import Reciprocal
from relwalk.models.compressed import whole_weights
from relwalk.runs.folder import writing_into
from relwalk.runs.run import Run

Arrays = dict[str, NDArray[Any]]


def export(run: Run, out: Path | str, format: str, *, force: bool = False) -> list[Path]:
    """Write the embeddings of a run in a format of EXPORTERS; says which files it wrote."""
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


def weights(run: Run) -> Arrays:
    """Every weight of the model by name; `entity` is (entities, dim). RelWalk's R1 and R2 are always both there, and
    the weights of reciprocal relations as `<name>_inverse`."""
    model = run.model.base if isinstance(run.model, Reciprocal) else run.model
    state = whole_weights(model).items()
    arrays = {name.removesuffix(".weight"): tensor.detach().cpu().numpy() for name, tensor in state}
    for name in ("R1", "R2"):
        if hasattr(model, name):
            arrays[name] = getattr(model, name).detach().cpu().numpy()
    arrays.pop("free_R1", None)
    if model is run.model:
        return arrays
    count = len(run.graph.relations)
    inverse = {f"{name}_inverse": array[count:] for name, array in arrays.items() if name != "entity"}
    return {name: array if name == "entity" else array[:count] for name, array in arrays.items()} | inverse


def npz(run: Run, out: Path) -> dict[Path, bytes]:
    """One .npz: every weight, and the names as Unicode arrays that np.load reads as they are."""
    buffer = io.BytesIO()
    names = {"entity_names": np.array(run.graph.entities.names), "relation_names": np.array(run.graph.relations.names)}
    np.savez(buffer, **weights(run), **names)  # type: ignore[arg-type]
    return {out: buffer.getvalue()}


def parquet(run: Run, out: Path) -> dict[Path, bytes]:
    """A folder: entities.parquet and relations.parquet with name, label and one column per weight."""
    arrays = weights(run)
    graph = run.graph
    files = {}
    for file, vocabulary, size in (
        ("entities.parquet", graph.entities, len(graph.entities)),
        ("relations.parquet", graph.relations, len(graph.relations)),
    ):
        own = {n: a for n, a in arrays.items() if (n == "entity") == (file == "entities.parquet") and len(a) == size}
        frame = pl.DataFrame(
            {"name": vocabulary.names, "label": [vocabulary.label(i) for i in range(size)]}
            | {name: array.reshape(size, -1) for name, array in own.items()}
        )
        buffer = io.BytesIO()
        frame.write_parquet(buffer)
        files[out / file] = buffer.getvalue()
    return files


def word2vec(run: Run, out: Path) -> dict[Path, bytes]:
    """The text format of word2vec: a line of counts, then a name and its vector; blanks in a name become _."""
    vectors = weights(run)["entity"]
    lines = [f"{len(vectors)} {vectors.shape[1]}"]
    lines += [
        f"{'_'.join(name.split())} {_numbers(row, ' ')}" for name, row in zip(run.graph.entities, vectors, strict=True)
    ]
    return {out: ("\n".join(lines) + "\n").encode()}


def projector(run: Run, out: Path) -> dict[Path, bytes]:
    """A folder for the TensorBoard embedding projector: vectors.tsv and metadata.tsv."""
    vectors = weights(run)["entity"]
    labels = [" ".join(run.graph.entities.label(i).split()) for i in range(len(vectors))]
    return {
        out / "vectors.tsv": ("\n".join(_numbers(row, "\t") for row in vectors) + "\n").encode(),
        out / "metadata.tsv": ("\n".join(labels) + "\n").encode(),
    }


EXPORTERS: dict[str, Callable[[Run, Path], dict[Path, bytes]]] = {
    "npz": npz,
    "parquet": parquet,
    "word2vec": word2vec,
    "projector": projector,
}


def _numbers(row: NDArray[Any], separator: str) -> str:
    return separator.join(f"{value:.7g}" for value in row.tolist())
