"""CSV rows whose fields stand in quotes, by Python's reader: it knows where each row begins."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from relwalk.errors import BadLine
from relwalk.graph.formats.base import SKIP_CURE, Journal
from relwalk.graph.formats.source import BOM, Source, not_utf8

NEVER_CLOSED = "unexpected end of data"


def quoted_rows(source: Source, header: bool, journal: Journal) -> Iterator[tuple[int, list[str]]]:
    """The line on which each row begins, and its fields; without the first row if it is a header."""
    path = source.path
    with source.open() as file:
        reader = csv.reader(_decoded(file), strict=True)
        while True:
            begin = reader.line_num + 1
            try:
                row = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                _report(path, begin, str(error), journal)
                continue
            if len(row) < 2 and not "".join(row).strip(" "):
                continue
            if header:
                header = False
            elif not _is_utf8(row):
                journal.bad(not_utf8(path, begin, ",".join(row).encode(errors="surrogateescape")))
            else:
                yield begin, row


def _decoded(file: IO[bytes]) -> Iterator[str]:
    for number, line in enumerate(file):
        line = line.removeprefix(BOM) if number == 0 else line
        yield line.removesuffix(b"\n").removesuffix(b"\r").decode(errors="surrogateescape") + "\n"


def _is_utf8(row: list[str]) -> bool:
    try:
        "".join(row).encode()
    except UnicodeEncodeError:
        return False
    return True


def _report(path: Path, line: int, problem: str, journal: Journal) -> None:
    if problem == NEVER_CLOSED:  # the rest of the file is inside the quotes: too much to skip
        found, cure = "a quote that is never closed", "Close it, or double it if it belongs to a name."
        raise BadLine(path, line, found=found, expected="fields whose quotes close", cure=cure)
    journal.bad(BadLine(path, line, found=problem, expected="comma-separated fields", cure=SKIP_CURE))
