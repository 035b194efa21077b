"""How large a model would be, without making it."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from relwalk.memory import FLOAT, available_memory, refuse_beyond_memory


def refuse_too_large(
    build: Callable[[], nn.Module], entities: int, relations: int, dim: int, *, copies: int, what: str
) -> None:
    """Refuse a model that does not fit into memory so many times over; `build` would make it.

    Exact by building it of tensors that have shapes and no numbers. Torch takes seconds to learn that, so it is asked
    only where `most_numbers`, which is quick to say, would be too much.
    """
    room = available_memory()
    if room is None or copies * FLOAT * most_numbers(entities, relations, dim) <= room:
        return
    with torch.device("meta"):
        needed = copies * sum(t.numel() * t.element_size() for t in build().state_dict().values())
    refuse_beyond_memory(needed, what, "Take a smaller --dim, another --model, or a machine with more memory.")


def most_numbers(entities: int, relations: int, dim: int) -> int:
    """No model has more: two vectors for each entity, two matrices and two vectors for each relation."""
    return 2 * entities * dim + relations * (2 * dim * dim + 2 * dim)
