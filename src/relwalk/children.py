"""Work that is done by processes of their own, one for a model or for a part of a search: how they are started, asked,
told to stop, and what their deaths mean.

A child reads what it is asked from a file and leaves its result in another. Its standard input is a pipe that the
parent holds open and never writes to: when that ends, the child saves its last step and ends as well, be it that it is
told to stop, or that the parent was killed.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from relwalk.errors import Interrupted, RefusedOverwrite
from relwalk.experiment import resume, train
from relwalk.files import lock_folder, write_atomically
from relwalk.graph.graph import Graph
from relwalk.runs.folder import is_run, settle
from relwalk.runs.graph_files import write_graph_files
from relwalk.runs.run import Run
from relwalk.training.memory import keep_freed_memory
from relwalk.training.stopping import StopRequest, stop_on

Stop = Callable[[], bool]
POLL = 0.1  # seconds between two looks at a process
STDIN = 0
GRACE = 60.0  # seconds to save and end, once a child is alone
PATIENCE = 30.0  # seconds for an earlier process, left alone, to be done with a run's folder


class Child:
    """A process that runs a module of relwalk on a request."""

    def __init__(self, module: str, request: Path) -> None:
        self.process = start_process(module, request)

    def ended(self, wait: float = POLL) -> int | None:
        """Its status, after so many seconds at most; None while it works."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(wait)
        return self.process.returncode

    def end(self) -> int:
        """Tell it to save and end, and wait until it has."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait()


def start_process(module: str, request: Path) -> subprocess.Popen[bytes]:
    """A Python of its own that runs a module; a pipe is its standard input."""
    command = [sys.executable, "-P", "-m", module, str(request)]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL}
    return subprocess.Popen(command, **pipes, start_new_session=True)  # Ctrl-C is for us, who then tell it


def run_child(module: str, request: Path, stop: Stop | None) -> int:
    """Run a process to its end. When this one is to stop, that one saves its last step first."""
    child = Child(module, request)
    try:
        while (code := child.ended()) is None:
            if stop is not None and stop():
                raise Interrupted(0)
    finally:
        child.end()
    return code


def cause_of_death(code: int) -> str:
    """Why a process told nothing."""
    if code >= 0:
        return f"its process ended with status {code} and no result"
    name = signal.Signals(-code).name
    memory = ", as the system does when memory runs out" if name == "SIGKILL" else ""
    return f"its process was ended by {name}{memory}"


@contextmanager
def as_child() -> Iterator[StopRequest]:
    """Within, this process is a child: it is asked to stop when the one that started it says so, or is gone."""
    keep_freed_memory()
    with stop_on(signal.SIGTERM) as stop:
        threading.Thread(target=_end_when_alone, daemon=True).start()
        yield stop


def _end_when_alone() -> None:
    while os.read(STDIN, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE)
    os._exit(1)


def train_or_go_on(path: Path, graph: Callable[[], Graph], settings: dict[str, Any], **watched: Any) -> Run:
    """The run in a folder: trained, or gone on with where an earlier process left it. `watched` is progress and the
    like, for both."""
    if path.is_dir():
        with lock_folder(path, wait=PATIENCE):
            pass
        settle(path)
    if is_run(path):
        return resume(path, **watched)
    return train(graph(), **settings, out=path, **watched)


class Told(Protocol):
    """A result that a child can tell."""

    def as_dict(self) -> dict[str, Any]: ...


def answer_request(request: Path, attempt: Callable[[dict[str, Any], StopRequest], Told]) -> int:
    """All of a child whose result is one value: what `attempt` makes of the request is written where that says.

    0 when the result is written, be it a failure; 1 when it was asked to stop before there was one.
    """
    asked = json.loads(request.read_bytes())
    with as_child() as stop:
        try:
            found = attempt(asked, stop)
        except Interrupted:
            return 1
    write_atomically(Path(asked["result"]), json.dumps(found.as_dict()).encode())
    return 0


def words_of(error: Exception) -> str:
    """What went wrong in a child, in one line; it is a fault of that part of the work, and not the end of all."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:400]}"


@contextmanager
def folder_for(out: Path | str | None, what: str) -> Iterator[Path]:
    """Where a comparison or a search goes; without a place, it is gone afterwards."""
    if out is None:
        with TemporaryDirectory(prefix="relwalk-") as place:
            yield Path(place)
        return
    path = Path(out)
    if path.exists() and not path.is_dir():
        raise RefusedOverwrite(path, f"or move it away: it is a file, and {what} is a folder")
    path.mkdir(parents=True, exist_ok=True)
    yield path


def graph_for_children(folder: Path, graph: Graph) -> dict[str, Any]:
    """The graph as files that children read, and what they have to know beside: `read_graph_files` takes it."""
    if not folder.is_dir():
        unfinished = folder.with_name(f"{folder.name}.new")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        write_graph_files(unfinished, graph)
        unfinished.replace(folder)
    return {"graph": str(folder.absolute()), "graph_name": graph.name, "notes": graph.notes}


def peak_memory() -> int | None:
    """The most bytes that this process ever held; None where the system does not say.

    Not `getrusage`, which on Linux begins with what the process that started this one held.
    """
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        return None
