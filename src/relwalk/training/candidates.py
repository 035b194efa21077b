"""Which entities a step sums over: all of a graph of modest size, a weighted sample of a large one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

ALL_UP_TO = 100_000  # entities; a step over more takes most of a second and half a gigabyte
DRAWN = 8192  # entities a step, where they are drawn


def choose_candidates(asked: int | None, entities: int) -> int:
    """How many entities a step draws; 0: it takes all of them."""
    if asked is None:
        return 0 if entities <= ALL_UP_TO else DRAWN
    return 0 if asked >= entities else asked


class Drawn(NamedTuple):
    entities: Tensor  # (n,) distinct, ascending
    log_weights: Tensor  # (n,) log of times drawn / (draws x probability)


@dataclass(frozen=True, eq=False)
class Draws:
    """Draws entities with replacement, half of them uniformly, half by how often they answer a question of train.

    The frequent ones are the rivals that a model rates highly; the uniform half keeps the weight of a rare one bounded
    by twice the number of entities over that of draws. A draw costs nothing that grows with the graph.
    """

    answers: NDArray[np.int32]  # every answer of every question
    probability: NDArray[np.float64]  # (entities,)

    @staticmethod
    def from_answers(answers: NDArray[np.int32], entities: int) -> Draws:
        frequency = np.bincount(answers, minlength=entities) / len(answers)
        return Draws(answers, (frequency + 1 / entities) / 2)

    def draw(self, count: int, generator: torch.Generator) -> Drawn:
        uniform = torch.randint(len(self.probability), (count,), generator=generator).numpy()
        frequent = self.answers[torch.randint(len(self.answers), (count,), generator=generator).numpy()]
        choice = torch.rand(count, generator=generator).numpy() < 0.5
        entities, times = np.unique(np.where(choice, uniform, frequent), return_counts=True)
        weights = times / (count * self.probability[entities])
        return Drawn(torch.from_numpy(entities.astype(np.int64)), torch.from_numpy(np.log(weights)).float())
