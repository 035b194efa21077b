"""`relwalk train`: a flag for every setting of a training, from where it is declared.

Made only when the verb is called: the settings come with torch, and `relwalk --help` does not wait for that.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Container
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from typer.core import TyperCommand

from relwalk import experiment
from relwalk.checks import DIM
from relwalk.cli import console, options, runs
from relwalk.cli.load import load_graph, say_graph
from relwalk.keywords import Keyword, all_keywords, with_parameters
from relwalk.models import MODELS
from relwalk.recipes import RECIPES
from relwalk.runs.folder import other_files
from relwalk.training.memory import keep_freed_memory

FIRST = "Options people use first"
PANELS = (FIRST, "Model", "Objective", "Optimization", "Data", "Output")


def train(
    graph: options.GraphSource,
    out: Annotated[
        Path | None, typer.Option(help="Where the run goes; runs/<graph> when not given.", rich_help_panel=FIRST)
    ] = None,
    model: Annotated[str | None, typer.Option(help=f"The model: {', '.join(MODELS)}.", rich_help_panel=FIRST)] = None,
    dim: Annotated[
        int | None, typer.Option(min=1, max=DIM, help="Dimension of the entities.", rich_help_panel=FIRST)
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Settings by name in TOML, or the run.json of a run to be repeated; flags come before it.",
            rich_help_panel=FIRST,
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace what is in the way.", rich_help_panel=FIRST)] = False,
    recipe: Annotated[
        str | None,
        typer.Option(
            help=f"Settings that belong together: {', '.join(RECIPES)}; else default.", rich_help_panel="Model"
        ),
    ] = None,
    device: Annotated[
        str, typer.Option(help="Where to compute: cpu, cuda, cuda:1, ...", rich_help_panel="Optimization")
    ] = "cpu",
    on_disk: Annotated[bool, typer.Option("--on-disk", help=options.ON_DISK, rich_help_panel="Output")] = False,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="One JSON object on standard output, nothing else.", rich_help_panel="Output"),
    ] = False,
    *,
    reading: options.Reading,
    **settings: Any,
) -> None:
    loaded = load_graph(graph, reading)
    say_graph(loaded)
    keep_freed_memory()
    path = out if out is not None else Path("runs") / loaded.name
    kept = other_files(path)
    given = {name: value for name, value in settings.items() if value is not None}
    with runs.stoppable(path) as stop:
        run = experiment.train(
            loaded,
            recipe=recipe,
            model=model,
            dim=dim,
            config=config,
            out=path,
            force=force,
            device=device,
            on_disk=on_disk,
            progress=True,
            stop=stop,
            source=graph,
            **given,
        )
    if kept:
        console.note(f"left as it was, from before this run: {', '.join(kept)}")
    runs.say_trained(run, as_json)


class Paneled(TyperCommand):
    """Help in panels, those options on top that people use first."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        panels: dict[str, list[tuple[str, str]]] = {name: [] for name in ("Arguments", *PANELS)}
        for parameter in self.get_params(ctx):
            place = "Arguments" if parameter.param_type_name == "argument" else "Output"
            record = parameter.get_help_record(ctx)
            if record is not None:
                panels[getattr(parameter, "rich_help_panel", None) or place].append(record)
        for name, records in panels.items():
            with formatter.section(name):
                formatter.write_dl(records)


def flag(keyword: Keyword) -> inspect.Parameter:
    """The flag of a setting: not given unless said, of its type, with all that is known of it as help."""
    option = typer.Option(
        *keyword.flags,
        help=keyword.sentence[:1].upper() + keyword.sentence[1:] + ".",
        rich_help_panel=FIRST if keyword.first else keyword.panel,
    )
    annotation = Annotated[_plain(keyword.annotation) | None, option]  # type: ignore[valid-type]
    return inspect.Parameter(keyword.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _plain(annotation: Any) -> Any:
    """What a word of the command line is made into: int for `int | None`, str for names to choose from."""
    if get_origin(annotation) is Literal:
        return str
    return next((part for part in get_args(annotation) if part is not NoneType), annotation)


def with_flags(verb: Callable[..., None], *, without: Container[str] = ()) -> Callable[..., None]:
    """A verb with a flag for every setting of a training."""
    flags = [flag(keyword) for keyword in all_keywords().values() if keyword.name not in without]
    return options.with_reading(with_parameters(verb, flags))


def made_command(name: str, verb: Callable[..., None], words: str) -> Any:
    """A verb as a command by itself; `words` say what it does."""
    made = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    made.command(name, cls=Paneled, help=words)(verb)
    return typer.main.get_command(made)


VERB = with_flags(train)


def command(words: str) -> Any:
    """The verb with all its flags; `words` say what it does."""
    return made_command("train", VERB, words)
