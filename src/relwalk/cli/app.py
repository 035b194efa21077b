"""`relwalk`: parse, call, print. Heavy imports wait until a verb needs them."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Any

import typer
from typer.core import TyperGroup

from relwalk import __version__
from relwalk.cli import compare, compress, console, discover, graphs, models, report, reproduce, serve, theory
from relwalk.cli.failures import memory_words, os_words
from relwalk.cli.printable import one_line
from relwalk.cli.streams import ReaderLeft, prepare_streams
from relwalk.errors import OtherRankFailed, RelWalkError
from relwalk.launch import is_first, several


class Verbs(TyperGroup):
    """`train` and `tune` have a flag for every setting, which are gathered only when they are called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[:1] == ["train"]:
            from relwalk.cli.training import command

            self.commands["train"] = command(models.train.__doc__ or "")
        if args[:1] == ["tune"]:
            from relwalk.cli import tune

            self.commands["tune"] = tune.command(models.tune.__doc__ or "")
        return super().resolve_command(ctx, args)


app = typer.Typer(
    name="relwalk",
    cls=Verbs,
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
app.command("tune")(models.tune)
app.command("resume")(models.resume)
app.command("evaluate")(models.evaluate)
app.command("classify")(models.classify)
app.command("predict")(models.predict)
app.command("discover")(discover.discover)
app.command("export")(models.export)
app.command("compress")(compress.compress)
app.command("analyse")(theory.analyse)
app.command("walk")(theory.walk)
app.command("generate")(theory.generate)
app.command("report")(report.report)
app.command("reproduce")(reproduce.reproduce)
app.command("record")(reproduce.record)
app.command("serve")(serve.serve)
app.command("models")(compare.models)
app.command("compare")(compare.compare)
app.command("info")(graphs.info)
app.command("datasets")(graphs.datasets)
app.command("convert")(graphs.convert)
app.command("walk2vec")(graphs.walk2vec)


SHARED = ("train", "resume", "evaluate", "predict", "discover")  # verbs that several processes do together


def main() -> None:
    """The entry point: 0 for success, 1 for an error of the user's or of the machine, 2 for a wrong command line."""
    prepare_streams(silent=not is_first())
    try:
        sys.exit(_status())
    except Exception as error:
        if several():
            traceback.print_exc()
        _tell_others(f"{type(error).__name__}: {error}", own=True)
        raise


def _status() -> str | int | None:
    """Run the verb. Whatever the user, the system or the machine can cause ends here, as one line and a number."""
    own = True  # not another process's failure
    try:
        try:
            if several():
                _join(sys.argv[1:2])
            app()
            return 0
        except SystemExit as left:
            return left.code
        finally:
            sys.stdout.flush()  # now, where a full disk and a reader who left can still be told apart
    except RelWalkError as error:
        words, own = str(error), not isinstance(error, OtherRankFailed)
    except ReaderLeft:
        return 0
    except OSError as error:
        words = os_words(error)
    except KeyboardInterrupt:
        console.note("relwalk: interrupted")
        return 130
    except (MemoryError, RuntimeError) as error:
        if (found := memory_words(error)) is None:
            raise
        words = found
    console.note(f"relwalk: {one_line(words)}")
    _tell_others(words, own=own)
    return 1


def _join(verb: list[str]) -> None:
    """Join the other processes before anything can go wrong; a verb that each would do by itself is refused."""
    if verb and verb[0] not in SHARED:
        raise RelWalkError(
            f"{verb[0]} is done by one process: call it without torchrun. Several do {', '.join(SHARED)} together."
        )
    from relwalk.sharded.processes import processes

    processes()


def _tell_others(words: str, *, own: bool) -> None:
    """Of several processes, rank 0 says what went wrong in any of them, and all end, this one here."""
    if several():
        from relwalk.sharded.world import tell_failure

        tell_failure(one_line(words), own=own)
        sys.stderr.flush()
        os._exit(1)  # an orderly end would wait seconds for what connects it to the others
