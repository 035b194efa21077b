"""RDF: N-Triples and Turtle. Their parser is loaded with the first such file, as it takes 10 MB."""

from __future__ import annotations

from pathlib import Path

from relwalk.graph.formats.base import Format, Options
from relwalk.graph.formats.source import uncompressed
from relwalk.graph.raw import RawGraph


def is_nt(path: Path, _: Options) -> bool:
    return path.is_file() and uncompressed(path).suffix.lower() == ".nt"


def is_ttl(path: Path, _: Options) -> bool:
    return path.is_file() and uncompressed(path).suffix.lower() == ".ttl"


def read_nt(path: Path, options: Options) -> RawGraph:
    from relwalk.graph.formats.rdf_parser import read_rdf

    return read_rdf(path, options, "nt")


def read_ttl(path: Path, options: Options) -> RawGraph:
    from relwalk.graph.formats.rdf_parser import read_rdf

    return read_rdf(path, options, "ttl")


NT = Format("nt", "one N-Triples file, also .gz or .zst", is_nt, read_nt)
TTL = Format("ttl", "one Turtle file, also .gz or .zst", is_ttl, read_ttl)
