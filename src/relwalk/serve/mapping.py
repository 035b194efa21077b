"""The map of all entities: those with like vectors lie together in a plane (t-SNE by openTSNE). Kept with the run.

PCA keeps the little of the variance that two directions can hold, t-SNE keeps neighbours. The nearest by cosine are
found exactly. Of more entities than `MOST` a seeded sample is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from relwalk.discovery.neighbours import directions, nearest
from relwalk.errors import RelWalkError
from relwalk.files import write_atomically
from relwalk.graph.graph import Graph
from relwalk.graph.lists import Longs
from relwalk.models.base import Scorer
from relwalk.progress import OnProgress, silent
from relwalk.report.entity_map import role_of_each

FILE = "map.safetensors"
MOST, GRID = 100_000, 65_535
PERPLEXITY, EARLY, LATE, EVERY = 30, 250, 500, 25
FEWEST = 12  # entities: fewer make no neighbourhoods
Doubles = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class EntityMap:
    """Where entities lie, 0 to GRID both ways."""

    ids: NDArray[np.uint32]
    xy: NDArray[np.uint16]  # (entities, 2)

    def as_bytes(self, graph: Graph) -> tuple[bytes, tuple[str, ...]]:
        """ids, x, y and roles one after the other, little-endian; and the names of the roles that have a colour."""
        role, names = role_of_each(graph)
        columns = (self.ids.astype("<u4"), self.xy[:, 0].astype("<u2"), self.xy[:, 1].astype("<u2"))
        return b"".join(c.tobytes() for c in columns) + role[self.ids].astype("u1").tobytes(), names


def make_map(model: Scorer, graph: Graph, *, seed: int = 0, progress: OnProgress = silent) -> EntityMap:
    """Lay out all entities, or a sample."""
    count = len(graph.entities)
    ids = np.arange(count)
    if count > MOST:
        ids = np.sort(np.random.default_rng(seed).choice(count, MOST, replace=False))
    vectors = directions(model)[torch.from_numpy(ids)].cpu()
    xy = _plane(vectors, seed, progress) if len(ids) >= FEWEST else _circle(len(ids))
    low, span = xy.min(0), float(np.ptp(xy, axis=0).max()) or 1.0
    middle = (1 - np.ptp(xy, axis=0) / span) / 2
    return EntityMap(ids.astype(np.uint32), np.rint(((xy - low) / span + middle) * GRID).astype(np.uint16))


def _circle(count: int) -> Doubles:
    angles = 2 * np.pi * np.arange(count) / max(count, 1)
    return np.stack([np.cos(angles), np.sin(angles)], 1)


def _plane(vectors: torch.Tensor, seed: int, progress: OnProgress) -> Doubles:
    tsne = find_opentsne()
    count, total = len(vectors), EARLY + LATE
    near = min(3 * PERPLEXITY, count - 1)
    done = 0

    def compared(rows: int) -> None:
        nonlocal done
        done += rows
        progress(done * total // count // 4, total * 5 // 4, "comparing entities")

    neighbours, cosines = nearest(vectors, near, compared)
    distances = np.sqrt(np.maximum(2 - 2 * cosines.astype(np.float64), 0))
    index = tsne.nearest_neighbors.PrecomputedNeighbors(neighbours, distances)
    affinities = tsne.affinity.PerplexityBasedNN(
        knn_index=index, perplexity=min(PERPLEXITY, near / 3), symmetrize=True, n_jobs=1, random_state=seed
    )
    start = tsne.initialization.pca(vectors.numpy(), random_state=seed)
    walked = 0

    def moved(iteration: int, error: float, embedding: Any) -> bool:
        progress(total // 4 + walked + iteration, total * 5 // 4, "laying out the map")
        return False

    embedding = tsne.TSNEEmbedding(
        start,
        affinities,
        negative_gradient_method="fft" if count > 10_000 else "bh",
        n_jobs=1,
        random_state=seed,
        callbacks=moved,
        callbacks_every_iters=EVERY,
    )
    embedding.optimize(EARLY, exaggeration=12, momentum=0.5, inplace=True)
    walked = EARLY
    embedding.optimize(LATE, momentum=0.8, inplace=True)
    return np.asarray(embedding, np.float64)


def find_opentsne() -> Any:
    """openTSNE, which comes with an extra."""
    try:
        import openTSNE
        import openTSNE.affinity
        import openTSNE.initialization
        import openTSNE.nearest_neighbors
    except ImportError as error:
        raise RelWalkError(
            f"the map is laid out by openTSNE, which cannot be imported here ({error}). "
            "Install it: pip install 'relwalk[serve]'"
        ) from error
    return openTSNE


def save_map(folder: Path, found: EntityMap, fingerprint: str) -> None:
    tensors: dict[str, NDArray[Any]] = {"ids": found.ids, "xy": np.ascontiguousarray(found.xy)}
    write_atomically(folder / FILE, save(tensors, {"run": fingerprint}))


def load_map(folder: Path, fingerprint: str, entities: int) -> EntityMap | None:
    """The map that is kept with a run, if it is of this very run."""
    path = folder / FILE
    if not path.is_file():
        return None
    try:
        with safe_open(path, "numpy") as file:
            if (file.metadata() or {}).get("run") != fingerprint:
                return None
            ids, xy = file.get_tensor("ids"), file.get_tensor("xy")
    except (SafetensorError, OSError, ValueError):
        return None
    fits = ids.ndim == 1 and ids.dtype == np.uint32 and xy.dtype == np.uint16 and xy.shape == (len(ids), 2)
    return EntityMap(ids, xy) if fits and (len(ids) == 0 or int(ids.max()) < entities) else None


def best_known(found: EntityMap, degree: Longs, count: int) -> list[int]:
    """The entities of the map that stand in most triples."""
    order = np.lexsort((found.ids, -degree[found.ids]))[:count]
    return [int(i) for i in found.ids[order]]
