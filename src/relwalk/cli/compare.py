"""The verbs about several models: models, compare."""

from __future__ import annotations

import json
import shlex
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from relwalk.checks import DIM
from relwalk.cli import console, options


def models(
    dim: Annotated[int, typer.Option(min=1, max=DIM, help="The dimension that numbers are counted at.")] = 128,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON list on standard output, nothing else.")] = False,
) -> None:
    """List the models: formula, paper, size, what each can express, the objectives that fit it, its options."""
    from relwalk.catalogue import describe_models

    found = describe_models(dim)
    typer.echo(json.dumps(found.as_dict()["models"], ensure_ascii=False) if as_json else str(found))


@options.with_reading
def compare(
    graph: options.GraphSource,
    models: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Which models, with commas between; all when not given.")
    ] = None,
    budget: Annotated[
        str, typer.Option(help="Time of training that each model has, as 90s, 10m, 1h or seconds.")
    ] = "10m",
    dim: Annotated[int | None, typer.Option(min=1, max=DIM, help="Dimension of the entities of every model.")] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Settings in TOML: at its top for all models, in a table [name] for one. With model = ... in it, a "
            "table may have any name: the same model with other settings.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Where runs, compare.json and compare.html go; else runs/compare-<graph>.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of everything random.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Begin again where another comparison is in the way.")] = False,
    as_json: options.Json = False,
    *,
    reading: options.Reading,
) -> None:
    """Train models for the same time, rank test with each, and put the figures side by side.

    Each model has a process of its own, and the best epoch on valid is kept; one that fails is a row that says why.
    Validation and ranking are not counted as time. Interrupted, it goes on when the same command is given again."""
    from relwalk import comparing
    from relwalk.cli.load import load_graph, say_graph
    from relwalk.errors import Interrupted
    from relwalk.training.stopping import stop_on

    loaded = load_graph(graph, reading)
    say_graph(loaded)
    path = out if out is not None else Path("runs") / f"compare-{loaded.name}"
    names = None if models is None else [name.strip() for name in models.split(",")]
    with stop_on(signal.SIGINT, signal.SIGTERM, then=signal.SIG_DFL) as stop:
        try:
            found = comparing.compare(
                loaded,
                models=names,
                budget=budget,
                dim=dim,
                config=config,
                out=path,
                seed=seed,
                force=force,
                source=graph,
                progress=True,
                stop=stop,
            )
        except Interrupted:
            words = shlex.join(["relwalk", *sys.argv[1:]])
            console.note(f"interrupted, and all is saved; go on with: {words}")
            raise typer.Exit(128 + (stop.signal or signal.SIGINT)) from None
    console.note(f"saved {path / comparing.COMPARE_PAGE}")
    console.result(found, as_json)
