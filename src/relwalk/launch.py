"""What torchrun says, in the environment, of the processes that it started. Nothing here loads torch."""

from __future__ import annotations

import os


def several() -> bool:
    """Whether torchrun started this process as one of several."""
    return "TORCHELASTIC_RUN_ID" in os.environ and os.environ.get("WORLD_SIZE", "1") != "1"


def is_first() -> bool:
    """Whether this process is the one that speaks for all: rank 0, or one by itself."""
    return not several() or os.environ.get("RANK") == "0"


def launch_name() -> str:
    """Which call of torchrun this is: the same after it has started its processes again."""
    return os.environ.get("TORCHELASTIC_RUN_ID", "") if several() else ""


def started_again() -> bool:
    """Whether torchrun started these processes in place of others that failed."""
    return several() and os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") != "0"
