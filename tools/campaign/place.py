"""Where a case happens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Place:
    """What a case is given beside its random numbers. `say` tells what it did, also when it never ends."""

    base: Path  # what the kind prepared, only to be read
    folder: Path  # empty, for this case alone
    seconds: float  # after which a call or a command hangs
    say: Callable[[str], None]
    peaks: list[float] = field(default_factory=list)  # megabytes that its commands took at most
