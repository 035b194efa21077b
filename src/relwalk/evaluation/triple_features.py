"""What speaks for a triple: the model's conditionals, and how often train shows its parts.

    score                        scale · s(h, R, t), the model's own log-odds up to a constant
    log p(t | h, R)              over all entities as tails
    log p(h | R, t)              over all entities as heads
    log p(R | h, t)              over all relations, each as probable before as it is frequent in train
    log (1 + n)                  n: triples of train with this relation and tail; with this head and relation; with this
                                 head; with this tail

Each conditional asks another question: a tail may be the best of its head and still be everybody's.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from relwalk.evaluation.metrics import Floats
from relwalk.graph.answers import Side
from relwalk.graph.graph import Graph
from relwalk.graph.lists import Ints
from relwalk.models.base import Scorer
from relwalk.progress import Count

Longs = NDArray[np.int64]
SCORES = 1 << 22  # numbers held at a time: 16 MB
MODELLED = ("score", "log p(t | h, R)", "log p(h | R, t)", "log p(R | h, t)")
COUNTED = ("n(R, t)", "n(h, R)", "n(h)", "n(t)")
FEATURES = (*MODELLED, *COUNTED)


@torch.inference_mode()
def triple_features(model: Scorer, graph: Graph, triples: Ints, count: Count) -> Floats:
    """Each triple by `FEATURES`; `count` is told of every triple.  # (triples, features)"""
    own = model_values(triples, lambda *part: model.scale * model.score(*part), model)
    tails, heads = (own - _log_sums(model, side, triples) for side in ("tail", "head"))
    prior = torch.from_numpy(_log_frequencies(graph)).to(model.device)
    by_relation = model_values(triples, lambda h, r, t: _log_prob_relation(model, prior, h, r, t), model)
    count.add(len(triples))
    return np.stack([own, tails, heads, by_relation, *_counts(graph, triples)], axis=1)


def model_values(triples: Ints, values: Callable[[Tensor, Tensor, Tensor], Tensor], model: Scorer) -> Floats:
    """A number of each triple, in blocks."""
    rows = torch.from_numpy(triples.astype(np.int64)).to(model.device)
    size = max(1, SCORES // max(1, model.relations * model.dim))
    parts = [values(*part.unbind(1)).double().cpu().numpy() for part in torch.split(rows, size)]
    return np.concatenate(parts) if parts else np.zeros(0)


def _log_sums(model: Scorer, side: Side, triples: Ints) -> Floats:
    """log Σ_e exp(scale · s) over all entities in the place that is asked for, each question asked once."""
    given = triples[:, 0 if side == "tail" else 2].astype(np.int64)
    keys, place = np.unique(triples[:, 1].astype(np.int64) * model.entities + given, return_inverse=True)
    relations, entities = (torch.from_numpy(x).to(model.device) for x in np.divmod(keys, model.entities))
    size = max(1, SCORES // model.entities)
    sums = [
        (model.scale * model.score_all(side, some, own)).logsumexp(1).double().cpu().numpy()
        for some, own in zip(torch.split(entities, size), torch.split(relations, size), strict=True)
    ]
    return np.asarray(np.concatenate(sums)[place] if sums else np.zeros(0))


def _log_prob_relation(model: Scorer, prior: Tensor, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
    scores = model.scale * model.score_relations(heads, tails) + prior  # (batch, relations)
    return torch.log_softmax(scores, -1).gather(1, relations.unsqueeze(1)).squeeze(1)


def _log_frequencies(graph: Graph) -> NDArray[np.float32]:
    """log of how frequent each relation is in train; one that is not there counts as one triple."""
    times = np.maximum(1, np.bincount(graph.train[:, 1], minlength=len(graph.relations)))
    return np.asarray(np.log(times / times.sum()), np.float32)


def _counts(graph: Graph, triples: Ints) -> list[Floats]:
    """log (1 + n) of what `COUNTED` names."""
    n = len(graph.entities)
    train, asked = graph.train.astype(np.int64), triples.astype(np.int64)
    keys: tuple[Callable[[Longs], Longs], ...] = (
        lambda rows: rows[:, 1] * n + rows[:, 2],
        lambda rows: rows[:, 1] * n + rows[:, 0],
        lambda rows: rows[:, 0],
        lambda rows: rows[:, 2],
    )
    return [np.log1p(_times(key(train), key(asked))) for key in keys]


def _times(keys: Longs, asked: Longs) -> Floats:
    """How often each number that is asked for occurs."""
    known, counts = np.unique(keys, return_counts=True)
    if len(known) == 0:
        return np.zeros(len(asked))
    place = np.minimum(np.searchsorted(known, asked), len(known) - 1)
    return np.where(known[place] == asked, counts[place], 0).astype(np.float64)
