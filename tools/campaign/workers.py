"""Processes that try cases, and the parent that watches their time, memory and output.

The parent has made the imports and nothing else: no thread of a library runs in it, so its forks are whole. A case
that hangs, grows or kills its process is a failure of that case; a new process goes on with the next.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import random
import shutil
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path

from tools.campaign.fault import LATE, Fault, shorten, where
from tools.campaign.kinds import KINDS
from tools.campaign.place import Place
from tools.campaign.process import die_with_parent, memory_now, memory_of_family, peak_memory, reset_peak_memory

LOOK = 0.05  # seconds between two looks at the memory of a worker


@dataclass(frozen=True)
class Limits:
    seconds: float = 10.0
    megabytes: float = 2000.0


@dataclass(frozen=True)
class Outcome:
    """One case and how it went; `what` is empty when all was well."""

    kind: str
    seed: int
    seconds: float
    megabytes: float  # at most, above what the process had before
    what: str = ""
    detail: str = ""
    story: str = ""

    @property
    def late(self) -> bool:
        """Whether it failed by its time alone."""
        return LATE in self.what


class Story:
    """What a case did, in memory that the parent sees too: the words of a case that died are not lost."""

    def __init__(self) -> None:
        self.memory = mmap.mmap(-1, 4096)

    def begin(self) -> None:
        self.memory.seek(0)
        self.memory.write(bytes(len(self.memory)))
        self.memory.seek(0)

    def say(self, words: str) -> None:
        left = len(self.memory) - self.memory.tell()
        self.memory.write((words + "; ").encode()[:left])

    def __str__(self) -> str:
        return self.memory[:].rstrip(b"\0").decode(errors="replace").removesuffix("; ")


def try_case(kind: str, seed: int, base: Path, folder: Path, limits: Limits, story: Story) -> Outcome:
    """One case in this process. Whatever it writes to the standard outputs is a failure."""
    story.begin()
    place, started, before = Place(base, folder, limits.seconds, story.say), time.monotonic(), reset_peak_memory()
    what = detail = ""
    try:
        _empty(folder)
        KINDS[kind].check(random.Random(f"{kind} {seed}"), place)
        _check_silence()
    except Fault as fault:
        what, detail = fault.what, fault.detail
    except Exception as error:  # the campaign's own
        what, detail = f"the campaign failed: {type(error).__name__} in {where(error)}", repr(error)
    seconds, grown = time.monotonic() - started, max(peak_memory() - before, *place.peaks, 0.0)
    if not what and grown > limits.megabytes:
        what, detail = _too_large(limits), f"{grown:,.0f} MB"
    return Outcome(kind, seed, seconds, grown, what, detail, str(story))


def _too_large(limits: Limits) -> str:
    return f"more than {limits.megabytes:,.0f} MB"


def _empty(folder: Path) -> None:
    """An empty folder, also where a case that was killed left one that forbids it."""
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        for path in (folder, *folder.rglob("*")):
            if path.is_dir() and not path.is_symlink():
                path.chmod(0o755)
        shutil.rmtree(folder)
    folder.mkdir(parents=True)


def _check_silence() -> None:
    """The outputs of a worker are files without a name; a case must leave them empty."""
    sys.stdout.flush()
    sys.stderr.flush()
    for number, name in ((1, "output"), (2, "error")):
        size = os.fstat(number).st_size
        if size:
            text = os.pread(number, 4000, 0).decode(errors="replace")
            os.ftruncate(number, 0)
            os.lseek(number, 0, os.SEEK_SET)
            raise Fault(f"something on standard {name}", shorten(text))


class Worker:
    """A process of its own group that tries one seed after the other."""

    def __init__(self, kind: str, base: Path, folder: Path, limits: Limits) -> None:
        self.kind, self.limits = kind, limits
        self.seed: int | None = None
        self.started = 0.0
        self.story = Story()
        self.channel, theirs = Pipe()
        self.pid = os.fork()
        if self.pid == 0:
            self.channel.close()
            _serve(theirs, kind, base, folder, limits, self.story)
        theirs.close()
        with contextlib.suppress(OSError):
            os.setpgid(self.pid, self.pid)  # here too: it may be killed before it comes to it
        self.ended = False
        self.before = memory_now(str(self.pid))
        self.seen = 0.0

    def give(self, seed: int) -> None:
        self.seed, self.started, self.seen = seed, time.monotonic(), 0.0
        self.channel.send_bytes(str(seed).encode())

    def answer(self) -> Outcome:
        """What the worker says of its case, or that it died of it."""
        try:
            return Outcome(**json.loads(self.channel.recv_bytes()))
        except (EOFError, OSError):
            _, status = os.waitpid(self.pid, 0)
            self.ended, code = True, os.waitstatus_to_exitcode(status)
            return self._failed(
                f"the process died of {signal.Signals(-code).name}" if code < 0 else f"it ended: {code}"
            )

    def overdue(self) -> Outcome | None:
        """The failure of a case that takes too long or too much, whose process is killed."""
        seconds = time.monotonic() - self.started
        self.seen = max(self.seen, max(memory_of_family(self.pid), default=0.0) - self.before)
        if seconds > self.limits.seconds * KINDS[self.kind].commands + 1:
            what = f"{LATE} {self.limits.seconds:g} s"
        elif self.seen > 1.1 * self.limits.megabytes:
            what = _too_large(self.limits)
        else:
            return None
        self.end()
        return self._failed(what)

    def _failed(self, what: str) -> Outcome:
        assert self.seed is not None
        return Outcome(self.kind, self.seed, time.monotonic() - self.started, self.seen, what, story=str(self.story))

    def end(self) -> None:
        """Kill the process and all that it started, unless it is gone."""
        if not self.ended:
            os.killpg(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        self.ended = True
        self.channel.close()


def _serve(channel: Connection, kind: str, base: Path, folder: Path, limits: Limits, story: Story) -> None:
    """The life of a worker."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    code = 1
    try:
        begin_quietly()
        while True:
            outcome = try_case(kind, int(channel.recv_bytes()), base, folder, limits, story)
            channel.send_bytes(json.dumps(asdict(outcome)).encode())
    except (EOFError, OSError):
        code = 0
    finally:
        os._exit(code)


def begin_quietly() -> None:
    """Outputs into files of this process alone, one thread, every warning told each time."""
    die_with_parent()
    for number in (1, 2):
        os.dup2(os.memfd_create(f"output {number}"), number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    warnings.simplefilter("always")


def try_seeds(
    kind: str, seeds: Iterator[int], base: Path, folder: Path, *, jobs: int, limits: Limits, until: float | None = None
) -> Iterator[Outcome]:
    """Every case of the seeds, in the order in which they end; none begins after `until`."""
    workers = [Worker(kind, base, folder / str(number), limits) for number in range(jobs)]
    try:
        waiting = [worker for worker in workers if _feed(worker, seeds, until)]
        while waiting:
            ready = wait([worker.channel for worker in waiting], timeout=LOOK)
            for worker in list(waiting):
                outcome = worker.answer() if worker.channel in ready else worker.overdue()
                if outcome is None:
                    continue
                yield outcome
                place = waiting.index(worker)
                if outcome.what:  # whatever it left behind, the next case shall not meet it
                    worker.end()
                    number = workers.index(worker)
                    workers[number] = waiting[place] = worker = Worker(kind, base, folder / str(number), limits)
                if not _feed(worker, seeds, until):
                    waiting.remove(worker)
    finally:
        for worker in workers:
            worker.end()


def _feed(worker: Worker, seeds: Iterator[int], until: float | None) -> bool:
    seed = next(seeds, None) if until is None or time.monotonic() < until else None
    if seed is None:
        return False
    worker.give(seed)
    return True


def prepare(kind: str, base: Path) -> None:
    """What the cases of a kind start from, made once, in a process of its own: the parent stays without threads."""
    if base.exists():
        return
    base.mkdir(parents=True)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            die_with_parent()
            KINDS[kind].prepare(base)
            code = 0
        finally:
            if code:
                traceback.print_exc()
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    if status:
        raise SystemExit(f"the campaign could not prepare {kind}")
