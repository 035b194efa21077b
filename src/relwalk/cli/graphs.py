"""The verbs on graphs: info, datasets, convert, walk2vec."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from relwalk.checks import DIM
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


@options.with_reading
def walk2vec(
    graph: options.GraphSource,
    out: Annotated[Path, typer.Argument(help="The file, or the folder (parquet, projector), to write.")],
    method: Annotated[str, typer.Option(help="deepwalk, node2vec or rdf2vec.")] = "deepwalk",
    dim: Annotated[int, typer.Option(min=1, max=DIM, help="Dimension of the vectors.")] = 128,
    walks: Annotated[int | None, typer.Option(min=1, help="Walks from each entity; else 10, or 200 (rdf2vec).")] = None,
    length: Annotated[int | None, typer.Option(min=2, help="Entities on a walk; else 40, or 5 (rdf2vec).")] = None,
    window: Annotated[
        int | None, typer.Option(min=1, help="How far apart tokens are learned together; else 5.")
    ] = None,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over all walks.")] = 1,
    p: Annotated[float | None, typer.Option(help="node2vec: above 1 goes back less, below more; else 1.")] = None,
    q: Annotated[float | None, typer.Option(help="node2vec: above 1 stays near, below goes far; else 1.")] = None,
    inverse: Annotated[
        bool | None, typer.Option("--inverse", help="rdf2vec: walk triples from tail to head as well.")
    ] = None,
    to: Annotated[str, typer.Option(help="npz, safetensors, parquet, word2vec or projector.")] = "npz",
    seed: Annotated[int, typer.Option(min=0, help="Seed of walks and vectors.")] = 0,
    force: options.Force = False,
    as_json: options.Json = False,
    *,
    reading: options.Reading,
) -> None:
    """Entity vectors from random walks: DeepWalk, node2vec, RDF2vec. `relwalk train --start-entities` reads them."""
    from relwalk.cli.load import load_graph, say_graph
    from relwalk.errors import RefusedOverwrite, choose
    from relwalk.exports import EXPORTERS, export
    from relwalk.graph.write import in_the_way
    from relwalk.walk2vec import walk_vectors

    choose("export format", to, EXPORTERS)
    if not force and in_the_way(out):  # before anything is learned
        raise RefusedOverwrite(out)
    loaded = load_graph(graph, reading)
    say_graph(loaded)
    found = walk_vectors(
        loaded,
        method,
        dim=dim,
        walks=walks,
        length=length,
        window=window,
        epochs=epochs,
        p=p,
        q=q,
        inverse=inverse,
        seed=seed,
        progress=True,
    )
    files = [str(path) for path in export(found, out, to, force=force)]
    console.note(str(found))
    typer.echo(json.dumps({**found.as_dict(), "files": files}, ensure_ascii=False) if as_json else "\n".join(files))
