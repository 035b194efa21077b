"""Learning from true triples against sampled false ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from relwalk.graph.graph import Graph
from relwalk.models.base import Scorer
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
        device = next(model.parameters()).device
        negatives = self.sampler(batch, self.settings.negatives, generator)
        total = torch.zeros((), device=device)
        for tail, rows in ((True, negatives.tail), (False, ~negatives.tail)):
            heads, relations, tails = batch[rows].to(device).unbind(1)
            others = negatives.entities[rows].to(device)
            true = (tails if tail else heads).unsqueeze(1)
            candidates = torch.cat([true, others], dim=1)  # (rows, 1 + count)
            if tail:
                scores = model.score_tails(heads, relations, candidates)
            else:
                scores = model.score_heads(relations, tails, candidates)
            margin = self.settings.margin(model.scale)
            total = total + self.objective(scores[:, 0], scores[:, 1:], model.scale, margin).sum()
        return total + self._decay(model, batch.to(device)) + model.penalty(torch.unique(batch[:, 1]).to(device))

    def _decay(self, model: Scorer, batch: Tensor) -> Tensor:
        """l2 (||h||² + ||t||²) / d of every triple: frequent entities are held more firmly."""
        if not self.settings.l2:
            return torch.zeros((), device=batch.device)
        return self.settings.l2 * model.vectors(batch[:, [0, 2]]).square().sum() / model.dim
