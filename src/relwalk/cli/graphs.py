"""The verbs on graphs: info, datasets, convert."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from relwalk.cli import console, options


@options.with_reading
def info(
    graph: options.GraphSource,
    as_json: options.Json = False,
    *,
    reading: options.Reading,
) -> None:
    """Say what is in a graph: counts, cardinalities, duplicates, overlap, unseen entities, leakage."""
    from relwalk.cli.load import load_graph
    from relwalk.graph.statistics import describe

    loaded = load_graph(graph, reading)
    console.result(describe(loaded), as_json)


def datasets(as_json: options.Json = False, data_dir: options.DataDir = None) -> None:
    """List the named graphs and where they are."""
    from relwalk.graph.datasets import DATASETS, status

    rows = [
        {
            "name": d.name,
            "entities": d.entities,
            "relations": d.relations,
            "train": d.train,
            "valid": d.valid,
            "test": d.test,
            "status": status(d.name, data_dir),
            "description": d.description,
        }
        for d in DATASETS.values()
    ]
    if as_json:
        typer.echo(json.dumps({"datasets": rows}, ensure_ascii=False))
        return
    head = f"{'name':12}{'entities':>10}{'relations':>11}{'train':>10}{'valid':>8}{'test':>8}  where"
    lines = [
        f"{r['name']:12}{r['entities']:>10,}{r['relations']:>11,}{r['train']:>10,}{r['valid']:>8,}{r['test']:>8,}"
        f"  {r['status']}"
        for r in rows
    ]
    typer.echo("\n".join([head, *lines]))


@options.with_reading
def convert(
    graph: options.GraphSource,
    out: Annotated[Path, typer.Argument(help="The folder or file to write.")],
    to: Annotated[str, typer.Option(help="plain, openke, libkge, rotate, socher, parquet or nt.")] = "plain",
    force: options.Force = False,
    *,
    reading: options.Reading,
) -> None:
    """Write a graph in another layout."""
    from relwalk.cli.load import load_graph, say_graph
    from relwalk.graph.write import lost_in, write_graph

    loaded = load_graph(graph, reading)
    say_graph(loaded)
    for loss in lost_in(loaded, to):
        console.note(f"  {to} cannot hold {loss}: left out")
    for path in write_graph(loaded, out, to, force=force):
        typer.echo(str(path))
