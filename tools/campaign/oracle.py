"""A second, slow reading of tab-separated triples, to compare the first one with."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path

import zstandard

from relwalk.graph.graph import Graph
from tools.campaign.fault import Fault, shorten
from tools.campaign.graphs import HEADINGS, named, united

# What the notes begin with where nothing was left out or made up.
TOLD = ("read as ", "split by ", "dropped ", "warning: valid has nothing of ", "warning: test has nothing of ")
WORDS = {word for heading in HEADINGS if heading for word in heading}
LARGEST = 50_000_000
Rows = list[list[str]]


def check_nothing_silent(graph: Graph, path: Path) -> None:
    """Where the notes tell of nothing but text files with names, every line of them is a triple, and no other is."""
    kind, _, files = graph.notes[0].removeprefix("read as ").partition(": ") if graph.notes else ("", "", "")
    if kind not in ("plain", "rotate", "tsv") or not all(note.startswith(TOLD) for note in graph.notes):
        return
    found = named(graph)
    if kind == "tsv":
        rows = naive_rows(path)
        if rows and WORDS.intersection(rows[0]):
            heading, *rows = rows
            if tuple(heading) not in HEADINGS:  # its columns may stand in any order, with others between
                return
        _compare("all", united(found)["all"], [list(row) for row in sorted({tuple(row) for row in rows})])
        return
    for part, name in zip(("train", "valid", "test"), files.split(", "), strict=False):
        if (path / name).is_file() and name.startswith((part, "dev")):
            _compare(name, found[part], sorted(naive_rows(path / name)))


def _compare(where: str, found: Rows, expected: Rows) -> None:
    if found != expected:
        odd = next((row for row in (*expected, *found) if expected.count(row) != found.count(row)), [])
        counts = f"{len(found)} triples read, {len(expected)} lines there"
        raise Fault("a silent difference", f"{where}: {counts}; {shorten(repr(odd))} is not in both")


def naive_rows(path: Path) -> Rows:
    """The fields of every line that is not blank."""
    data = path.read_bytes()
    unpack = UNPACK.get(path.suffix.lower())
    try:
        text = (unpack(data) if unpack is not None else data).decode("utf-8")
    except (zlib.error, zstandard.ZstdError, EOFError, UnicodeDecodeError) as error:
        raise Fault("read though it is damaged", f"{path.name}: {error}") from error
    lines = [line.removesuffix("\r") for line in text.removeprefix("\ufeff").split("\n")]
    return [line.split("\t") for line in lines if line.strip(" ")]


def _gunzip(data: bytes) -> bytes:
    """Every member, each with its checksum; what follows the last one does not count, as for gzip itself."""
    unpacked = b""
    while data[:2] == b"\x1f\x8b":
        member = zlib.decompressobj(wbits=31)
        unpacked += member.decompress(data, LARGEST)
        if not member.eof:
            raise EOFError("the file ends too early")
        data = member.unused_data
    return unpacked


def _unzstd(data: bytes) -> bytes:
    unpacked = b""
    while data[:4] == b"\x28\xb5\x2f\xfd":
        frame = zstandard.ZstdDecompressor().decompressobj()
        unpacked += frame.decompress(data)
        if not frame.eof:
            raise EOFError("the file ends too early")
        data = frame.unused_data
    return unpacked


UNPACK: dict[str, Callable[[bytes], bytes]] = {".gz": _gunzip, ".zst": _unzstd}
