"""One process by itself, or several that share the work: what training and ranking ask of the others."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor


class Together:
    """One process: it knows everything itself. `sharded.world.World` is one of several."""

    rank: int = 0
    size: int = 1

    def sum(self, x: Tensor) -> Tensor:
        """Σ over the processes, the same bits in each."""
        return x

    def largest(self, x: Tensor) -> Tensor:
        """The largest over the processes, entry by entry."""
        return x

    def any(self, flag: bool) -> bool:
        """Whether any of the processes says so."""
        return flag

    def gather(self, x: Tensor) -> Tensor:
        """The rows of all processes, those of the first one first; each has as many."""
        return x

    def add_up(self, gradients: Sequence[Tensor]) -> None:
        """Each of these, in place, to its sum over the processes."""


ALONE = Together()
