"""From a data set's name, a path or data in memory to a Graph."""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

import numpy as np
import polars as pl

from relwalk.errors import GraphError, choose
from relwalk.graph.datasets import DATASETS, locate
from relwalk.graph.download import Progress
from relwalk.graph.formats import FORMATS, OnBadLine, detect, read_memory
from relwalk.graph.formats.source import translated
from relwalk.graph.graph import Graph
from relwalk.graph.lists import Ints
from relwalk.graph.raw import RawGraph, index
from relwalk.graph.split import split_triples

ON_BAD_LINE: dict[str, OnBadLine] = {"error": "error", "skip": "skip"}


def read_graph(
    source: object,
    *,
    format: str | None = None,
    on_bad_line: OnBadLine = "error",
    valid: float = 0.1,
    test: float = 0.1,
    seed: int = 0,
    data_dir: Path | None = None,
    name: str | None = None,
    progress: Progress | None = None,
) -> Graph:
    """Read a graph from a named data set ("wn18rr"), a path, or data in memory.

    A string that names a known data set means the data set: write "./wn18rr" for a folder of that name. The format
    is detected unless `format` names one of FORMATS. A graph in one piece is freed of duplicates and split by
    `valid`, `test` (shares) and `seed`. What was detected, skipped and made up stands in `Graph.notes`.
    """
    choice = choose("on_bad_line", on_bad_line, ON_BAD_LINE)
    if isinstance(source, str | Path):
        raw = _read_named(source, format, choice, data_dir, progress)
    else:
        raw = read_memory(source, choice)
    graph = index(replace(raw, name=raw.name if name is None else name))
    return _split(graph, valid=valid, test=test, seed=seed) if raw.whole else graph


def _read_named(
    source: str | Path, format: str | None, on_bad_line: OnBadLine, data_dir: Path | None, progress: Progress | None
) -> RawGraph:
    if isinstance(source, str) and source in DATASETS:
        folder = locate(source, data_dir=data_dir, progress=progress)
        return replace(_read_path(folder, format, on_bad_line), name=source)
    return _read_path(Path(source), format, on_bad_line)


def _read_path(path: Path, format: str | None, on_bad_line: OnBadLine) -> RawGraph:
    with translated(path):
        chosen = choose("format", format, FORMATS) if format is not None else None
        if not path.exists():
            raise GraphError(_missing(path))
        path = path.resolve() if path.name in ("", "..") else path  # "." has no name of its own
        return (chosen or detect(path)).read(path, on_bad_line)


def _missing(path: Path) -> str:
    nearest = get_close_matches(path.name, DATASETS, n=1, cutoff=0.5)
    offer = f" Did you mean {nearest[0]!r}?" if nearest else ""
    return (
        f"{path} does not exist and is no named data set.{offer} "
        f"Give the path of a file or folder, or one of the data sets {', '.join(DATASETS)}."
    )


def _split(graph: Graph, *, valid: float, test: float, seed: int) -> Graph:
    """One piece into train, valid and test, each triple once."""
    distinct = _distinct(graph.train, len(graph.entities), len(graph.relations))
    parts = split_triples(distinct, valid=valid, test=test, seed=seed)
    counts = " / ".join(f"{len(part):,}" for part in parts)
    notes = [f"split by seed {seed} into {counts} triples for train / valid / test"]
    duplicates = len(graph.train) - len(distinct)
    if duplicates:
        notes.insert(0, f"dropped {duplicates:,} duplicate triples")
    return replace(graph, train=parts[0], valid=parts[1], test=parts[2], notes=(*graph.notes, *notes))


def _distinct(triples: Ints, entities: int, relations: int) -> Ints:
    """Each triple once, in the order of first appearance."""
    if entities * entities * relations >= 2**63:  # too many for one key of 64 bits
        rows = pl.from_numpy(triples, schema=["h", "r", "t"], orient="row").unique(maintain_order=True)
        return rows.to_numpy()
    head, relation, tail = (triples[:, column].astype(np.int64) for column in range(3))
    keys = pl.Series((head * relations + relation) * entities + tail).unique(maintain_order=True).to_numpy()
    pairs, tail = np.divmod(keys, entities)
    return np.stack([*np.divmod(pairs, relations), tail], axis=1).astype(np.int32)  # (n, 3)
