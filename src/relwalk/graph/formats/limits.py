"""How much a packed file or a pipe may give: a file of kilobytes can unpack to more than a memory holds."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import IO

from relwalk.errors import GraphError

LEAST = 256 << 20  # a packed file may always give this much ...
RATIO = 100  # ... and this many times its own size; text is seldom packed to less than a thirtieth
PIPE = 4 << 30  # the size of a pipe is not known beforehand
RAISE_IT = "If it is meant to be so large, raise the limit: --max-unpacked 16GB (max_unpacked='16GB')."
UNITS = {
    "": 1,
    "k": 10**3,
    "m": 10**6,
    "g": 10**9,
    "t": 10**12,
    "ki": 1 << 10,
    "mi": 1 << 20,
    "gi": 1 << 30,
    "ti": 1 << 40,
}
_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([kmgt]i?)?b?\s*", re.IGNORECASE)


def parse_size(text: str | int) -> int:
    """Bytes from a number or from words such as 16GB, 500 MiB."""
    found = _SIZE.fullmatch(str(text))
    size = int(float(found[1]) * UNITS[(found[2] or "").lower()]) if found else 0
    if size < 1:
        raise GraphError(f"max_unpacked is {text!r}; expected a size above 0, such as 500MB or 16GB (--max-unpacked)")
    return size


def show_size(size: int) -> str:
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "KB")):
        if size >= unit:
            return f"{size / unit:,.1f} {name}"
    return f"{size} bytes"


def default_limit(path: Path) -> int:
    """The most bytes that a packed file gives when nothing else is said."""
    return max(LEAST, RATIO * path.stat().st_size)


def too_large(path: Path, limit: int) -> GraphError:
    return GraphError(
        f"{path}: found more than {show_size(limit)} when unpacked or read to its end; expected no more: a packed "
        f"file may give {show_size(LEAST)} or {RATIO} times its own size, a pipe {show_size(PIPE)}. {RAISE_IT}"
    )


class Bounded(io.RawIOBase):
    """A stream that ends in an error where it has given more bytes than its limit."""

    def __init__(self, file: IO[bytes], path: Path, limit: int) -> None:
        self.file, self.path, self.limit, self.given = file, path, limit, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        part = self.file.read(len(buffer))
        self.given += len(part)
        if self.given > self.limit:
            raise too_large(self.path, self.limit)
        buffer[: len(part)] = part
        return len(part)

    def close(self) -> None:
        self.file.close()
        super().close()
