"""The verbs on results: record."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from relwalk.cli import console, options, runs


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
