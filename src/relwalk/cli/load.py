"""Reading a graph for a verb, and saying what was found."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, cast

from relwalk.cli import console
from relwalk.graph.graph import Graph
from relwalk.graph.read import read_graph


def load_graph(
    source: str, data_dir: Path | None, format: str | None, on_bad_line: str, valid: float, test: float, seed: int
) -> Graph:
    """Read a graph as the options say."""
    return read_graph(
        source,
        format=format,
        on_bad_line=cast(Literal["error", "skip"], on_bad_line),
        valid=valid,
        test=test,
        seed=seed,
        data_dir=data_dir,
        progress=console.download_progress,
    )


def say_graph(graph: Graph) -> None:
    """What was read, and what the reader noticed."""
    console.note("\n  ".join([str(graph), *graph.notes]))
