"""Where the entities of a model start: at known vectors, from a file or from walks, instead of at random ones."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from relwalk.errors import RelWalkError
from relwalk.graph.graph import Graph
from relwalk.models.base import Scorer
from relwalk.models.tables import EntityTable
from relwalk.progress import Progress
from relwalk.vector_files import read_vectors
from relwalk.walk2vec import METHODS, walk_vectors


def start_entities(model: Scorer, graph: Graph, source: str, *, seed: int, progress: Progress = None) -> str:
    """Put the vectors of a source in the place of a fresh model's; a sentence says of how many entities.

    `source` is a file of vectors by name, the folder of a run, or a method that makes them from walks. They take the
    first table of their width, made as long as its random vectors are in the mean square. An entity that has none, or
    one of zeros, keeps its random vector.
    """
    if source in METHODS:
        width = max(table.embedding_dim for table in model.tables())
        vectors = walk_vectors(graph, source, dim=width, seed=seed, progress=progress).vectors
    else:
        vectors = read_vectors(source).of(graph.entities)
    known: NDArray[np.bool_] = (vectors != 0).any(axis=1)
    if not known.any():
        raise RelWalkError(
            f"{source} has no vector for any of the {len(known):,} entities, {graph.entities.names[0]!r} for one: "
            "vectors are found by name. Give those of this graph."
        )
    _place(model, _table_of(model, vectors.shape[1], source), vectors, known)
    rest = int((~known).sum())
    others = f"; {rest:,} have no vector there and start at random" if rest else ""
    return f"{int(known.sum()):,} of {len(known):,} entities start from {source}{others}"


@torch.no_grad()
def _place(model: Scorer, table: EntityTable, vectors: NDArray[np.float32], known: NDArray[np.bool_]) -> None:
    rows, new = torch.from_numpy(np.flatnonzero(known)), torch.from_numpy(vectors[known])
    table.weight[rows] = new * (_length(table.weight) / _length(new))
    if model.constrained:
        model.constrain()


def _length(vectors: torch.Tensor) -> float:
    """√ of the mean ||x||²."""
    return float(vectors.double().square().sum(1).mean().sqrt())


def _table_of(model: Scorer, width: int, source: str) -> EntityTable:
    for table in model.tables():
        if table.embedding_dim == width:
            return table
    widths = " and ".join(str(table.embedding_dim) for table in model.tables())
    raise RelWalkError(
        f"{source} has vectors of {width} numbers; {model.title} of dim {model.dim} has {widths} for an entity. "
        f"Train with another --dim, or make the vectors again with --dim {model.tables()[0].embedding_dim}."
    )
