"""The shares of links as `predict` gives them: at the temperature of each question, found from all its scores.

Too dear for every question of a graph, so it is done for the links that are kept.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch

from relwalk.discovery.best import Doubles, Links
from relwalk.discovery.judged import as_array, as_tensor
from relwalk.evaluation.probabilities import Probabilities
from relwalk.evaluation.score_blocks import score_blocks
from relwalk.evaluation.scores import Scores
from relwalk.graph.answers import Side
from relwalk.graph.graph import Graph
from relwalk.graph.lists import Ints, Longs
from relwalk.models.base import Scorer


def fitted_shares(
    model: Scorer, graph: Graph, fitted: Probabilities, links: Links, scores: Mapping[Side, Scores] | None = None
) -> Doubles:
    """p(t | h, R) or p(h | R, t) of each link, by the question that it was asked with.  # (links,)"""
    found = np.zeros(len(links))
    sides: dict[Side, Longs] = {"tail": np.flatnonzero(links.by_tail), "head": np.flatnonzero(~links.by_tail)}
    for side, mine in sides.items():
        some = links.take(mine)
        given, answer = (some.head, some.tail) if side == "tail" else (some.tail, some.head)
        found[mine] = _side(model, graph, fitted, side, given, some.relation, answer, scores[side] if scores else None)
    return found


def _side(
    model: Scorer,
    graph: Graph,
    fitted: Probabilities,
    side: Side,
    given: Ints,
    relation: Ints,
    answer: Ints,
    by: Scores | None,
) -> Doubles:
    found = np.zeros(len(given))
    for rows, scores in score_blocks(model, graph, side, given, relation, by):
        known = graph.known[side].lookup(given[rows], relation[rows])
        betas = fitted.question_temperatures(side, relation[rows], scores, known)
        logits = scores * torch.from_numpy(betas).to(scores)[:, None]
        own = logits[torch.arange(len(rows)), as_tensor(answer[rows], logits)]
        found[rows] = as_array(torch.exp(own - torch.logsumexp(logits, 1)))
    return found
