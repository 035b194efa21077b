"""How large a model would be, without making it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import nn

from relwalk.memory import FLOAT, available_memory, refuse_beyond_memory

MATRICES = 8  # of a relation, at most, unless an option says more
SHARED = 64  # matrices that all relations share, at most, unless dim or an option says more


def refuse_too_large(build: Callable[[], nn.Module], most: int, *, copies: int, what: str) -> None:
    """Refuse a model that does not fit into memory so many times over; `build` would make it.

    Exact by building it of tensors that have shapes and no numbers. Torch takes seconds to learn that, so it is asked
    only where `most`, of `most_numbers`, would be too much.
    """
    room = available_memory()
    if room is None or copies * FLOAT * most <= room:
        return
    with torch.device("meta"):
        needed = copies * sum(t.numel() * t.element_size() for t in build().state_dict().values())
    refuse_beyond_memory(
        needed, what, "Take a smaller --dim, another --model, --on-disk in training, or a machine with more memory."
    )


def most_numbers(entities: int, relations: int, dim: int, options: Iterable[object] = ()) -> int:
    """No model has more, whatever its options: a number among these is how many of something it has.

    Four vectors for each entity; for each relation eight matrices, or as many as an option says, with a vector or two;
    twice as many for all relations together.
    """
    said = max([option for option in options if isinstance(option, int)], default=0)
    matrix = dim * dim + 2 * dim + 2
    shared = 2 * max(said, dim, SHARED) * matrix
    return 4 * entities * (dim + 1) + relations * max(said, MATRICES) * matrix + shared
