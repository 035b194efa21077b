"""True and false triples of a split: the graph's own negatives, or one drawn for each true triple.

Where it has some, and fewer than half as many as true ones, drawn ones are added.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from relwalk.errors import GraphError
from relwalk.graph.graph import Graph, Split
from relwalk.graph.lists import Ints

Bools = NDArray[np.bool_]


def corrupt(graph: Graph, split: Split, *, seed: int) -> Ints:
    """One false triple per true one: head or tail replaced by another entity of that argument.

    Nothing known to be true is made; a triple for which no such entity exists is left without a negative. Test is known
    to its own negatives alone: what is chosen on valid does not depend on it.
    """
    if split != "test":
        graph = replace(graph, test=graph.test[:0])
    rng = np.random.default_rng([seed, len(split)])
    triples = graph.split(split)
    tail_side = rng.random(len(triples)) < 0.5
    false = triples.copy()
    pending = np.arange(len(triples))
    known = np.unique(triple_keys(graph.triples, graph))
    for _ in range(20):
        column = np.where(tail_side[pending], 2, 0)
        for side, where in (("head", 0), ("tail", 2)):
            rows = pending[column == where]
            lists = graph.argument_lists[side]  # type: ignore[index]
            starts, lengths = lists.offsets[triples[rows, 1]], lists.lengths[triples[rows, 1]]
            false[rows, where] = lists.values[starts + (rng.random(len(rows)) * lengths).astype(np.int64)]
        bad = np.isin(triple_keys(false[pending], graph), known)
        false[pending[bad]] = triples[pending[bad]]
        pending = pending[bad]
        tail_side[pending] = ~tail_side[pending]  # the other side may have room
        if len(pending) == 0:
            break
    return np.delete(false, pending, axis=0)


def triple_keys(triples: Ints, graph: Graph) -> NDArray[np.int64]:
    """Each triple as one number."""
    n = len(graph.entities)
    return (triples[:, 1].astype(np.int64) * n + triples[:, 0]) * n + triples[:, 2]


def labelled(graph: Graph, split: Split, seed: int) -> tuple[Ints, Bools]:
    """Triples, and whether each is true."""
    positives, negatives = graph.split(split), graph.negatives(split)
    if len(positives) == 0:
        raise GraphError(f"graph {graph.name!r} has no {split} triples: thresholds need valid, figures need test.")
    if negatives is None:
        negatives = corrupt(graph, split, seed=seed)
    elif 2 * len(negatives) < len(positives):  # a few that people rejected: too few to tell a threshold by
        drawn = corrupt(graph, split, seed=seed)
        negatives = np.concatenate([negatives, drawn[: len(positives) - len(negatives)]])
    labels = np.concatenate([np.ones(len(positives), bool), np.zeros(len(negatives), bool)])
    return np.concatenate([positives, negatives]), labels
