"""Norms that a model asks of its vectors: `norms` and `shortened` for scores, the rest in place, after a step."""

from __future__ import annotations

import torch
from torch import Tensor

from relwalk.models.tables import EntityTable

SHORTEST = 1e-12  # a vector of zeros has no direction: it stays


def norms(x: Tensor) -> Tensor:
    """||x|| of each vector.  # (..., 1)"""
    found: Tensor = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return found


def shortened(x: Tensor) -> Tensor:
    """x / max(1, ||x||): vectors longer than 1 brought to 1, the others as they are.  # (..., dim)"""
    return x / norms(x).clamp(min=1.0)


def make_unit(table: EntityTable, entities: Tensor | None) -> None:
    """||e|| = 1 of these entities; None: of all."""
    divide_rows(table, entities, norms(table(entities)).clamp(min=SHORTEST))


def divide_rows(table: EntityTable, entities: Tensor | None, by: Tensor) -> None:
    """Divide the vector of each of these entities by a number of its own (entities, 1); None: of all."""
    if entities is None:
        table.weight.div_(by)
    else:
        table.weight.index_copy_(0, entities, table(entities) / by)
