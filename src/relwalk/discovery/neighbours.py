"""The nearest entities of every entity, by the cosine of their vectors, a block of rows at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from relwalk.graph.lists import Ints
from relwalk.models.base import Scorer

BLOCK = 1 << 22  # cosines held at a time
Singles = NDArray[np.float32]


@torch.inference_mode()
def directions(model: Scorer) -> Tensor:
    """All that the model knows of each entity, from the mean of all entities, with length 1.  # (entities, numbers)"""
    vectors = model.vectors().float()
    return torch.nn.functional.normalize(vectors - vectors.mean(0), dim=1)


@torch.inference_mode()
def nearest(vectors: Tensor, count: int, done: Callable[[int], None]) -> tuple[Ints, Singles]:
    """The entities of the greatest cosines with each, itself aside, and the cosines.  # (entities, count) both"""
    size, count = max(1, BLOCK // len(vectors)), min(count, len(vectors) - 1)
    ids, cosines = [], []
    for start in range(0, len(vectors), size):
        rows = vectors[start : start + size]
        table = rows @ vectors.T
        own = torch.arange(len(rows), device=table.device)
        table[own, start + own] = -torch.inf
        values, places = table.topk(count)
        ids.append(places.cpu().numpy().astype(np.int32))
        cosines.append(values.cpu().numpy())
        done(len(rows))
    return np.concatenate(ids), np.concatenate(cosines)
