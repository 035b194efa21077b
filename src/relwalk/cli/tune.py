"""`relwalk tune`: search for settings, with a flag for each that is to be fixed.

Made only when the verb is called, as `relwalk.cli.training` is.
"""

from __future__ import annotations

import shlex
import signal
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from relwalk.checks import DIM
from relwalk.cli import console, options
from relwalk.cli.load import load_graph, say_graph
from relwalk.cli.training import FIRST, made_command, with_flags
from relwalk.errors import Interrupted, RelWalkError
from relwalk.models import MODELS
from relwalk.recipes import RECIPES
from relwalk.training.stopping import stop_on
from relwalk.tuning.folder import PAGE
from relwalk.tuning.tune import MOST_JOBS
from relwalk.tuning.tune import tune as search


def tune(
    graph: options.GraphSource,
    budget: Annotated[
        str, typer.Option(help="Time of the whole search, as 90s, 10m, 1h or seconds.", rich_help_panel=FIRST)
    ] = "1h",
    model: Annotated[str | None, typer.Option(help=f"The model: {', '.join(MODELS)}.", rich_help_panel=FIRST)] = None,
    trials: Annotated[
        int | None, typer.Option(min=1, help="Trainings, at most; else what the time allows.", rich_help_panel=FIRST)
    ] = None,
    jobs: Annotated[
        int, typer.Option(min=1, max=MOST_JOBS, help="Processes that share the work.", rich_help_panel=FIRST)
    ] = 1,
    out: Annotated[
        Path | None, typer.Option(help="Where it goes; runs/tune-<graph> when not given.", rich_help_panel=FIRST)
    ] = None,
    dim: Annotated[
        int | None, typer.Option(min=1, max=DIM, help="Dimension of the entities, if fixed.", rich_help_panel="Model")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Settings to be fixed, by name in TOML; flags come before it.", rich_help_panel=FIRST
        ),
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option(
            help=f"What the first trial is, and the rest begins from: {', '.join(RECIPES)}; else default.",
            rich_help_panel="Model",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Begin again where another search is in the way.", rich_help_panel=FIRST)
    ] = False,
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
    path = out if out is not None else Path("runs") / f"tune-{loaded.name}"
    given = {name: value for name, value in settings.items() if value is not None}
    with stop_on(signal.SIGINT, signal.SIGTERM, then=signal.SIG_DFL) as stop:
        try:
            found = search(
                loaded,
                budget=budget,
                model=model,
                trials=trials,
                jobs=jobs,
                recipe=recipe,
                dim=dim,
                config=config,
                out=path,
                force=force,
                progress=True,
                stop=stop,
                source=graph,
                **given,
            )
        except Interrupted:
            words = shlex.join(["relwalk", *(word for word in sys.argv[1:] if word != "--force")])
            console.note(f"interrupted, and all is saved; go on with: {words}")
            raise typer.Exit(128 + (stop.signal or signal.SIGINT)) from None
    console.result(found, as_json)
    console.note(f"saved {path / PAGE}")
    if found.best is None:
        reasons = "; ".join(f"trial {t.number} {t.status}: {t.reason}" for t in found.trials[:3])
        raise RelWalkError(f"no trial finished, so no settings were chosen. {reasons}")
    console.note(
        f"the run: {found.run}; train it again with: relwalk train {shlex.quote(graph)} --config "
        f"{shlex.quote(str(found.settings_file))}"
    )


VERB = with_flags(tune, without=("budget",))


def command(words: str) -> Any:
    """The verb with all its flags; `words` say what it does."""
    return made_command("tune", VERB, words)
