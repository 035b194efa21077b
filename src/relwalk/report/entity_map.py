"""Entities in the plane: their first two principal components, with a colour for the place they fill most often."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from relwalk.graph.graph import Graph
from relwalk.models.base import Scorer

MOST, GRID, COLOURS = 60_000, 9999, 7  # entities drawn; coordinates are 0..GRID; roles with a colour of their own
NAMED = 80  # entities that may bear their label at once, where there is room


@dataclass(frozen=True, eq=False)
class EntityMap:
    """Quantised coordinates of some entities, and the share of variance that two dimensions keep."""

    ids: NDArray[np.int64]
    xy: NDArray[np.int64]  # (entities, 2)
    role: NDArray[np.int64]  # colour of each; COLOURS for all others
    roles: tuple[str, ...]
    named: NDArray[np.int64]  # rows of the entities in most triples, of each role in turn
    kept: float
    of: int

    def as_json(self, graph: Graph) -> str:
        """JSON that may stand inside a script element: no < or & survives in it."""
        label = graph.entities.label
        content: dict[str, Any] = {
            "x": self.xy[:, 0].tolist(),
            "y": self.xy[:, 1].tolist(),
            "role": self.role.tolist(),
            "roles": list(self.roles),
            "named": self.named.tolist(),
            "label": [label(i) for i in self.ids.tolist()],
        }
        return script_json(content)


def script_json(content: Any) -> str:
    words = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        words = words.replace(character, f"\\u{ord(character):04x}")
    # A lone surrogate, which a file name may hold, is no UTF-8.
    return "".join(c if not "\ud800" <= c <= "\udfff" else f"\\u{ord(c):04x}" for c in words)


@torch.no_grad()
def entity_map(model: Scorer, graph: Graph, *, most: int = MOST, seed: int = 0) -> EntityMap:
    """The map of all entities, or of a seeded sample of `most`."""
    every = model.vectors().detach().cpu().double()
    ids = np.arange(len(every))
    if len(ids) > most:
        ids = np.sort(np.random.default_rng(seed).choice(len(ids), most, replace=False))
    vectors = every[torch.from_numpy(ids)]
    vectors = vectors - vectors.mean(0)
    values, axes = torch.linalg.eigh(vectors.T @ vectors)  # ascending
    axes = axes[:, -2:].flip(1)
    # An eigenvector has no sign of its own: its largest coordinate is made positive, so that two machines agree.
    largest = axes.abs().argmax(0)
    axes = axes * torch.sign(axes[largest, torch.arange(axes.shape[1])])
    xy = (vectors @ axes).numpy()
    if xy.shape[1] < 2:
        xy = np.concatenate([xy, np.zeros((len(xy), 2 - xy.shape[1]))], axis=1)
    low = xy.min(axis=0)
    span = float((xy.max(axis=0) - low).max()) or 1.0
    total = float(values.clamp(min=0).sum())
    kept = float(values[-2:].sum()) / total if total > 0 else 1.0
    role, roles = role_of_each(graph)
    degree = np.bincount(graph.triples[:, [0, 2]].ravel(), minlength=len(every))[ids]
    return EntityMap(
        ids=ids,
        xy=np.rint((xy - low) / span * GRID).astype(np.int64),
        role=role[ids],
        roles=roles,
        named=_best_known(role[ids], degree)[:NAMED],
        kept=kept,
        of=len(every),
    )


def _best_known(role: NDArray[np.int64], degree: NDArray[np.int64]) -> NDArray[np.int64]:
    """The best connected of each role, then the second of each, and so on."""
    order = np.lexsort((-degree, role))
    place = np.arange(len(order)) - np.searchsorted(role[order], role[order])
    return order[np.argsort(place, kind="stable")]


def role_of_each(graph: Graph) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """For each entity the place (head or tail of a relation) that it fills most often, the commonest ones named."""
    n, places = len(graph.entities), 2 * len(graph.relations)
    triples = graph.triples.astype(np.int64)
    keys = np.concatenate([triples[:, 0] * places + 2 * triples[:, 1], triples[:, 2] * places + 2 * triples[:, 1] + 1])
    pairs, counts = np.unique(keys, return_counts=True)
    order = np.lexsort((-counts, pairs // places))  # by entity, its most frequent place first
    entities, first = np.unique(pairs[order] // places, return_index=True)
    best = np.full(n, -1)
    best[entities] = pairs[order][first] % places
    size = np.bincount(best[best >= 0], minlength=places)
    common = [int(p) for p in np.argsort(-size, kind="stable")[:COLOURS] if size[p]]
    colour = np.full(places + 1, COLOURS)
    colour[common] = np.arange(len(common))
    names = tuple(f"{'tail' if p % 2 else 'head'} of {graph.relations.label(p // 2)}" for p in common)
    return colour[best], names
