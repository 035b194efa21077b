"""What the verbs print, and where: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import sys
from typing import Any

import typer

from relwalk.cli.printable import printable


def result(value: Any, as_json: bool) -> None:
    """Print a result that knows `as_dict` and `str`."""
    typer.echo(json.dumps(value.as_dict(), ensure_ascii=False) if as_json else str(value))


def note(text: str) -> None:
    typer.echo(printable(text), err=True)


def download_progress(name: str, done: int, total: int | None) -> None:
    """How far a file has come: a line that rewrites itself on a terminal, elsewhere one line when it is whole."""
    whole = total is not None and done >= total
    text = f"fetching {name}: {done / 1e6:.1f} MB" + (f" of {total / 1e6:.1f}" if total else "")
    if sys.stderr.isatty():
        typer.echo(f"\r{printable(text)}", err=True, nl=whole)
    elif whole:
        note(text)
