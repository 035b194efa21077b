"""The machine: what it is, and how fast its matrix products are at best.

The peak is that of square products in float32 and bfloat16, the best of a few sizes and repetitions. It is measured
once in every round of the benchmark, so that a machine whose clock changes is seen to do so; the best value counts,
which makes every share of it the smaller.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from pathlib import Path
from typing import TYPE_CHECKING

from process import Row, emit

if TYPE_CHECKING:
    import torch

SIZES = (512, 1024, 2048)
SLOW = 0.15  # seconds; a type that the machine only emulates is not tried at larger sizes


def describe() -> Row:
    """The processor and the units that matter here."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    flags = next((line.split(":", 1)[1].split() for line in lines if line.startswith("flags")), [])
    wanted = ("avx2", "fma", "avx512f", "avx512_bf16", "amx_bf16", "amx_tile")
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return {
        "cpu": names[0] if names else platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "units": [flag for flag in wanted if flag in flags],
        "memory_gb": round(memory, 1),
        "system": platform.system(),
        "python": platform.python_version(),
    }


def in_words(machine: Row) -> str:
    units = machine["units"]
    vector = "AVX-512" if "avx512f" in units else "AVX2" if "avx2" in units else "no AVX2"
    brain = "bfloat16" if "avx512_bf16" in units or "amx_bf16" in units else "no bfloat16"
    return f"{machine['cores']} cores of {machine['cpu']} ({vector}, {brain})"


def product_peak(dtype: torch.dtype, repeat: int = 6) -> float:
    """Operations per second of the best square product."""
    import torch

    best = 0.0
    for size in SIZES:
        a, b = torch.randn(size, size).to(dtype), torch.randn(size, size).to(dtype)
        out = torch.empty(size, size, dtype=dtype)
        fastest = float("inf")
        for _ in range(repeat):
            started = time.perf_counter()
            torch.mm(a, b, out=out)
            fastest = min(fastest, time.perf_counter() - started)
            if fastest > SLOW:
                break
        best = max(best, 2 * size**3 / fastest)
        if fastest > SLOW:
            break
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description="Print the peak of matrix products")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    import torch

    torch.set_num_threads(arguments.threads)
    emit({name: product_peak(getattr(torch, name)) / 1e9 for name in ("float32", "bfloat16")})


if __name__ == "__main__":
    main()
