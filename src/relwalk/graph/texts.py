"""Many strings in one block of bytes: a million names take their letters and four bytes each, not a hundred."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

SEPARATOR = b"\0"  # between two strings; one may have it too, as their ends are known
AT_A_TIME = 1 << 12  # ends looked at together by an iteration


def joined(texts: Iterable[str]) -> bytes:
    """All of them with a separator between two."""
    return SEPARATOR.decode().join(texts).encode("utf-8", "surrogatepass")


class Texts(Sequence[str]):
    """A frozen sequence of strings, made of bytes when they are asked for; a slice of it is a tuple."""

    def __init__(self, data: bytes, starts: NDArray[np.integer]) -> None:
        """`data` are all of them in UTF-8 with a separator between two, `starts` where each begins, and a last one."""
        self.data, self._starts = data, starts

    def __len__(self) -> int:
        return len(self._starts) - 1

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...
    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(len(self))))
        place = range(len(self))[index]  # also from the end; IndexError beyond it
        return self.data[self._starts[place] : self._starts[place + 1] - 1].decode()

    def __iter__(self) -> Iterator[str]:
        for first in range(0, len(self), AT_A_TIME):
            ends = self._starts[first : first + AT_A_TIME + 1].tolist()
            yield from (self.data[a : b - 1].decode() for a, b in pairwise(ends))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Texts):
            return self.data == other.data and np.array_equal(self._starts, other._starts)
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"<Texts: {len(self):,} strings>"


class MaybeTexts(Sequence[str | None]):
    """The same, where some are not there: `texts` are those that are."""

    def __init__(self, texts: Texts, there: NDArray[np.bool_]) -> None:
        self.texts, self.there = texts, there
        self._place = np.cumsum(there, dtype=np.int32) - 1

    def __len__(self) -> int:
        return len(self.there)

    @overload
    def __getitem__(self, index: int) -> str | None: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[str | None, ...]: ...
    def __getitem__(self, index: int | slice) -> str | tuple[str | None, ...] | None:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(len(self))))
        return self.texts[self._place[index]] if self.there[index] else None

    def __iter__(self) -> Iterator[str | None]:
        own = iter(self.texts)
        return (next(own) if there else None for there in self.there)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))


class Packer:
    """Takes strings as UTF-8, and makes `Texts` of them."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._ends: list[NDArray[np.integer]] = [np.zeros(1, np.uint32)]
        self.count = 0

    def add(self, texts: Iterable[bytes]) -> None:
        """Some, one after the other."""
        own = list(texts)
        self._took(len(self._data) + np.cumsum([len(text) + 1 for text in own], dtype=np.int64))
        self._data += b"".join(text + SEPARATOR for text in own)

    def add_lines(self, lines: bytes) -> None:
        """Some that have no line end in them, and one behind each."""
        ends = np.flatnonzero(np.frombuffer(lines, np.uint8) == ord("\n"))
        self._took(len(self._data) + ends + 1)
        self._data += lines.replace(b"\n", SEPARATOR)

    def _took(self, ends: NDArray[np.int64]) -> None:
        small = len(ends) == 0 or ends[-1] < 1 << 32
        self._ends.append(ends.astype(np.uint32) if small else ends)
        self.count += len(ends)

    def texts(self) -> Texts:
        """All of them. UnicodeDecodeError where one is no UTF-8."""
        self._data.decode()
        return Texts(bytes(self._data[:-1]), np.concatenate(self._ends))


class TextIndex:
    """Where each of some texts stands: eight bytes a text, by their hashes in order.

    `text_of` gives the text of a place again, to compare it: none of them is kept here.
    """

    def __init__(self, texts: Iterable[Any], count: int, text_of: Callable[[int], str | None]) -> None:
        hashes = np.fromiter(map(hash, texts), np.int64, count).astype(np.uint32)  # half of it tells enough apart
        self._order = np.argsort(hashes, kind="stable").astype(np.int32)
        self._hashes, self._text_of = hashes[self._order], text_of

    def places(self, text: str) -> list[int]:
        """The places that have this text, ascending."""
        wanted = np.int64(hash(text)).astype(np.uint32)
        first = int(np.searchsorted(self._hashes, wanted))
        found = []
        while first < len(self._hashes) and self._hashes[first] == wanted:
            place = int(self._order[first])
            if self._text_of(place) == text:
                found.append(place)
            first += 1
        return found
