"""Opening a run for a verb: what is not as it should be is said first, in words and in JSON."""

from __future__ import annotations

import json
import shlex
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from relwalk.cli import console
from relwalk.launch import several

if TYPE_CHECKING:
    from relwalk.runs.run import Run
    from relwalk.sharded.processes import Ranks
    from relwalk.training.stopping import StopRequest


def open_run(path: Path, *, device: str = "cpu", anyway: bool = False, **how: Any) -> Run:
    """A run to be read (`load_run`). An unfinished one is told; one that diverged is refused, unless `anyway`."""
    from relwalk.runs.folder import NEW, is_run
    from relwalk.runs.run import load_run, read_state

    loaded = load_run(path, device=device, anyway=anyway, **how)
    if loaded.state.status != "finished":
        console.note(f"{path} is {loaded.state}; {go_on(path)}")
    if is_run(path / NEW):
        console.note(f"{path} is to be replaced by a run that is {read_state(path / NEW)}; {go_on(path)}")
    return loaded


def open_part(path: Path, *, device: str = "cpu", anyway: bool = False, **asked: Any) -> tuple[Run, Ranks | None]:
    """A run of which this process has all; or, as one of several (which then come with it), its part. What is `asked`
    must be the same in all of them."""
    if not several():
        return open_run(path, device=device, anyway=anyway), None
    from relwalk.sharded.fitting import check_sizes
    from relwalk.sharded.processes import ranks

    among = ranks()
    loaded = open_run(path, device=device, anyway=anyway, making=among.making, keep_part=among.keep_part)
    check_sizes(len(loaded.graph.entities), among.together.size, loaded.model.device)
    among.check_run(loaded.record, **asked)
    return loaded, among


def say(run: Run, result: Any, as_json: bool) -> None:
    """Print a result about a run."""
    typer.echo(json.dumps(state_of(run) | result.as_dict(), ensure_ascii=False) if as_json else str(result))


@contextmanager
def stoppable(path: Path) -> Iterator[StopRequest]:
    """Ctrl-C and SIGTERM stop training between two steps, and all is saved; a second one ends the process at once."""
    from relwalk.errors import Interrupted
    from relwalk.training.stopping import stop_on

    with stop_on(signal.SIGINT, signal.SIGTERM, then=signal.SIG_DFL) as stop:
        try:
            yield stop
        except Interrupted as error:
            console.note(f"{error}; {go_on(path)}")
            raise typer.Exit(128 + (stop.signal or signal.SIGINT)) from None


def state_of(run: Run) -> dict[str, Any]:
    """What every JSON object about a run begins with, when its training is not finished."""
    return {} if run.state.status == "finished" else {"run_status": run.state.as_dict()}


def go_on(path: Path) -> str:
    return f"go on with: relwalk resume {shlex.quote(str(path))}"


def say_trained(run: Run, as_json: bool) -> None:
    """Print what came of a training."""
    metrics = run.record.metrics
    if run.outlook is not None:
        console.note(run.outlook)
    if as_json:
        typer.echo(json.dumps({"run": str(run.path), "status": run.record.status, "metrics": metrics}))
        return
    best = f", valid MRR {metrics['valid_mrr']:.4f} at epoch {metrics['best_epoch']}" if metrics["valid_mrr"] else ""
    typer.echo(f"saved {run.path}: {metrics['epochs']} epochs{best}")
    place = shlex.quote(str(run.path))
    say_next(
        f"relwalk discover {place}",
        f"relwalk predict {place} --head ... --relation ...",
        f"relwalk report {place}",
        f"relwalk serve {place} --open",
    )


def say_next(*commands: str) -> None:
    """What a newcomer may want to do now."""
    console.note("next: " + "; ".join(commands))
