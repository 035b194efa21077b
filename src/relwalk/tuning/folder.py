"""The folder of a search, on which several processes may work at once.

    tune.json        what was found, once it is over; tune.html is the same as a page
    best.toml        the settings of the best trial so far, for `relwalk train --config`
    study.json       what is searched
    trials/0001/     trial.json: what was tried and what came of it; run/: its run, while it is trained and of the best
    sessions/        when it was worked on: the time that counts
    graph/           the graph, for the processes

A process holds the lock of a trial while it works on it, and that of `trials` while it takes one or ends one. The
system drops the locks of a process that dies, so a trial that is not finished and not locked waits for somebody to go
on with it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from relwalk.errors import FolderInUse, RunError
from relwalk.evaluation.comparison import ComparedGraph
from relwalk.evaluation.records import read_json, told
from relwalk.evaluation.tuning import CURE, FORMAT, VERSION, Trial, best_of, read_trial
from relwalk.files import lock_folder, remove_leftovers, write_atomically
from relwalk.runs.folder import remove_run
from relwalk.space import Search, search_as_dict, search_from_dict
from relwalk.tuning.toml import settings_as_toml

TUNE, PAGE, BEST, STUDY, TRIALS, SESSIONS, GRAPH = (
    "tune.json",
    "tune.html",
    "best.toml",
    "study.json",
    "trials",
    "sessions",
    "graph",
)
RESULT, RUN = "trial.json", "run"
WAIT = 60.0  # seconds for other processes to be done with taking or ending a trial
BEAT = 1.0  # seconds between two notes that somebody is at work


@dataclass(frozen=True)
class Study:
    """What is searched: the same for all processes that work on it."""

    graph: ComparedGraph
    model: str
    fixed: dict[str, Any]  # settings given by hand; also model, recipe and dim
    usual: dict[str, Any]  # the default recipe's, of those that are searched
    left_out: dict[str, str]
    seed: int
    notes: tuple[str, ...] = ()  # of the graph
    machine: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    created: str = ""
    space: dict[str, Any] = field(default_factory=dict)  # by name, as JSON has it

    @property
    def searched(self) -> dict[str, Search]:
        return {name: search_from_dict(name, content) for name, content in self.space.items()}

    def differs(self, other: Study) -> str | None:
        """In what another one is not the same; None: in nothing that matters."""
        pairs = [
            ("graph", self.graph.fingerprint[:12], other.graph.fingerprint[:12]),
            ("model", self.model, other.model),
            ("given settings", self.fixed, other.fixed),
            ("space", self.space, other.space),
        ]
        return next((f"its {what} is {here}, now {there}" for what, here, there in pairs if here != there), None)


_STUDY = TypeAdapter(Study)


def space_as_dict(space: dict[str, Search]) -> dict[str, Any]:
    return {name: search_as_dict(search) for name, search in space.items()}


class StudyFolder:
    """A search on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.trials_path = path / TRIALS

    def exists(self) -> bool:
        return (self.path / STUDY).is_file()

    def read_study(self) -> Study:
        file = self.path / STUDY
        content = read_json(file, "search", CURE)
        if content.pop("format", None) != FORMAT or content.pop("version", None) != VERSION:
            raise RunError(f'{file} was not written by this relwalk: expected "format": "{FORMAT}", version {VERSION}.')
        with told(file, "search", CURE):
            study = _STUDY.validate_python(content)
            _ = study.searched
            return study

    def make_places(self) -> None:
        for name in (TRIALS, SESSIONS):
            (self.path / name).mkdir(exist_ok=True)
        remove_leftovers(self.path / SESSIONS)  # each session has a file of its own name: nobody else would

    def write_study(self, study: Study) -> None:
        _write_json(self.path / STUDY, {"format": FORMAT, "version": VERSION, **asdict(study)})

    def clear(self) -> None:
        """Remove all that a search leaves, and nothing else."""
        for file in (*(self.path / name for name in (STUDY, TUNE, PAGE, BEST)), *self.path.glob(".request-*.json")):
            file.unlink(missing_ok=True)
        for name in (TRIALS, SESSIONS, GRAPH, f"{GRAPH}.new"):
            shutil.rmtree(self.path / name, ignore_errors=True)

    def place(self, number: int) -> Path:
        return self.trials_path / f"{number:04}"

    def run(self, number: int) -> Path:
        return self.place(number) / RUN

    def trials(self) -> list[Trial]:
        """All trials, in order. A folder without a file is one that a process was killed in making."""
        there = sorted(int(p.name) for p in self.trials_path.iterdir() if re.fullmatch(r"\d{4,9}", p.name))
        files = [self.place(number) / RESULT for number in there]
        return [read_trial(file) for file in files if file.is_file()]

    def write(self, trial: Trial) -> None:
        _write_json(self.place(trial.number) / RESULT, trial.as_dict())

    @contextmanager
    def locked(self) -> Iterator[None]:
        with lock_folder(self.trials_path, wait=WAIT):
            yield

    def hold(self, number: int, held: ExitStack) -> bool:
        """Hold a trial until `held` ends; False while another process does."""
        self.place(number).mkdir(exist_ok=True)
        try:
            held.enter_context(lock_folder(self.place(number)))
            return True
        except FolderInUse:
            return False

    def at_work(self, trials: Sequence[Trial]) -> list[Trial]:
        """Those that some process is working on. To be asked while `locked`."""
        found = []
        for trial in trials:
            with ExitStack() as held:
                if trial.status == "running" and not self.hold(trial.number, held):
                    found.append(trial)
        return found

    def end(self, trial: Trial) -> None:
        """Write what came of a trial. Of all runs the best is kept, and its settings written."""
        with self.locked():
            self.write(trial)
            self.keep_best(self.trials())

    def keep_best(self, trials: Sequence[Trial]) -> None:
        """Remove the runs of all ended trials but the best. To be called while `locked`."""
        best = best_of(trials)
        for trial in trials:
            if trial.status != "running" and (best is None or trial.number != best.number):
                remove_run(self.run(trial.number))
        if best is not None:
            text = settings_as_toml(best)
            write_atomically(self.path / BEST, text.encode("utf-8", "replace"))

    def spent(self) -> float:
        """The seconds during which somebody worked on it, however many did."""
        spans = []
        for file in (self.path / SESSIONS).glob("*.json"):
            with suppress(OSError, ValueError, TypeError, KeyError):  # one that is being written, or was removed
                content = json.loads(file.read_bytes())
                spans.append((float(content["from"]), float(content["to"])))
        total, end = 0.0, float("-inf")
        for begin, until in sorted(spans):
            total += max(0.0, until - max(begin, end))
            end = max(end, until)
        return total


class Session:
    """One stay of a process: its time counts. `beat` is to be called often."""

    def __init__(self, folder: StudyFolder) -> None:
        self.began, self.last = time.time(), float("-inf")
        name = f"{socket.gethostname()}-{os.getpid()}-{int(self.began * 1000)}"
        self.file = folder.path / SESSIONS / f"{re.sub(r'[^A-Za-z0-9-]', '_', name)}.json"
        self.beat()

    def beat(self, *, now: bool = False) -> None:
        if now or time.time() - self.last >= BEAT:
            self.last = time.time()
            _write_json(self.file, {"from": self.began, "to": self.last})


def _write_json(path: Path, content: Any) -> None:
    write_atomically(path, (json.dumps(content, ensure_ascii=False, indent=1) + "\n").encode("utf-8", "replace"))
