"""Memory that a step frees is kept for the next one, and not handed back to the system in between."""

from __future__ import annotations

import ctypes
import platform

TRIM, MMAP = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of glibc's malloc.h
KEPT = (1 << 31) - 1  # bytes that may lie free at the end of the heap
LARGEST = 1 << 25  # bytes; larger blocks come from the system each time, as glibc insists


def keep_freed_memory() -> bool:
    """Tensors of several megabytes come and go at every step. By default glibc returns their pages and takes new ones,
    which the system fills with zeros: 9% of a step of FB15k-237 (d = 128). Elsewhere than on glibc nothing is done."""
    if platform.libc_ver()[0] != "glibc":
        return False
    malloc = ctypes.CDLL(None)
    return bool(malloc.mallopt(TRIM, KEPT)) and bool(malloc.mallopt(MMAP, LARGEST))
