"""Where large tensors are: in memory, or in files that are mapped into it.

Of a mapped tensor the system holds in memory what is used, and writes out what was changed when it needs the room. Its
file has no name, and is gone with the process, however that ends.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

SMALL = 1 << 12  # bytes that no file is made for
BLOCK = 1 << 22  # numbers that are worked on at a time: 16 MB

_starts: set[int] = set()  # addresses of what is mapped


class Room:
    """Memory."""

    def empty(self, shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.empty(shape, dtype=dtype)

    def full_like(self, tensor: Tensor, value: float) -> Tensor:
        return torch.full_like(tensor, value)

    def copy(self, tensor: Tensor) -> Tensor:
        return tensor.detach().clone()


class DiskRoom(Room):
    """Files of a folder, for all that is not small and not on another device."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def empty(self, shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> Tensor:
        size = dtype.itemsize * torch.Size(shape).numel()
        return super().empty(shape, dtype) if size < SMALL else self._mapped(size, dtype).view(shape)

    def full_like(self, tensor: Tensor, value: float) -> Tensor:
        if tensor.device.type != "cpu":
            return super().full_like(tensor, value)
        return self.empty(tuple(tensor.shape), tensor.dtype).fill_(value)

    def copy(self, tensor: Tensor) -> Tensor:
        if tensor.device.type != "cpu":
            return super().copy(tensor)
        return self.empty(tuple(tensor.shape), tensor.dtype).copy_(tensor.detach())

    def _mapped(self, size: int, dtype: torch.dtype) -> Tensor:
        with tempfile.TemporaryFile(dir=self.folder) as file:
            if hasattr(os, "posix_fallocate"):  # a full disk is told now, and does not end the process later
                os.posix_fallocate(file.fileno(), 0, size)
            else:
                file.truncate(size)
            view = mmap.mmap(file.fileno(), size)
        tensor = torch.frombuffer(view, dtype=dtype)
        _starts.add(start := tensor.data_ptr())
        weakref.finalize(view, _starts.discard, start)
        return tensor


MEMORY = Room()


def is_mapped(tensor: Tensor) -> bool:
    """Whether a tensor is one of a `DiskRoom`."""
    return tensor.untyped_storage().data_ptr() in _starts


def nearest_folder(path: Path) -> Path:
    """The folder itself, or the nearest one above it that is there already."""
    return next(folder for folder in (path, *path.absolute().parents) if folder.is_dir())


def blocks(tensor: Tensor) -> Iterator[Tensor]:
    """The rows of a tensor, some at a time, as views of it."""
    if tensor.dim() == 0:
        yield tensor
        return
    yield from torch.split(tensor, max(1, BLOCK // max(1, tensor[:1].numel())))


def all_finite(tensor: Tensor) -> bool:
    """Whether all of it are numbers; without room for as many again."""
    return all(bool(part.isfinite().all()) for part in blocks(tensor))
