"""`relwalk report`: one page about a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from relwalk.checks import DIRECTIONS
from relwalk.cli import console, options, runs


def report(
    run: options.RunFolder,
    out: Annotated[Path | None, typer.Option(help="The page; report.html in the run's folder when not given.")] = None,
    relation: Annotated[
        list[str] | None, typer.Option(help="A relation to draw in detail; may be said several times.")
    ] = None,
    truth: options.Truth = None,
    directions: Annotated[
        int, typer.Option(min=10, max=DIRECTIONS, help="Knowledge vectors drawn by the analysis.")
    ] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything drawn at random.")] = 0,
    device: options.Device = "cpu",
    anyway: options.Anyway = False,
    force: options.Force = False,
) -> None:
    """One HTML page about a run: figures, relations, predictions, a map, and how far the theory holds."""
    from relwalk.errors import RefusedOverwrite, RelWalkError
    from relwalk.files import atomic_file
    from relwalk.reporting import make_report
    from relwalk.runs.folder import REPORT, writing_into

    path = out if out is not None else run / REPORT
    if path.exists() and (path.is_dir() or not force):
        raise RefusedOverwrite(path)
    loaded = runs.open_run(run, device=device, anyway=anyway)
    if not path.parent.is_dir():
        raise RelWalkError(f"{path.parent} is not a folder. Make it, or choose another --out.")
    # Opened first: what cannot be written is not worth making.
    with writing_into(path.parent), atomic_file(path) as file:
        page = make_report(
            loaded, relations=relation or (), truth=truth, directions=directions, seed=seed, progress=console.note
        )
        file.write(page.encode("utf-8", "replace"))  # a name that is no Unicode text cannot be written as it is
    typer.echo(str(path))
