"""Reading a graph for a verb, and saying what was found."""

from __future__ import annotations

from typing import Literal, cast

from relwalk.cli import console
from relwalk.cli.options import Reading
from relwalk.graph.graph import Graph
from relwalk.graph.judgements import with_judgements
from relwalk.graph.read import read_graph


def load_graph(source: str, reading: Reading) -> Graph:
    """Read a graph as the options say."""
    graph = read_graph(
        source,
        format=reading.format,
        columns=reading.columns,
        header=reading.header,
        on_bad_line=cast(Literal["error", "skip"], reading.on_bad_line),
        max_unpacked=reading.max_unpacked,
        valid=reading.valid,
        test=reading.test,
        seed=reading.split_seed,
        data_dir=reading.data_dir,
        progress=console.download_progress,
    )
    return graph if reading.judged is None else with_judgements(graph, reading.judged)


def say_graph(graph: Graph) -> None:
    """What was read, and what the reader noticed."""
    console.note("\n  ".join([str(graph), *graph.notes]))
