"""The number type of the large products, chosen by timing both."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

import torch

Precision = Literal["auto", "float32", "bfloat16"]
ROUNDS = 5
GAIN = 1.3  # how much faster bfloat16 must be to be worth its rounding


def choose_precision(precision: Precision, device: torch.device) -> torch.dtype:
    """bfloat16 where a measured check finds it clearly faster than float32, unless one of them is asked for."""
    if precision != "auto":
        return {"float32": torch.float32, "bfloat16": torch.bfloat16}[precision]
    gain = speed_gain(_product(torch.float32, device), _product(torch.bfloat16, device))
    return torch.bfloat16 if gain > GAIN else torch.float32


def speed_gain(usual: Callable[[], object], other: Callable[[], object]) -> float:
    """How many times faster the other is: each once to wake it up, then in turn, the best of each."""
    usual()
    other()
    best, best_other = float("inf"), float("inf")
    for _ in range(ROUNDS):
        best = min(best, _seconds(usual))
        best_other = min(best_other, _seconds(other))
        if best_other > 10 * best:  # emulated: no need to wait for the rest
            break
    return best / best_other


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _product(dtype: torch.dtype, device: torch.device) -> Callable[[], float]:
    """A small product of the shape that training makes."""
    q, e = torch.ones(256, 128, dtype=dtype, device=device), torch.ones(1024, 128, dtype=dtype, device=device)
    return lambda: (q @ e.T)[0, 0].item()
