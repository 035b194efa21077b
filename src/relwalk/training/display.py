"""What is shown of a training: how far it is, its loss, and, before its first epoch is over, what it will cost."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from relwalk.checks import MOST
from relwalk.progress import MINUTE, Clock, Line, Screen, clock_time, duration, open_screen
from relwalk.runs.checkpoint import Epoch, Progress
from relwalk.training.footprint import LARGE, memory_needed, room
from relwalk.training.trainer import Observer, Trainer

SOON = 5.0  # seconds of steps after which the time of an epoch is told
OFTEN = 10.0  # least seconds between the lines of two epochs in a log
LONG = 3600.0  # seconds; what takes longer comes with a word on how to shorten it


class TrainingDisplay:
    """Watches a training of so many epochs, `done` of which were made before.

    With a budget of so many seconds, `spent` says how many of them its steps have taken so far.
    """

    def __init__(
        self,
        screen: Screen,
        epochs: int,
        done: int = 0,
        *,
        budget: float = math.inf,
        spent: Callable[[], float] = lambda: 0.0,
        clock: Clock = time.monotonic,
    ) -> None:
        self.screen, self.epochs, self.done, self.clock = screen, epochs, done, clock
        self.budget, self.spent = budget, spent
        self.started, self.share = clock(), self._share(done)
        self.first: tuple[float, int] | None = None  # when the first step ended, and its number
        self.seconds = 0.0  # of an epoch, once that is known
        self.told = False
        self.best = ""
        self.line = Line(self._name(done), (), "ETA -:--", self.share)

    def memory(self, needed: int, there: int | None) -> None:
        """What the training will hold, where that is much."""
        if needed >= LARGE:
            lack = (
                f", more than the {_gib(there)} that this machine has for it"
                if there is not None and needed > there
                else ""
            )
            self.screen.say(f"memory: about {_gib(needed)} at the peak{lack}")

    def step(self, epoch: int, step: int, steps: int, loss: float) -> None:
        if epoch == self.done + 1:
            self._measure(step, steps)
        pace = (f"{duration(self.seconds)} an epoch",) if self.seconds else ()
        others = (f"loss {loss:.4f}", *self._best(), f"step {step:,}/{steps:,}", *pace)
        self._show(epoch, epoch - 1 + step / steps, others, MINUTE)

    def validation(self, done: int, total: int, what: str) -> None:
        """How far the validation between two epochs is."""
        others = (f"validating {done / max(total, 1):.0%}", *self.line.others[:1])
        self.screen.show(Line(self.line.first, others, self.line.last, self.line.share))

    def epoch(self, record: Epoch, progress: Progress) -> None:
        self.seconds = record.seconds
        if progress.best_metric is not None:
            self.best = f"best valid MRR {progress.best_metric:.4f}"
        metric = self._best()
        if record.metric is not None:
            metric = (f"valid MRR {record.metric:.4f} (best {progress.best_metric:.4f})",)
        others = (f"loss {record.loss:.4f}", *metric, f"{record.seconds:.2f} s")
        always = record.metric is not None or record.epoch == self.epochs
        self._show(record.epoch, record.epoch, others, 0.0 if always else OFTEN)

    def _best(self) -> tuple[str, ...]:
        return (self.best,) if self.best else ()

    def _show(self, epoch: int, passed: float, others: tuple[str, ...], every: float) -> None:
        """`passed` epochs are over, counting the part of one."""
        share = self._share(passed)
        left = (self.clock() - self.started) / max(share - self.share, 1e-12) * max(0.0, 1 - share)
        self.line = Line(self._name(epoch), others, f"ETA {clock_time(left)}", share)
        self.screen.show(self.line, every)

    def _share(self, passed: float) -> float:
        """How much of the training is done, by its epochs or by its time, whichever ends first."""
        return max(passed / self.epochs, self.spent() / self.budget)

    def _name(self, epoch: int) -> str:
        return f"epoch {epoch}" if self.epochs == MOST else f"epoch {epoch}/{self.epochs}"

    def _measure(self, step: int, steps: int) -> None:
        """From the steps of the first epoch, how long an epoch takes; told once, when there were seconds of them."""
        now = self.clock()
        if self.first is None:
            self.first = (now, step)
            return
        at, number = self.first
        self.seconds = (now - at) / (step - number) * steps
        if self.told or now - self.started < SOON:
            return
        self.told = True
        epochs = self.epochs - self.done
        whole = self.seconds * epochs
        if whole > self.budget:
            self.screen.say(f"time: about {duration(self.seconds)} an epoch, {duration(self.budget)} in all")
            return
        cure = ". Fewer epochs or a smaller dim take less" if whole > LONG else ""
        self.screen.say(f"time: about {duration(self.seconds)} an epoch, {duration(whole)} for {epochs:,}{cure}")


class Observers:
    """Several observers of one training."""

    def __init__(self, *observers: Observer | None) -> None:
        self.observers = [observer for observer in observers if observer is not None]

    def step(self, epoch: int, step: int, steps: int, loss: float) -> None:
        for observer in self.observers:
            observer.step(epoch, step, steps, loss)

    def epoch(self, record: Epoch, progress: Progress) -> None:
        for observer in self.observers:
            observer.epoch(record, progress)


@contextmanager
def training_display(progress: bool | None, trainer: Trainer) -> Iterator[TrainingDisplay | None]:
    """Within, what a training about to begin does is shown as `progress` says (see `relwalk.progress`)."""
    screen = open_screen(progress, bar_after=0.0, line_after=MINUTE)
    if screen is None:
        yield None
        return
    display = TrainingDisplay(
        screen,
        trainer.settings.epochs,
        trainer.progress.epoch,
        budget=trainer.settings.seconds,
        spent=lambda: trainer.progress.seconds,
    )
    try:
        if trainer.task.note is not None:
            screen.say(trainer.task.note)
        display.memory(memory_needed(trainer), room())
        yield display
    finally:
        screen.close()


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"
