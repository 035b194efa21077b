"""What the verbs print, and where: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from relwalk.errors import RelWalkError

if TYPE_CHECKING:
    from relwalk.training.trainer import Epoch, Progress


def result(value: Any, as_json: bool) -> None:
    """Print a result that knows `as_dict` and `str`."""
    typer.echo(json.dumps(value.as_dict(), ensure_ascii=False) if as_json else str(value))


def note(text: str) -> None:
    typer.echo(text, err=True)


@contextmanager
def settings_errors() -> Iterator[None]:
    """Tell a wrong setting in words instead of a traceback."""
    from pydantic import ValidationError

    try:
        yield
    except ValidationError as error:
        faults = [f"--{str((f['loc'] or ('settings',))[-1]).replace('_', '-')}: {f['msg']}" for f in error.errors()]
        raise RelWalkError("; ".join(faults)) from error


class TrainingLines:
    """Plain lines, at most one every few seconds and one per validation: for logs and pipes."""

    def __init__(self, epochs: int, done: int = 0, every: float = 10.0) -> None:
        self.epochs, self.done_before, self.every = epochs, done, every
        self.started = self.last = time.monotonic()

    def step(self, epoch: int, step: int, steps: int, loss: float) -> None:
        pass

    def epoch(self, record: Epoch, progress: Progress) -> None:
        now = time.monotonic()
        if record.metric is None and now - self.last < self.every and record.epoch != self.epochs:
            return
        self.last = now
        note(self._line(record, progress, now - self.started))

    def _line(self, record: Epoch, progress: Progress, elapsed: float) -> str:
        left = elapsed / max(record.epoch - self.done_before, 1) * (self.epochs - record.epoch)
        metric = (
            f"  valid MRR {record.metric:.4f} (best {progress.best_metric:.4f})" if record.metric is not None else ""
        )
        done = f"epoch {record.epoch}/{self.epochs}  {record.seconds:.2f} s  loss {record.loss:.4f}"
        return f"{done}{metric}  ETA {_clock(left)}"


class TrainingBar:
    """A progress bar with rate, loss and time left, for a terminal."""

    def __init__(self, epochs: int, done: int = 0) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        self.bar = RichProgress(
            TextColumn("epoch"),
            MofNCompleteColumn(),
            BarColumn(),
            TextColumn("{task.fields[rate]}  loss {task.fields[loss]}  {task.fields[metric]}  ETA"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self.task = self.bar.add_task("", total=epochs, completed=done, rate="", loss="", metric="")
        self.bar.start()
        self.step_times: list[float] = []

    def step(self, epoch: int, step: int, steps: int, loss: float) -> None:
        self.step_times = [*self.step_times[-20:], time.monotonic()]
        if len(self.step_times) > 1:
            rate = (len(self.step_times) - 1) / max(self.step_times[-1] - self.step_times[0], 1e-9)
            self.bar.update(
                self.task, completed=epoch - 1 + step / steps, rate=f"{rate:.1f} steps/s", loss=f"{loss:.4g}"
            )

    def epoch(self, record: Epoch, progress: Progress) -> None:
        best = f"valid MRR {progress.best_metric:.4f}" if progress.best_metric is not None else ""
        self.bar.update(self.task, completed=record.epoch, metric=best)

    def close(self) -> None:
        self.bar.stop()


@contextmanager
def training_observer(epochs: int, done: int = 0) -> Iterator[TrainingBar | TrainingLines]:
    """A bar on a terminal, plain lines elsewhere."""
    if not sys.stderr.isatty():
        yield TrainingLines(epochs, done)
        return
    bar = TrainingBar(epochs, done)
    try:
        yield bar
    finally:
        bar.close()


def download_progress(name: str, done: int, total: int | None) -> None:
    """How far a file has come: a line that rewrites itself on a terminal, elsewhere one line when it is whole."""
    whole = total is not None and done >= total
    text = f"fetching {name}: {done / 1e6:.1f} MB" + (f" of {total / 1e6:.1f}" if total else "")
    if sys.stderr.isatty():
        typer.echo(f"\r{text}", err=True, nl=whole)
    elif whole:
        note(text)


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
