"""What the machine has room for: asked before the room is taken, not found out when it is gone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from relwalk.errors import RelWalkError

FLOAT = 4  # bytes of a number of torch
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")  # of a container


def available_memory() -> int | None:
    """Bytes that are free, or can be freed, for this process; None where the system does not say."""
    return min([*_free(), *_allowed()], default=None)


def refuse_beyond_memory(needed: int, what: str, cure: str) -> None:
    """Refuse what cannot fit, before the system ends this process, or another one, for lack of memory."""
    room = available_memory()
    if room is not None and needed > room:
        raise RelWalkError(f"{what} needs at least {_gib(needed)} of memory; {_gib(room)} are free. {cure}")


def _gib(size: int) -> str:
    return f"{size / 2**30:,.1f} GiB"


def _free() -> Iterator[int]:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        yield from (int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except OSError:  # no Linux: all there is must do
        if hasattr(os, "sysconf") and {"SC_PHYS_PAGES", "SC_PAGE_SIZE"} <= os.sysconf_names.keys():
            yield os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _allowed() -> Iterator[int]:
    for path in map(Path, _LIMITS):
        try:
            yield int(path.read_text())
        except (OSError, ValueError):  # no such limit, or "max"
            continue
