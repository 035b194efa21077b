"""The verbs on results: reproduce, record."""

from __future__ import annotations

import shlex
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from relwalk.checks import DIM
from relwalk.cli import console, options, runs


def reproduce(
    target: Annotated[str, typer.Argument(metavar="TARGET", help="table2, table3, figure1 or figure2 of the paper.")],
    dataset: Annotated[
        list[str] | None,
        typer.Option(metavar="GRAPH", help="wn18rr, fb15k-237, fb13, or any other graph; else the paper's."),
    ] = None,
    recipe: Annotated[str, typer.Option(help="Of RelWalk: paper, best or default.")] = "default",
    models: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="Which systems to train, with commas between; else all of the table."),
    ] = None,
    run: Annotated[
        list[Path] | None, typer.Option(metavar="RUN", help="A finished run to take in place of a training.")
    ] = None,
    seeds: Annotated[str, typer.Option(help="A training for each of these, with commas between.")] = "0",
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Settings in TOML, as relwalk compare takes them.")
    ] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Of every row, in place of its recipe's.")] = None,
    budget: Annotated[
        str | None, typer.Option(help="Time of training that every row has, as 90s, 20m, 1h or seconds.")
    ] = None,
    dim: Annotated[int | None, typer.Option(min=1, max=DIM, help="Dimension of the entities of every row.")] = None,
    out: Annotated[Path, typer.Option(help="Where runs, records, tables and figures go.")] = Path("runs/reproduce"),
    results: Annotated[
        Path | None, typer.Option(help="Where records and figures go instead, as results: see `make results`.")
    ] = None,
    data_dir: options.DataDir = None,
    force: Annotated[bool, typer.Option("--force", help="Begin these rows again.")] = False,
    as_json: options.Json = False,
) -> None:
    """Make a table or a figure of the paper again, and put its values, ours and the difference side by side.

    Each system is trained in a process of its own, judged by the paper's protocol and the standard one, and leaves a
    record; one that fails says why. Interrupted, it goes on when the same command is given again."""
    from relwalk.errors import Interrupted
    from relwalk.graph.read import read_graph
    from relwalk.reproduction.reproduce import reproduce as make
    from relwalk.reproduction.rows import DATASETS
    from relwalk.training.stopping import stop_on

    sources = [] if run else dataset or list(DATASETS.get(target, ()))
    graphs = {s: read_graph(s, data_dir=data_dir, progress=console.download_progress) for s in sources}
    with stop_on(signal.SIGINT, signal.SIGTERM, then=signal.SIG_DFL) as stop:
        try:
            found = make(
                target,
                graphs,
                recipe=recipe,
                models=None if models is None else [name.strip() for name in models.split(",")],
                runs=run or (),
                seeds=_numbers(seeds),
                config=config,
                epochs=epochs,
                budget=budget,
                dim=dim,
                out=out,
                results=results,
                force=force,
                progress=True,
                stop=stop,
            )
        except Interrupted:
            words = shlex.join(["relwalk", *(word for word in sys.argv[1:] if word != "--force")])
            console.note(f"interrupted, and all is saved; go on with: {words}")
            raise typer.Exit(128 + (stop.signal or signal.SIGINT)) from None
    console.result(found, as_json)
    console.note(f"saved {', '.join(found.files)}")


def _numbers(text: str) -> list[int]:
    from relwalk.errors import RelWalkError

    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise RelWalkError(f"seeds is {text[:80]!r}; expected whole numbers with commas between, as 0,1,2") from None


def record(
    run: options.RunFolder,
    out: Annotated[Path, typer.Option(help="The folder that the record goes to, under its own name.")] = Path(
        "results/records"
    ),
    command: Annotated[
        str, typer.Option(help="What made the run; else a command that takes the settings from the record.")
    ] = "",
    recipe: Annotated[
        str | None, typer.Option(help="A name for the settings; else the run's recipe, and where it departs from it.")
    ] = None,
    note: Annotated[str, typer.Option(help="What else should be known of it.")] = "",
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Keep what a finished run reaches on test as a record: figures by both protocols and of each relation, settings,
    seed, versions, machine, time. `relwalk train GRAPH --config RECORD.json` repeats it."""
    from relwalk.errors import RefusedOverwrite
    from relwalk.reproduction.measure import measure_run
    from relwalk.reproduction.record import write_result

    found = measure_run(runs.open_run(run), command, recipe=recipe, note=note, progress=True)
    path = out / f"{found.name}.json"
    if path.exists() and not force:
        raise RefusedOverwrite(path)
    write_result(out, found)
    console.result(found, as_json)
    console.note(f"saved {path}")
