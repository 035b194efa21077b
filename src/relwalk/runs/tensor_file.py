"""Safetensors files, looked at before they are read: what a header promises costs nothing to check."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from relwalk.errors import RunError

CURE = "Restore the file, or train again."
DTYPES = {  # the names that the format gives them
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.uint8: "U8",
    torch.int8: "I8",
}


class Spec(NamedTuple):
    """The type and the shape of a tensor, as a header has them: F32 and (100, 8)."""

    dtype: str
    shape: tuple[int, ...]

    @staticmethod
    def from_tensor(tensor: Tensor) -> Spec:
        return Spec(DTYPES.get(tensor.dtype, str(tensor.dtype)), tuple(tensor.shape))

    def __str__(self) -> str:
        return f"{self.dtype} {self.shape}"


def read_header(path: Path) -> tuple[dict[str, str], dict[str, Spec]]:
    """The metadata of a file, and the type and shape of each of its tensors. No tensor is read."""
    try:
        with safe_open(path, framework="pt") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            specs = {name: Spec(part.get_dtype(), tuple(part.get_shape())) for name, part in slices.items()}
            return dict(file.metadata() or {}), specs
    except (SafetensorError, OSError) as error:
        raise RunError(f"{path} is not a readable safetensors file ({error}). {CURE}") from error


def read_tensors(path: Path) -> dict[str, Tensor]:
    """All tensors of a file. Check the header first: here they take the memory that it promises."""
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise RunError(f"{path} is not a readable safetensors file ({error}). {CURE}") from error


def check_specs(path: Path, found: Mapping[str, Spec], expected: Mapping[str, Spec]) -> None:
    """Refuse a file that does not hold exactly these tensors, by the first that differs."""
    for name in [*expected, *(name for name in found if name not in expected)]:
        have, want = found.get(name), expected.get(name)
        if have != want:
            raise RunError(
                f"{path} does not fit the model: {name} is {have or 'not there'}; expected {want or 'none'}. {CURE}"
            )
