"""The file formats that relwalk reads, one line each.

To add one: write a function that reads it into a RawGraph and one that recognises it, and list them here. The
first format that recognises a path is taken, so the special ones come before the general ones.
"""

from __future__ import annotations

from pathlib import Path

from relwalk.errors import GraphError
from relwalk.graph.formats.base import Format, OnBadLine, Options, listing
from relwalk.graph.formats.memory import read_memory
from relwalk.graph.formats.named import PLAIN, SOCHER
from relwalk.graph.formats.numbered import LIBKGE, ROTATE
from relwalk.graph.formats.openke import OPENKE
from relwalk.graph.formats.parquet import PARQUET
from relwalk.graph.formats.rdf import NT, TTL
from relwalk.graph.formats.single import CSV, TSV
from relwalk.graph.formats.source import is_pipe

FORMATS: dict[str, Format] = {
    "openke": OPENKE,
    "libkge": LIBKGE,
    "rotate": ROTATE,
    "socher": SOCHER,
    "plain": PLAIN,
    "parquet": PARQUET,
    "csv": CSV,
    "nt": NT,
    "ttl": TTL,
    "tsv": TSV,
}

__all__ = ["FORMATS", "Format", "OnBadLine", "Options", "detect", "read_memory"]


def detect(path: Path, options: Options | None = None) -> Format:
    """The format of a file or folder, by the names of its files and a look at their first lines."""
    for format in FORMATS.values():
        if format.detects(path, options or Options()):
            return format
    if path.is_dir():
        inside = listing(sorted(child.name for child in path.iterdir()))
        raise GraphError(
            f"{path}: found {inside}; expected training triples: train.txt, train.tsv, train, train.parquet, "
            "train.del with its id maps, or train2id.txt with its own. Point to the folder that holds them."
        )
    if is_pipe(path):
        raise GraphError(
            f"{path}: found a pipe; expected the name of its format beside it: --format tsv (or csv, nt, ...)"
        )
    raise GraphError(
        f"{path}: found the suffix {path.suffix or 'none'!r}; expected .tsv, .txt, .csv, .parquet, .nt or .ttl, "
        f"maybe with .gz or .zst. Rename the file, or name its format: {', '.join(FORMATS)}."
    )
