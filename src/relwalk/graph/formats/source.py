"""Bytes and lines of a file that may be compressed; and no foreign exception beyond this package."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import IO, Any

import polars as pl

from relwalk.errors import BadLine, GraphError
from relwalk.graph.formats.base import shorten

MAGIC = {".gz": b"\x1f\x8b", ".zst": b"\x28\xb5\x2f\xfd"}
BOM = b"\xef\xbb\xbf"
FOREIGN = (OSError, EOFError, zlib.error, UnicodeError, pl.exceptions.PolarsError, pl.exceptions.PanicException)


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn what libraries and the system raise about a file into a GraphError that names it."""
    try:
        yield
    except FOREIGN as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise GraphError(
            f"{path} cannot be read: {reason}. Expected a complete, readable file; fetch or write it again."
        ) from error


def uncompressed(path: Path) -> Path:
    """The path without .gz or .zst."""
    return path.with_suffix("") if path.suffix.lower() in MAGIC else path


def check_compression(path: Path) -> None:
    """A file called .gz or .zst must be one: polars would read any other bytes as text."""
    magic = MAGIC.get(path.suffix.lower())
    if magic is None:
        return
    with path.open("rb") as file:
        start = file.read(len(magic))
    if start != magic:
        raise GraphError(
            f"{path}: found the bytes {start!r} at its start; expected {magic!r}, as in every {path.suffix} file. "
            f"Drop {path.suffix} from its name if it is not compressed, or fetch it again."
        )


def open_bytes(path: Path) -> IO[bytes]:
    """The uncompressed bytes of a text file."""
    if path.is_dir():
        raise GraphError(f"{path}: found a folder; expected a file. Name a file of it, or the format of the folder.")
    check_compression(path)
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rb")  # type: ignore[return-value]
    if path.suffix.lower() == ".zst":
        return _unpack_zst(path)
    return path.open("rb")


def lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Line numbers and lines without their ends; blank lines are left out. Only LF and CR LF end a line."""
    with open_bytes(path) as file:
        yield from _lines(file)


def first_lines(path: Path, count: int) -> list[tuple[int, bytes]]:
    """The first lines that are not blank, as `lines` gives them; a look that does not unpack a large file."""
    if path.suffix.lower() == ".zst":
        check_compression(path)
        return list(islice(_lines(_unpack_zst(path, count + 100)), count))
    return list(islice(lines(path), count))


def _lines(file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(file, start=1):
        line = line.removesuffix(b"\n").removesuffix(b"\r")
        if number == 1:
            line = line.removeprefix(BOM)
        if line.strip(b" "):
            yield number, line


def read_lines(path: Path, **options: Any) -> pl.Series:
    """All lines as polars sees them, a blank line as null. A separator that ends lines never occurs within one."""
    frame = pl.read_csv(
        path,
        has_header=False,
        separator="\n",
        quote_char=None,
        schema={"line": pl.String},
        glob=False,
        raise_if_empty=False,
        **options,
    )
    return frame["line"]


def _unpack_zst(path: Path, count: int | None = None) -> BytesIO:
    """Unpack by polars, the only zstd decoder at hand; it knows text alone."""
    try:
        unpacked, mark = read_lines(path, n_rows=count), b""
    except pl.exceptions.ComputeError:
        # Not UTF-8: let U+FFFD, which a lossy reading puts in its place, be seen as a bad byte again.
        unpacked, mark = read_lines(path, n_rows=count, encoding="utf8-lossy"), b"\xff"
    buffer = BytesIO()
    for part in unpacked.fill_null("").to_frame().iter_slices(100_000):
        text = "\n".join(part["line"].to_list()).encode() + b"\n"
        buffer.write(text.replace("\ufffd".encode(), mark) if mark else text)
    buffer.seek(0)
    return buffer


def not_utf8(path: Path, number: int, line: bytes) -> BadLine:
    """The error of a line whose bytes are no text."""
    return BadLine(
        path,
        number,
        found=f"bytes that are not UTF-8: {shorten(line.decode(errors='backslashreplace'))}",
        expected="UTF-8 text",
        cure="Save the file as UTF-8, or leave such lines out with on_bad_line='skip'.",
    )
