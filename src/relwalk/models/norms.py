"""Norms that a model keeps after every step, in place."""

from __future__ import annotations

import torch
from torch import Tensor

from relwalk.models.tables import EntityTable

SHORTEST = 1e-12  # a vector of zeros has no direction: it stays


def norms(x: Tensor) -> Tensor:
    """||x|| of each vector.  # (..., 1)"""
    found: Tensor = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return found


def to_unit(table: EntityTable, entities: Tensor | None) -> None:
    """||e|| = 1 of these entities; None: of all."""
    e = table(entities)
    divide_rows(table, entities, norms(e).clamp(min=SHORTEST))


def divide_rows(table: EntityTable, entities: Tensor | None, by: Tensor) -> None:
    """Divide the vectors of these entities by a number each (entities, 1); None: of all."""
    if entities is None:
        table.weight.div_(by)
    else:
        table.weight.index_copy_(0, entities, table(entities) / by)


def at_most_unit(vectors: Tensor) -> None:
    """||x|| <= 1: longer vectors are shortened, others stay."""
    vectors.div_(norms(vectors).clamp(min=1.0))
