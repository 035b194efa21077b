"""How much a zstd file can unpack to, from the headers of its frames and blocks (RFC 8878), without unpacking it."""

from __future__ import annotations

from pathlib import Path
from typing import IO

from relwalk.errors import GraphError

MAGIC = b"\x28\xb5\x2f\xfd"
LARGEST_BLOCK = 128 << 10  # what a compressed block gives at most
RAW, RUN, COMPRESSED = 0, 1, 2


def exceeds(path: Path, limit: int) -> bool:
    """Whether a file may unpack to more than `limit` bytes. False is a promise: no decoder gives more.

    A compressed block counts as the most it can give, so true says "may": of files as zstd writes them the last block
    alone is counted too high. A file that is cut ends the count; unpacking it will fail.
    """
    found = 0
    with path.open("rb") as file:
        while found <= limit:
            size = _frame_bound(file, path, limit - found)
            if size is None:
                return False
            found += size
    return True


def _frame_bound(file: IO[bytes], path: Path, limit: int) -> int | None:
    """The most that the next frame gives, counted to just above `limit`; None at the end of the file."""
    magic = file.read(4)
    if len(magic) < 4:
        return None
    if magic[1:] == b"\x2a\x4d\x18" and magic[0] >> 4 == 5:  # a frame to be skipped
        file.seek(_number(file, 4), 1)
        return 0
    if magic != MAGIC:
        raise GraphError(
            f"{path}: found the bytes {magic!r} at {file.tell() - 4}; expected {MAGIC!r}, a zstd frame. Fetch it again."
        )
    has_checksum, block = _read_frame_header(file)
    found, last = 0, False
    while not last and found <= limit:
        header = _number(file, 3)
        last, kind, size = bool(header & 1), header >> 1 & 3, header >> 3
        found += block if kind == COMPRESSED else size
        _skip(file, 1 if kind == RUN else size)
        last = last or not file.peek(1)  # type: ignore[attr-defined]
    _skip(file, 4 if has_checksum else 0)
    return found


def _read_frame_header(file: IO[bytes]) -> tuple[bool, int]:
    """Whether a checksum ends the frame, and the most that one of its blocks gives."""
    descriptor = _number(file, 1)
    single = bool(descriptor >> 5 & 1)
    window = 0 if single else _window(_number(file, 1))
    _skip(file, (0, 1, 2, 4)[descriptor & 3])  # the id of a dictionary
    width = (int(single), 2, 4, 8)[descriptor >> 6]
    content = _number(file, width) + (256 if width == 2 else 0)
    return bool(descriptor >> 2 & 1), min(content if single else window, LARGEST_BLOCK)


def _window(descriptor: int) -> int:
    base = 1 << (10 + (descriptor >> 3))
    return base + base // 8 * (descriptor & 7)


def _number(file: IO[bytes], width: int) -> int:
    return int.from_bytes(file.read(width), "little")


def _skip(file: IO[bytes], count: int) -> None:
    file.seek(count, 1)
