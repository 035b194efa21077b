"""The number type of the large products, asked of the processor and never timed, and how they are made in it."""

from __future__ import annotations

import os
from typing import Literal

import torch
from torch import Tensor

from relwalk.errors import RelWalkError
from relwalk.machine import is_intel

Precision = Literal["auto", "float32", "bfloat16"]
OVERRIDE = "RELWALK_BFLOAT16"  # 1 or 0, in place of what the processor says: to repeat elsewhere what another chose


def choose_precision(precision: Precision, device: torch.device) -> torch.dtype:
    """bfloat16 where the processor makes its products faster, unless one of the two is asked for."""
    if precision == "auto":
        return torch.bfloat16 if favours_bfloat16(device) else torch.float32
    return {"float32": torch.float32, "bfloat16": torch.bfloat16}[precision]


def favours_bfloat16(device: torch.device) -> bool:
    """Whether products of bfloat16 are faster than those of float32: the same answer at every call.

    Its instructions alone do not make them so. Those of AVX-512 do twice the work of float32 on AMD's processors, and
    less than its work on Intel's, where they go through one of two units: 157 GFLOP/s beside 263 (square products of
    2048, 2 cores of a Xeon of model 207 without AMX).
    """
    forced = os.environ.get(OVERRIDE)
    if forced is not None:
        if forced not in ("0", "1"):
            raise RelWalkError(f"{OVERRIDE} is {forced!r}; expected 1 or 0. Unset it to ask the processor.")
        return forced == "1"
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return device.type == "cpu" and _cpu_multiplies_bfloat16() and (_has_amx() or not is_intel())


def _cpu_multiplies_bfloat16() -> bool:
    """AVX-512 with bfloat16, or AMX: with less, oneDNN makes the products by conversions, slower than in float32."""
    return torch.cpu._is_avx512_bf16_supported() or _has_amx()


def _has_amx() -> bool:
    return torch.cpu._is_amx_tile_supported()


def multiply(a: Tensor, b: Tensor, out: Tensor) -> None:
    """out = a b, in the factors' numbers or in float32. Of bfloat16 the sums are made in float32 and then rounded, on
    every processor.

    Without instructions for bfloat16 the factors, rounded already, are multiplied in float32: the same numbers but for
    the order of their sums, and several times faster than torch's own way.
    """
    if out.dtype == a.dtype and not _needs_float32(a):
        torch.mm(a, b, out=out)
    else:
        out.copy_(_product(a, b))


def add_product(out: Tensor, a: Tensor, b: Tensor) -> None:
    """out += a b, in float32 whatever the factors are."""
    if out.dtype == a.dtype:
        out.addmm_(a, b)
    else:
        out += _product(a, b)


def _product(a: Tensor, b: Tensor) -> Tensor:
    return (a.float() @ b.float()).to(a.dtype) if _needs_float32(a) else a @ b


def _needs_float32(factor: Tensor) -> bool:
    return factor.dtype == torch.bfloat16 and factor.device.type == "cpu" and not _cpu_multiplies_bfloat16()
