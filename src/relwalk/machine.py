"""The machine that figures of time and memory are from."""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path
from typing import Any


@cache
def is_intel() -> bool:
    """Whether its processor is one of Intel's."""
    return any("intel" in str(name).lower() for name in (this_machine()["processor"], platform.processor()))


def this_machine() -> dict[str, Any]:
    """Its system, processor, instructions for products, and cores."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    flags = next((line for line in lines if line.startswith("flags")), "")
    vector = "AVX-512" if " avx512f" in flags else "AVX2" if " avx2" in flags else "no AVX2"
    rounded = "bfloat16" if "avx512_bf16" in flags or "amx_bf16" in flags else "no bfloat16"
    return {
        "system": platform.platform(),
        "processor": names[0] if names else platform.machine(),
        "instructions": f"{vector}, {rounded}" if flags else None,
        "cores": os.cpu_count(),
    }


def machine_in_words() -> str:
    """The cores, the processor and its instructions, as a document says them."""
    found = this_machine()
    instructions = f" ({found['instructions']})" if found["instructions"] else ""
    return f"{found['cores']} cores of {found['processor']}{instructions}"
