"""What the system knows of a process: its memory now and at most, its children, its parent."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from collections.abc import Iterator
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")


def reset_peak_memory() -> float:
    """Begin to measure the largest memory anew; the memory now, in megabytes."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return memory_now("self")


def peak_memory() -> float:
    return _status("VmHWM", "self")


def _status(field: str, process: str) -> float:
    with contextlib.suppress(OSError, StopIteration):
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith(field)).split()[1]) / 1e3
    return 0.0


def memory_now(process: str) -> float:
    """In megabytes, of the process with that number, or of this one (`self`)."""
    return _status("VmRSS", process)


def memory_of_family(pid: int) -> Iterator[float]:
    """The memory of a process and of all that it started, in megabytes."""
    with contextlib.suppress(OSError, ValueError):
        yield int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE / 1e6
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            yield from memory_of_family(int(child))


def die_with_parent() -> None:
    """End this process when the one that forked it ends."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
