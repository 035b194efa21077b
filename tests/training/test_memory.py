"""Freed memory stays with the process while it trains."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

COUNT = """
import ctypes, resource, torch
from relwalk.training.memory import MMAP, TRIM, keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(5):
        held = [torch.empty(1 << 21).fill_(1) for _ in range(16)]  # 8 MB each: 128 MB come and go
        del held
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

for which in (TRIM, MMAP):  # glibc raises its limits by what it sees: begin where it begins
    ctypes.CDLL(None).mallopt(which, 128 * 1024)
usual = faults()
assert keep_freed_memory()
faults()
print(usual, faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told to keep freed memory")
def test_pages_are_fetched_once_and_not_at_every_step() -> None:
    done = subprocess.run([sys.executable, "-c", COUNT], check=True, capture_output=True, text=True)
    usual, kept = map(int, done.stdout.split())
    assert usual > 10_000  # else there would be nothing to keep
    assert kept < usual / 100


def test_elsewhere_nothing_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    from relwalk.training.memory import keep_freed_memory

    monkeypatch.setattr(platform, "libc_ver", lambda: ("", ""))
    assert keep_freed_memory() is False
