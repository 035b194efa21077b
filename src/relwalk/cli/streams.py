"""Standard input, output and error as every verb may rely on them: open, of any encoding, safe to print names to."""

from __future__ import annotations

import codecs
import io
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from relwalk.cli.printable import printable

ESCAPE = "relwalk.escape"  # what to do with a character that the encoding of a stream does not have


class ReaderLeft(Exception):
    """Nobody reads standard output any more, as in `relwalk info world | head -1`: nothing to complain about."""


def prepare_streams(*, silent: bool = False) -> None:
    """Put streams in place of the three of Python that cannot break a verb. Done once, before anything is printed.

    Of several processes all but one are silent.
    """
    codecs.register_error(ESCAPE, _escape)
    for number in range(3):
        _keep_open(number)
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), encoding="utf-8")
    sys.stdout = _replaced(sys.stdout, 1, Output)
    sys.stderr = _replaced(sys.stderr, 2, Notes)
    if silent:
        _silence(1)
        _silence(2)


class Output(io.TextIOWrapper):
    """Results. A failure names the stream, and ends what is printed there for good."""

    def write(self, text: str, /) -> int:
        with self._told():
            return super().write(printable(text))

    def flush(self) -> None:
        with self._told():
            super().flush()

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            _silence(self.fileno())  # what is left unwritten must not fail again when Python ends
            if isinstance(error, BrokenPipeError):
                raise ReaderLeft from error
            error.filename = "standard output"
            raise


class Notes(io.TextIOWrapper):
    """Everything else. A log on a full disk or a terminal that is gone is no reason to lose a training."""

    def write(self, text: str, /) -> int:
        with self._given_up():
            super().write(text)
        return len(text)

    def flush(self) -> None:
        with self._given_up():
            super().flush()

    @contextmanager
    def _given_up(self) -> Iterator[None]:
        try:
            yield
        except OSError:
            _silence(self.fileno())


def _replaced(old: TextIO | None, number: int, kind: type[io.TextIOWrapper]) -> io.TextIOWrapper:
    encoding = (old.encoding if old is not None else None) or "utf-8"
    if codecs.lookup(encoding).name == "ascii":  # a system that says nothing of its encoding
        encoding = "utf-8"
    if old is not None:
        old.flush()
    raw = io.FileIO(number, "w", closefd=False)
    return kind(io.BufferedWriter(raw), encoding=encoding, errors=ESCAPE, line_buffering=number == 2 or raw.isatty())


def _keep_open(number: int) -> None:
    """Give a closed stream its number back, before a file of ours takes it and gets what was meant for a terminal."""
    try:
        os.fstat(number)
    except OSError:
        _silence(number)


def _silence(number: int) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    if null != number:
        os.dup2(null, number)
        os.close(null)


def _escape(error: UnicodeError) -> tuple[str, int]:
    """\\uXXXX, as JSON writes it: what was JSON stays JSON."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end
