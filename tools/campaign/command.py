"""A command of relwalk in a fork of this process: its exit code and what it printed."""

from __future__ import annotations

import os
import selectors
import signal
import sys
import time
import traceback
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.campaign.fault import LATE, Fault, shorten
from tools.campaign.guard import stay_within
from tools.campaign.place import Place
from tools.campaign.process import die_with_parent, memory_now

CRIES = ("Traceback (most recent call last)", "panicked at", "Fatal Python error", "Exception ignored")


@dataclass(frozen=True)
class Done:
    """A command that ended, by itself or by a signal (then its code is below 0, as subprocess has it)."""

    words: tuple[str, ...]
    code: int
    out: str
    err: str

    def check(self, codes: Collection[int]) -> Done:
        """Itself, unless it shows a traceback or ended with another code than these."""
        told = f"relwalk {' '.join(self.words)}: {shorten(self.err.strip()[-300:] or 'no word')}"
        if any(cry in self.err + self.out for cry in CRIES):
            raise Fault(f"a traceback of {self._culprit()}", told)
        if self.code < 0 and self.code not in codes:
            raise Fault(f"{self.words[0]} died of {signal.Signals(-self.code).name}", told)
        if self.code not in codes:
            raise Fault(f"{self.words[0]} ended with exit code {self.code}", told)
        return self

    def check_one_line(self) -> None:
        """A command that failed says why in one line, its last."""
        lines = [line for line in self.err.splitlines() if line.strip()]
        if (
            not lines
            or not lines[-1].startswith("relwalk: ")
            or sum(line.startswith("relwalk: ") for line in lines) > 1
        ):
            raise Fault(f"{self.words[0]} does not say in one line why it failed", shorten(self.err[-300:]))

    def _culprit(self) -> str:
        """The kind of error, and the innermost line of relwalk."""
        lines = self.err.splitlines()
        places = [
            line.partition("/relwalk/")[2] for line in lines if line.startswith('  File "') and "/relwalk/" in line
        ]
        kind = next((line.partition(":")[0] for line in reversed(lines) if line and not line.startswith(" ")), "")
        place = places[-1].partition(", in ")[0].replace('", line ', ":") if places else "no line of relwalk"
        return f"{kind.rpartition('.')[2][:60]} in {place}"


def command(
    words: Sequence[object],
    folder: Path,
    place: Place,
    *,
    before: Callable[[], None] = lambda: None,
    kill: tuple[float, signal.Signals] | None = None,
) -> Done:
    """Run a command in a folder. `before` is called in its process first; `kill` sends it a signal after a while."""
    arguments, seconds, memory = tuple(str(word) for word in words), place.seconds, memory_now("self")
    outputs = [os.pipe() for _ in range(2)]
    pid = os.fork()
    if pid == 0:
        _become([write for _, write in outputs], arguments, folder, before)
    for _, write in outputs:
        os.close(write)
    try:
        texts, hung = _listen([read for read, _ in outputs], pid, seconds, kill)
    finally:
        for read, _ in outputs:
            os.close(read)
    _, status, usage = os.wait4(pid, 0)
    place.peaks.append(usage.ru_maxrss / 1e3 - memory)
    code = os.waitstatus_to_exitcode(status)
    if hung:
        raise Fault(f"{arguments[0]} has {LATE} {seconds:g} s", f"relwalk {' '.join(arguments)}")
    return Done(arguments, code, *texts)


def _listen(
    pipes: list[int], pid: int, seconds: float, kill: tuple[float, signal.Signals] | None
) -> tuple[list[str], bool]:
    """What a process writes until it ends, and whether it had to be ended. A signal is sent on the way, if asked."""
    started, found = time.monotonic(), {pipe: b"" for pipe in pipes}
    hung = False
    with selectors.DefaultSelector() as selector:
        for pipe in pipes:
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map():
            now = time.monotonic() - started
            if kill is not None and now >= kill[0]:
                os.kill(pid, kill[1])
                kill = None
            if now >= seconds and not hung:
                hung = True
                os.kill(pid, signal.SIGKILL)
            for key, _ in selector.select(timeout=max(0.0, (kill[0] if kill else seconds) - now) if not hung else None):
                part = os.read(key.fd, 1 << 16)
                found[key.fd] += part
                if not part:
                    selector.unregister(key.fd)
    return [found[pipe].decode("utf-8", "backslashreplace") for pipe in pipes], hung


def _become(outputs: list[int], words: tuple[str, ...], folder: Path, before: Callable[[], None]) -> None:
    """This fork is the command from here on."""
    code = 1
    try:
        die_with_parent()
        for number, pipe in enumerate(outputs, start=1):
            os.dup2(pipe, number)
        os.closerange(3, 256)
        witness = os.dup(2)
        os.chdir(folder)
        os.environ.update(HOME=str(folder), XDG_CACHE_HOME=str(folder), TMPDIR=str(folder))
        os.environ.pop("RELWALK_DATA", None)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        sys.dont_write_bytecode = True
        stay_within(folder, witness)
        before()
        code = _main(words, witness)
    finally:
        os._exit(code)


def _main(words: tuple[str, ...], witness: int) -> int:
    """The exit code of the entry point, with what the interpreter does around it. A traceback goes to the witness:
    standard error itself may be closed or full."""
    from relwalk.cli.app import main

    sys.argv = ["relwalk", *words]
    code: object = 0
    try:
        main()
    except SystemExit as end:
        code = end.code
    except BaseException:
        code = 1
        os.write(witness, traceback.format_exc().encode())
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except OSError:
        return 120  # as the interpreter ends when it cannot flush
    return code if isinstance(code, int) else int(code is not None)
