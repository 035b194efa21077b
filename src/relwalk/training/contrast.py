"""Learning from true triples against sampled false ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from relwalk.graph.graph import Graph
from relwalk.models.base import Scorer
from relwalk.training.decay import decay
from relwalk.training.negatives import SAMPLERS
from relwalk.training.objectives import OBJECTIVES
from relwalk.training.settings import TrainingSettings


class Contrast:
    """One epoch: every true triple once, in random order, each against its own negatives."""

    def __init__(self, graph: Graph, settings: TrainingSettings) -> None:
        self.positives = torch.from_numpy(graph.train.astype(np.int64))
        self.settings = settings
        self.objective = OBJECTIVES[settings.objective]
        self.sampler = SAMPLERS[settings.sampler](graph, avoid_known=settings.avoid_known)
        self.batch_size = settings.batch_size or -(-len(self.positives) // (settings.batches or 1))

    def __len__(self) -> int:
        return -(-len(self.positives) // self.batch_size)

    def batches(self, generator: torch.Generator) -> Iterator[Tensor]:
        """Batches of true triples sorted by relation, so that a model finds each relation in one run."""
        order = torch.randperm(len(self.positives), generator=generator)
        for rows in torch.split(order, self.batch_size):
            batch = self.positives[rows]
            yield batch[torch.sort(batch[:, 1], stable=True).indices]

    def loss(self, model: Scorer, batch: Tensor, generator: torch.Generator) -> Tensor:
        """The objective summed over the batch, plus weight decay and what the model itself asks for."""
        device = model.entity.device
        negatives = self.sampler(batch, self.settings.negatives, generator)
        total = torch.zeros((), device=device)
        for side, rows in (("tail", negatives.tail), ("head", ~negatives.tail)):
            triples, others = batch[rows].to(device), negatives.entities[rows].to(device)
            true = triples[:, 2 if side == "tail" else 0].unsqueeze(1)
            total = total + self._contrast(model, triples, torch.cat([true, others], dim=1), side)
        held = decay(model, self.settings, *batch.to(device).unbind(1))
        return total + held + model.penalty(torch.unique(batch[:, 1]).to(device))

    def _contrast(self, model: Scorer, triples: Tensor, candidates: Tensor, side: str) -> Tensor:
        """The objective of triples against candidates (rows, 1 + count) of one side, the true one first."""
        if not self.objective.sparse:
            return self._objective(model, _score(model, triples, candidates, side))
        with torch.no_grad():
            scores = _score(model, triples, candidates, side)
        with torch.enable_grad():
            leaf = scores.requires_grad_()
            loss = self._objective(model, leaf)
        (slopes,) = torch.autograd.grad(loss, leaf)
        return _through(model, triples, candidates, side, slopes, loss.detach())

    def _objective(self, model: Scorer, scores: Tensor) -> Tensor:
        margin = self.settings.margin(model.scale)
        return self.objective.loss(scores[:, 0], scores[:, 1:], model.scale, margin).sum()


def _score(model: Scorer, triples: Tensor, candidates: Tensor, side: str) -> Tensor:
    heads, relations, tails = triples.unbind(1)
    if side == "tail":
        return model.score_tails(heads, relations, candidates)
    return model.score_heads(relations, tails, candidates)


def _through(model: Scorer, triples: Tensor, candidates: Tensor, side: str, slopes: Tensor, value: Tensor) -> Tensor:
    """A loss of the given value whose gradient goes only through the candidates with a slope.

    Of a hundred negatives the hardest objective moves one: scoring those few triples again costs little, and
    spares the gradient of all the others.
    """
    row, place = slopes.nonzero(as_tuple=True)
    heads, relations, tails = triples[row].unbind(1)
    entities = candidates[row, place]
    scores = model.score(heads, relations, entities) if side == "tail" else model.score(entities, relations, tails)
    moved = (slopes[row, place] * scores).sum()
    return value + moved - moved.detach()
