"""Lists of integers of different lengths in two flat arrays (compressed sparse rows)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]


def distinct(values: Longs) -> Longs:
    """The distinct values, ascending. `np.unique` hashes before it sorts, far slower on ten million keys."""
    ascending = np.sort(values)
    new = np.ones(len(ascending), np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=new[1:])
    return ascending[new]


@dataclass(frozen=True)
class Lists:
    """List `i` is `values[offsets[i] : offsets[i + 1]]`, ascending and without repetition."""

    offsets: Longs  # (lists + 1,)
    values: Ints  # (offsets[-1],)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> Ints:
        return self.values[self.offsets[index] : self.offsets[index + 1]]

    @property
    def lengths(self) -> Longs:
        return np.diff(self.offsets)

    @staticmethod
    def group(keys: NDArray[np.integer], values: NDArray[np.integer], rows: int) -> Lists:
        """List `k` holds the distinct values that stand beside key `k`, for k < rows."""
        if len(keys) == 0:
            return Lists(np.zeros(rows + 1, np.int64), np.zeros(0, np.int32))
        width = int(values.max()) + 1
        packed = distinct(keys.astype(np.int64) * width + values)
        row, value = np.divmod(packed, width)
        offsets = np.zeros(rows + 1, np.int64)
        np.cumsum(np.bincount(row, minlength=rows), out=offsets[1:])
        return Lists(offsets, value.astype(np.int32))

    def take(self, rows: NDArray[np.integer]) -> Lists:
        """The lists of the given rows, one after the other; a row of -1 is an empty list."""
        present = rows >= 0
        starts = np.where(present, self.offsets[rows], 0)
        lengths = np.where(present, self.offsets[rows + 1] - self.offsets[rows], 0)
        offsets = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        positions = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
        return Lists(offsets, self.values[positions])

    def row_of_each_value(self) -> Longs:
        return np.repeat(np.arange(len(self)), self.lengths)
