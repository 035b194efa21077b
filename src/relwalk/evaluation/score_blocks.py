"""The scores of all entities for many questions of one side, a block at a time, as `predict` weighs them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from relwalk.evaluation.scores import Scores
from relwalk.graph.answers import Side
from relwalk.graph.graph import Graph
from relwalk.graph.lists import Longs
from relwalk.models.base import Scorer

BLOCK = 1 << 22  # scores held at a time: 16 MB
FEWEST = 8  # questions in a block, however many entities there are: each block goes over all of them


@torch.no_grad()
def score_blocks(
    model: Scorer,
    graph: Graph,
    side: Side,
    given: NDArray[np.integer],
    relations: NDArray[np.integer],
    by: Scores | None = None,
) -> Iterator[tuple[Longs, Tensor]]:
    """Rows of the questions, and model.scale * score of all entities for them, on the CPU.  # (rows,), (rows, entities)

    An entity that is asked about cannot be the answer, -inf, unless the relation links some entity to itself. `by` are
    the scores of several processes, each with a part of the model; what they leave out moves all of a question alike.
    """
    order = np.argsort(relations, kind="stable")  # a model wants them by relation
    size = max(FEWEST, BLOCK // len(graph.entities))
    for rows in (order[i : i + size] for i in range(0, len(order), size)):
        ids, of = (torch.from_numpy(x[rows].astype(np.int64)).to(model.device) for x in (given, relations))
        scores = model.score_all(side, ids, of) if by is None else by.whole(ids, of)
        scores = scores.float().cpu() * model.scale
        own = np.flatnonzero(~graph.has_loops[relations[rows]])
        scores[torch.from_numpy(own), torch.from_numpy(given[rows[own]].astype(np.int64))] = -torch.inf
        yield rows, scores


def leave_out(scores: Tensor, rows: NDArray[np.integer], entities: NDArray[np.integer]) -> None:
    """These are no answers: -inf, in place."""
    scores[torch.from_numpy(rows.astype(np.int64)), torch.from_numpy(entities.astype(np.int64))] = -torch.inf


def sample(count: int, most: int, rng: np.random.Generator) -> Longs:
    """All of `count` numbers, or `most` of them drawn at random, ascending."""
    return np.arange(count) if count <= most else np.sort(rng.choice(count, most, replace=False))
