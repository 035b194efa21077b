"""`relwalk`: parse, call, print. Heavy imports wait until a verb needs them."""

from __future__ import annotations

import sys

import typer

from relwalk import __version__
from relwalk.cli import graphs, models, report, theory
from relwalk.errors import RelWalkError

app = typer.Typer(
    name="relwalk",
    help="Knowledge-graph embeddings whose scores are probabilities.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"relwalk {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", help="Print the version.", callback=_version, is_eager=True),
) -> None:
    pass


app.command("train")(models.train)
app.command("resume")(models.resume)
app.command("evaluate")(models.evaluate)
app.command("classify")(models.classify)
app.command("predict")(models.predict)
app.command("export")(models.export)
app.command("analyse")(theory.analyse)
app.command("walk")(theory.walk)
app.command("generate")(theory.generate)
app.command("report")(report.report)
app.command("info")(graphs.info)
app.command("datasets")(graphs.datasets)
app.command("convert")(graphs.convert)


def main() -> None:
    """The entry point: 0 for success, 1 for an error of the user's, 2 for a wrong command line."""
    try:
        app()
    except RelWalkError as error:
        typer.echo(f"relwalk: {error}", err=True)
        sys.exit(1)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output left: nothing to complain about
        sys.exit(0)
    except KeyboardInterrupt:
        typer.echo("relwalk: interrupted", err=True)
        sys.exit(130)
