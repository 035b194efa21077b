"""Safetensors files, looked at before they are read: what a header promises costs nothing to check.

Read, they are mapped from the file; written, they go there as they are: neither takes the memory of what they hold.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from relwalk.errors import RunError
from relwalk.files import atomic_file

CURE = "Restore the file, or train again."
DTYPES = {  # the names that the format gives them, in the order in which they stand in a file
    torch.int64: "I64",
    torch.float64: "F64",
    torch.float32: "F32",
    torch.int32: "I32",
    torch.bfloat16: "BF16",
    torch.float16: "F16",
    torch.int8: "I8",
    torch.uint8: "U8",
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
    """All tensors of a file, mapped: what is used of them takes memory, what is changed no longer follows the file."""
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise RunError(f"{path} is not a readable safetensors file ({error}). {CURE}") from error


def file_parts(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> Iterator[memoryview]:
    """The bytes of a file, as the library writes them: the header, then each tensor as it lies in memory."""
    places = list(DTYPES)
    order = sorted(tensors, key=lambda name: (places.index(tensors[name].dtype), name))
    header: dict[str, object] = {"__metadata__": dict(sorted(metadata.items()))} if metadata is not None else {}
    begin, values = 0, {name: tensors[name].detach().cpu().contiguous() for name in order}
    for name, value in values.items():
        spec, end = Spec.from_tensor(value), begin + value.numel() * value.element_size()
        header[name] = {"dtype": spec.dtype, "shape": list(spec.shape), "data_offsets": [begin, end]}
        begin = end
    words = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    words += b" " * (-len(words) % 8)
    yield memoryview(len(words).to_bytes(8, "little") + words)
    yield from (value.reshape(-1).view(torch.uint8).numpy().data for value in values.values())


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> None:
    """Write a file that is whole or not there; what it holds is not copied on the way."""
    with atomic_file(path) as file:
        for part in file_parts(tensors, metadata):
            file.write(part)


def check_specs(path: Path, found: Mapping[str, Spec], expected: Mapping[str, Spec]) -> None:
    """Refuse a file that does not hold exactly these tensors, by the first that differs."""
    for name in [*expected, *(name for name in found if name not in expected)]:
        have, want = found.get(name), expected.get(name)
        if have != want:
            raise RunError(
                f"{path} does not fit the model: {name} is {have or 'not there'}; expected {want or 'none'}. {CURE}"
            )
