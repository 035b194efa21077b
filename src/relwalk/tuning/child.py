"""A program of its own, run by `tune`: takes trials of a search one after the other, until there are to be no more.

Memory and crashes are its own. When the process that started it is gone, it saves its last step and ends.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from relwalk.children import as_child, train_or_go_on, words_of
from relwalk.errors import Interrupted, RelWalkError
from relwalk.evaluation.comparison import Moment, curve_of
from relwalk.evaluation.ranking import rank
from relwalk.evaluation.tuning import Trial, best_of
from relwalk.graph.graph import Graph
from relwalk.runs.checkpoint import Epoch, Progress
from relwalk.runs.graph_files import read_graph_files
from relwalk.runs.run import Run
from relwalk.training.stopping import StopRequest
from relwalk.tuning.folder import GRAPH, Study, StudyFolder
from relwalk.tuning.pacing import plan_epochs, share_of
from relwalk.tuning.pruning import verdict
from relwalk.tuning.sampler import ask

OFTEN = 0.5  # seconds between two looks at the other trials, or two notes on this one


def main(request: Path) -> int:
    """0 when there is nothing more to do, 1 when it was asked to stop before."""
    asked = json.loads(request.read_bytes())
    with as_child() as stop:
        try:
            work(StudyFolder(Path(asked["folder"])), stop, **asked["limits"])
        except Interrupted:
            return 1
    return 0


def work(
    folder: StudyFolder, stop: StopRequest, *, budget: float, trials: int | None, processes: int, threads: int
) -> None:
    """Take trials and train them, until the time is over or there are as many as were wanted."""
    study = folder.read_study()
    graph = read_graph_files(folder.path / GRAPH, study.graph.name, study.notes)
    while not stop():
        with taken(folder, study, budget, trials, processes) as turn:
            if turn is None:
                return
            Attempt(folder, study, graph, turn, stop, threads).make()
    raise Interrupted(0)


@dataclass(frozen=True)
class Turn:
    """A trial that this process holds, and the seconds that it and all of the search may still take."""

    trial: Trial
    share: float
    left: float
    others: list[Trial]


@contextmanager
def taken(
    folder: StudyFolder, study: Study, budget: float, wanted: int | None, processes: int
) -> Iterator[Turn | None]:
    """Within, a trial is ours: one that a dead process left, or a new one. None: there are to be no more."""
    with ExitStack() as held:
        with folder.locked():
            trials = folder.trials()
            left = budget - folder.spent()
            found = next((t for t in trials if t.status == "running" and folder.hold(t.number, held)), None)
            before = trials if found is None else [t for t in trials if t.number < found.number]
            share = share_of(left, budget, before, wanted, processes)
            if found is None and share is not None:
                number = trials[-1].number + 1 if trials else 1
                tried = ask(study.searched, study.usual, trials, study.seed) if trials else study.usual
                found = Trial(number, tried)
                folder.hold(number, held)
            if found is not None:
                found = replace(found, process=f"{os.getpid()} on {socket.gethostname()}")
                folder.write(found)
        yield Turn(found, left if share is None else share, left, trials) if found is not None else None


class Pruned(Exception):
    """A trial is to end here."""


class Attempt(StopRequest):
    """One trial under way: its training asks whether to stop, and tells it of each epoch."""

    def __init__(
        self, folder: StudyFolder, study: Study, graph: Graph, turn: Turn, asked: StopRequest, threads: int
    ) -> None:
        super().__init__()
        self.folder, self.study, self.graph, self.asked = folder, study, graph, asked
        self.trial, self.share, self.others = turn.trial, turn.share, turn.others
        self.began, self.before = time.monotonic(), turn.trial.seconds
        self.deadline = self.began + turn.left
        self.looked = self.noted = self.began
        self.threads = threads

    def __call__(self) -> bool:
        return self.asked() or self.time_over()

    def time_over(self) -> bool:
        """Whether the search has no time left. Until there is a finished trial, the first one goes on to its end."""
        return time.monotonic() > self.deadline and best_of(self.others) is not None

    def breaking(self) -> Any:
        return self.asked.breaking()

    def settings(self) -> dict[str, Any]:
        """Of its training. The first trial is the default recipe: nothing is said of what is searched."""
        tried = {name: v for name, v in self.trial.tried.items() if v is not None} if self.trial.number > 1 else {}
        return {"threads": self.threads, **self.study.fixed, **tried, **self.trial.planned}

    def make(self) -> None:
        """Train it and write what came of it. Asked to stop, it is saved as far as it is."""
        try:
            if not self.trial.planned:
                planned = plan_epochs(self.graph, self.settings(), self.share, stop=self.asked)
                self.note(planned=planned)
            run = self._trained()
            self._measured(run)
        except Pruned as error:
            self.note(status="pruned", reason=str(error))
        except Interrupted:
            if self.asked():
                self.note()
                raise
            self.note(status="pruned", reason="the time was over")
        except RelWalkError as error:
            self.note(status="failed", reason=str(error))
        except Exception as error:  # one trial's fault is not the end of the search
            self.note(status="failed", reason=words_of(error))
        self.folder.end(self.trial)

    def note(self, **changes: Any) -> None:
        """Write how it stands."""
        self.noted = time.monotonic()
        self.trial = replace(self.trial, seconds=self.before + self.noted - self.began, **changes)
        self.folder.write(self.trial)

    def _trained(self) -> Run:
        watched = {"observer": self, "stop": self, "progress": False}
        settings = {**self.settings(), "source": self.study.graph.source}
        return train_or_go_on(self.folder.run(self.trial.number), lambda: self.graph, settings, **watched)

    def _measured(self, run: Run) -> None:
        """The figure it is chosen by: of its best epoch, on all of valid. Validations may have seen a part of that."""
        with self.asked.breaking():
            mrr = rank(run, split="valid", progress=False).mrr
        record = run.record
        model = {"recipe": record.recipe, "model": record.model.name, "dim": record.model.dim, **record.model.options}
        self.note(
            status="finished",
            valid_mrr=mrr,
            best_epoch=int(record.metrics["best_epoch"] or 0),
            settings={**model, **record.training.flat()},
        )

    def step(self, epoch: int, step: int, steps: int, loss: float) -> None:
        """Nothing is judged within an epoch."""

    def epoch(self, record: Epoch, progress: Progress) -> None:
        """Judge the learning curve after every validation."""
        if record.metric is None:
            return
        curve = curve_of(epoch.as_dict() for epoch in progress.history)
        self._tell(curve, progress)
        reason = verdict(self.trial, curve, self.others)
        if reason:
            raise Pruned(reason)

    def _tell(self, curve: tuple[Moment, ...], progress: Progress) -> None:
        self.trial = replace(
            self.trial, curve=curve, valid_mrr=progress.best_metric, best_epoch=progress.best_epoch or None
        )
        now = time.monotonic()
        if now - self.noted >= OFTEN:
            self.note()
        if now - self.looked >= OFTEN:
            self.looked, self.others = now, self.folder.trials()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
