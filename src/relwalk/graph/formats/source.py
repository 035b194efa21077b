"""Bytes and lines of a file that may be packed or a pipe; and no foreign exception beyond this package."""

from __future__ import annotations

import gzip
import io
import shutil
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

import polars as pl

from relwalk.errors import BadLine, GraphError
from relwalk.graph.formats import zstd
from relwalk.graph.formats.base import shorten
from relwalk.graph.formats.encoding import START, check_encoding
from relwalk.graph.formats.limits import PIPE, Bounded, default_limit, too_large
from relwalk.graph.formats.pipe import Pipe

MAGIC = {".gz": b"\x1f\x8b", ".zst": zstd.MAGIC}
BOM = b"\xef\xbb\xbf"
CHUNK = 1 << 22
RESERVED_FLAGS = 0xE0  # of a gzip header; zero by RFC 1952, which Python's own reader does not look at
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


def is_pipe(path: Path) -> bool:
    """Whether a path leads to a pipe, as <(zcat f) does: it can be read once only."""
    return path.exists() and stat.S_ISFIFO(path.stat().st_mode)


@dataclass(frozen=True)
class Source:
    """One file, read as the plain bytes in it: as they are, unpacked (.gz, .zst), or from a pipe.

    `limit` is the most bytes that a packed file or a pipe may give; when it is not given, the default of `limits`.
    """

    path: Path
    limit: int | None = None

    def __post_init__(self) -> None:
        if self.path.is_dir():
            raise GraphError(
                f"{self.path}: found a folder; expected a file. Name a file of it, or the format of the folder."
            )
        if self.path.is_char_device() or self.path.is_block_device():
            raise GraphError(f"{self.path}: found a device; expected a file or a pipe. Write its data to a file first.")
        self._check_magic()

    @property
    def name(self) -> str:
        return str(self.path) if self.is_pipe else self.path.name

    @property
    def stem(self) -> str:
        """What a graph in this file is called."""
        return "pipe" if self.is_pipe else uncompressed(self.path).stem

    @cached_property
    def is_pipe(self) -> bool:
        return is_pipe(self.path)

    @cached_property
    def data(self) -> bytes | None:
        """The plain bytes, where they are not those on disk."""
        if self._suffix == ".zst":
            return self._unpack_zst()
        if not self.is_pipe and self._suffix != ".gz":
            return None
        found = BytesIO()
        with self._stream() as file:
            shutil.copyfileobj(file, found, CHUNK)
        return found.getvalue()

    def for_polars(self) -> Path | bytes:
        """What to hand to a reader of polars."""
        return self.path if self.data is None else self.data

    def open(self) -> IO[bytes]:
        """The plain bytes of a text."""
        packed = "data" in self.__dict__ or self.is_pipe or self._suffix == ".zst"
        file = BytesIO(self.data) if packed and self.data is not None else self._stream()
        try:
            start = bytes(file.getbuffer()[:START]) if isinstance(file, BytesIO) else file.peek(START)[:START]
            check_encoding(self.path, start)
        except BaseException:
            file.close()
            raise
        return cast(IO[bytes], file)

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Line numbers and lines without their ends; blank lines are left out. Only LF and CR LF end a line."""
        with self.open() as file:
            yield from _lines(file)

    def first_lines(self, count: int) -> list[tuple[int, bytes]]:
        """The first lines that are not blank, as `lines` gives them; a look that does not unpack a large file."""
        if self._suffix == ".zst" and "data" not in self.__dict__:
            start = self._unpack_zst(count + 100)
            check_encoding(self.path, start[:START])
            return list(islice(_lines(BytesIO(start)), count))
        return list(islice(self.lines(), count))

    def holds(self, mark: bytes) -> bool:
        """Whether these bytes occur anywhere."""
        if self.data is not None:
            return mark in self.data
        with self.path.open("rb") as file:
            end = b""  # of the chunk before: a mark may begin there
            while chunk := file.read(CHUNK):
                if mark in end + chunk[: len(mark) - 1] or mark in chunk:
                    return True
                end = chunk[len(chunk) - len(mark) + 1 :]
        return False

    def ends_with(self, mark: bytes) -> bool:
        """Whether these are the last bytes."""
        if self.data is not None:
            return self.data.endswith(mark)
        with self.path.open("rb") as file:
            file.seek(max(0, file.seek(0, io.SEEK_END) - len(mark)))
            return file.read() == mark

    def blank_lines(self, after: int) -> int:
        """How many lines behind the first `after` ones polars sees as blank."""
        return _read_lines(self.for_polars()).slice(after).null_count()

    @property
    def _suffix(self) -> str:
        return "" if self.is_pipe else self.path.suffix.lower()

    def _check_magic(self) -> None:
        """A file called .gz or .zst must be one."""
        magic = MAGIC.get(self._suffix)
        if magic is None:
            return
        with self.path.open("rb") as file:
            start, more = file.read(len(magic)), file.read(2)
        if self._suffix == ".gz" and start == magic and len(more) == 2 and more[1] & RESERVED_FLAGS:
            raise GraphError(
                f"{self.path} cannot be read: found the flags {more[1]:#04x} in its header; expected none above 0x1f, "
                "as in every gzip file. It is damaged: fetch it again."
            )
        if start != magic:
            raise GraphError(
                f"{self.path}: found the bytes {start!r} at its start; expected {magic!r}, as in every {self._suffix} "
                f"file. Drop {self._suffix} from its name if it is not compressed, or fetch it again."
            )

    def _stream(self) -> io.BufferedReader:
        if self.is_pipe:
            return io.BufferedReader(Bounded(cast(IO[bytes], Pipe(self.path)), self.path, self.limit or PIPE), CHUNK)
        if self._suffix != ".gz":
            return self.path.open("rb")
        limit = self.limit or default_limit(self.path)
        return io.BufferedReader(Bounded(cast(IO[bytes], gzip.open(self.path, "rb")), self.path, limit), CHUNK)

    def _unpack_zst(self, count: int | None = None) -> bytes:
        """Unpack by polars, the only zstd decoder at hand; it knows text alone, and has no limit of its own."""
        limit = self.limit or default_limit(self.path)
        if zstd.exceeds(self.path, limit):
            raise too_large(self.path, limit)
        try:
            unpacked, mark = _read_lines(self.path, n_rows=count), b""
        except pl.exceptions.ComputeError:
            # Not UTF-8: let U+FFFD, which a lossy reading puts in its place, be seen as a bad byte again.
            unpacked, mark = _read_lines(self.path, n_rows=count, encoding="utf8-lossy"), b"\xff"
        buffer = BytesIO()
        # Polars has taken a CR off the end of each line. What ends in another must not lose that too.
        end = "\r\n" if unpacked.str.ends_with("\r").any() else "\n"
        unpacked.to_frame().write_csv(buffer, include_header=False, quote_style="never", line_terminator=end)
        return buffer.getvalue().replace("\ufffd".encode(), mark) if mark else buffer.getvalue()


def open_bytes(path: Path) -> IO[bytes]:
    """The plain bytes of a text file."""
    return Source(path).open()


def _lines(file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    number = 0
    begun: list[bytes] = []  # of a line that the chunks so far have not ended
    while chunk := file.read(CHUNK):
        ends = chunk.count(b"\n")
        if not begun and (ends == len(chunk) or (2 * ends == len(chunk) and chunk.count(b"\r\n") == ends)):
            number += ends  # a packed file of a few megabytes can hold a billion blank lines
            continue
        first, *lines = chunk.split(b"\n")
        begun.append(first)
        for line in lines:
            number += 1
            yield from _not_blank(number, b"".join(begun))
            begun = [line]
        if begun == [b""]:
            begun = []
    yield from _not_blank(number + 1, b"".join(begun))


def _not_blank(number: int, line: bytes) -> Iterator[tuple[int, bytes]]:
    line = line.removesuffix(b"\r")
    if number == 1:
        line = line.removeprefix(BOM)
    if line.strip(b" "):
        yield number, line


def _read_lines(source: Path | bytes, **options: Any) -> pl.Series:
    """All lines as polars sees them, a blank line as null. A separator that ends lines never occurs within one."""
    frame = pl.read_csv(
        source,
        has_header=False,
        separator="\n",
        quote_char=None,
        schema={"line": pl.String},
        glob=False,
        raise_if_empty=False,
        **options,
    )
    return frame["line"]


def not_utf8(path: Path, number: int, line: bytes) -> BadLine:
    """The error of a line whose bytes are no text."""
    return BadLine(
        path,
        number,
        found=f"bytes that are not UTF-8: {shorten(line.decode(errors='backslashreplace'))}",
        expected="UTF-8 text",
        cure="Save the file as UTF-8, or leave such lines out with on_bad_line='skip'.",
    )
