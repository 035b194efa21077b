"""The kinds of column that the text formats hold, each checked twice: whole by polars, field by field by hand.

`convert` answers a whole column quickly, or None when some value is wrong; `expects` then finds the one to blame.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import polars as pl

LARGEST_ID = 2**31 - 1
_NUMBER = re.compile(r"\+?[0-9]{1,18}")


class Column(Protocol):
    """One column of a text table."""

    @property
    def name(self) -> str: ...

    @property
    def dtype(self) -> type[pl.DataType]: ...

    @property
    def needed(self) -> bool: ...

    def convert(self, values: pl.Series) -> pl.Series | None: ...

    def expects(self, field: str) -> str | None:
        """None for a good field, else what was expected in its place."""
        ...


@dataclass(frozen=True)
class Names:
    """Names as they stand: nothing is stripped, and nothing but the empty string is no name."""

    name: str
    dtype: type[pl.DataType] = pl.String
    needed: bool = True

    def convert(self, values: pl.Series) -> pl.Series | None:
        return None if values.has_nulls() else values

    def expects(self, field: str) -> str | None:
        if not field:
            return f"a {self.name} that is not empty"
        return f"a {self.name} without the byte NUL" if "\0" in field else None


@dataclass(frozen=True)
class KnownNames:
    """Names that an id map lists; they become its ids."""

    name: str
    known: Sequence[str]
    listed_in: str
    dtype: type[pl.DataType] = pl.String
    needed: bool = True

    def convert(self, values: pl.Series) -> pl.Series | None:
        ids = values.to_frame("name").join(self._table, on="name", how="left", maintain_order="left")["id"]
        return None if ids.has_nulls() else ids

    def expects(self, field: str) -> str | None:
        return None if field in self._set else f"a {self.name} that {self.listed_in} lists"

    @cached_property
    def _table(self) -> pl.DataFrame:
        ids = np.arange(len(self.known), dtype=np.int32)
        return pl.DataFrame({"name": pl.Series(self.known, dtype=pl.String), "id": ids})

    @cached_property
    def _set(self) -> frozenset[str]:
        return frozenset(self.known)


@dataclass(frozen=True)
class Ids:
    """Whole numbers from 0 to below `size`."""

    name: str
    size: int = LARGEST_ID
    dtype: type[pl.DataType] = pl.Int64
    needed: bool = True

    def convert(self, values: pl.Series) -> pl.Series | None:
        if values.has_nulls():
            return None
        return values.cast(pl.Int32) if values.is_between(0, self.size - 1).all() else None

    def expects(self, field: str) -> str | None:
        number = field.strip(" \t")
        if _NUMBER.fullmatch(number) and int(number) < self.size:
            return None
        return f"a {self.name} id from 0 to {self.size - 1}"


@dataclass(frozen=True)
class Labels:
    """1 for a true triple, -1 for a false one."""

    name: str = "label"
    dtype: type[pl.DataType] = pl.String
    needed: bool = True

    def convert(self, values: pl.Series) -> pl.Series | None:
        true = values == "1"
        return true if not values.has_nulls() and (true | (values == "-1")).all() else None

    def expects(self, field: str) -> str | None:
        return None if field in ("1", "-1") else "a label 1 or -1 at the end"


@dataclass(frozen=True)
class Ignored:
    """A column that is of no concern here; it may be empty, or missing at the end of a line."""

    name: str
    dtype: type[pl.DataType] = pl.String
    needed: bool = False

    def convert(self, values: pl.Series) -> pl.Series | None:
        return values

    def expects(self, field: str) -> str | None:
        return None
