"""What speaks for a triple beside itself: a model that was taught a false one gives it a high score all the same.

neighbours   how high the entities nearest to t stand as answers to (h, R, ?), in standard deviations of all scores,
             and those nearest to h as answers to (?, R, t)
linked       1 where another triple links the two, in either direction
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray

from relwalk.discovery.best import Doubles
from relwalk.discovery.judged import JudgedBlock, as_array, as_tensor
from relwalk.discovery.sweep import Sweep
from relwalk.graph.answers import SIDES
from relwalk.graph.graph import Graph
from relwalk.graph.lists import Ints, Longs

EVIDENCE = ("neighbours of the head", "neighbours of the tail", "linked")


@torch.inference_mode()
def evidence(sweep: Sweep, near: Ints, triples: Ints, done: Callable[[int], None]) -> Doubles:
    """What speaks for each triple, known or not; `near` are the neighbours of each entity.  # (triples, EVIDENCE)"""
    found = np.zeros((len(triples), len(EVIDENCE)))
    for place, side in enumerate(SIDES):
        given, answer = (triples[:, 0], triples[:, 2]) if side == "tail" else (triples[:, 2], triples[:, 0])
        for block, rows, own in sweep.asking(side, given, triples[:, 1]):
            found[own, place] = _standing(block, rows, near[answer[own]])
            done(len(own))
    found[:, 2] = linked(sweep.graph, triples)
    return found


def _standing(block: JudgedBlock, rows: Longs, near: Ints) -> Doubles:
    """The mean height of some entities in the columns of their questions."""
    block.unstrike()
    logits = as_array(block.table[as_tensor(near, block.table), as_tensor(rows, block.table)[:, None]])
    there = np.isfinite(logits)  # but for the entity that is asked about
    heights = np.where(there, logits - block.mean[rows, None], 0.0).sum(1) / np.maximum(there.sum(1), 1)
    found: Doubles = heights / np.maximum(block.spread[rows], 1e-9)
    return found


def linked(graph: Graph, triples: Ints) -> Doubles:
    """1 where another triple than the given one links its head and tail, in either direction; else 0."""
    pairs, counts = np.unique(_pairs(graph.triples, len(graph.entities)), return_counts=True)
    wanted = _pairs(triples, len(graph.entities))
    place = np.minimum(np.searchsorted(pairs, wanted), len(pairs) - 1)
    times = np.where(pairs[place] == wanted, counts[place], 0)
    return (times > is_known(graph, triples)).astype(np.float64)


def is_known(graph: Graph, triples: Ints) -> NDArray[np.bool_]:
    """Whether the graph holds each triple."""
    entities, relations = len(graph.entities), len(graph.relations)

    def keys(some: Ints) -> Longs:
        return (some[:, 0].astype(np.int64) * relations + some[:, 1]) * entities + some[:, 2]

    return np.isin(keys(triples), keys(graph.triples))


def _pairs(triples: Ints, entities: int) -> Longs:
    """A number for the two entities of each triple, whichever comes first."""
    ends = np.sort(triples[:, [0, 2]].astype(np.int64), axis=1)
    return ends[:, 0] * entities + ends[:, 1]
