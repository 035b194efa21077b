"""`relwalk` in a process of its own, through its entry point, without two seconds of imports for each.

A server imports what the verbs need, once, and forks for every command: a fresh process, its own arguments, folder,
environment and output. That the command starts from nothing is tested with the installed script (`script`).
"""

from __future__ import annotations

import json
import multiprocessing
import os
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from functools import cache
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path

from relwalk import children, synthetic
from relwalk.evaluation import probability_fit
from relwalk.theory import sweep
from tests.zygote import Zygote, fork_zygote, serve

_server: ForkServerContext = multiprocessing.get_context("forkserver")
_server.set_forkserver_preload(
    [
        "relwalk.cli.app",
        "relwalk.cli.training",
        "relwalk.cli.tune",
        "relwalk.discovery",
        "relwalk.compression.search",
        "relwalk.experiment",
        "relwalk.prediction",
        "relwalk.exports",
        "relwalk.reporting",
        "relwalk.comparing",
        "relwalk.tuning.child",
        "relwalk.reproduction.child",
        "fastapi",
        "uvicorn",
        __name__,
        "tests.server",
    ]
)


def brief_calibration(put: Callable[[object, str, object], None] = setattr) -> None:
    """Most tests that train do not look at probabilities: those are then fitted on fewer questions."""
    put(probability_fit, "MOST", 50)
    put(probability_fit, "QUESTIONS", 30)


def brief_theory(put: Callable[[object, str, object], None] = setattr) -> None:
    """A page and an analysis with less of what no run changes: a smaller closed loop, the first steps of the sweep.

    tests/theory and tests/report/test_page.py have the whole.
    """
    put(synthetic, "ENTITIES", 60)
    put(synthetic, "TRIPLES", 600)
    put(synthetic, "PLAIN", {**synthetic.PLAIN, "epochs": 3})
    put(synthetic, "small_loop", cache(synthetic.small_loop.__wrapped__))  # and none that others made
    put(sweep, "BASE", {**sweep.BASE, "entities": 200})
    put(sweep, "GRID", {name: values[:2] for name, values in sweep.GRID.items()})


def relwalk(
    *arguments: object,
    status: int = 0,
    cwd: Path | None = None,
    before: Callable[[], None] | None = None,
    encoding: str = "utf-8",
) -> subprocess.CompletedProcess[str]:
    """Run a command and check how it ends; `before` is called in its process, to take something away from it.

    `encoding` is that of its streams, as PYTHONIOENCODING would have it.
    """
    words = [str(word) for word in arguments]
    code, out, err = _forked(_verb, words, cwd, before, encoding)
    assert code == status, out + err
    assert "Traceback" not in err
    return subprocess.CompletedProcess(words, status, out, err)


def snippet(code: str, cwd: Path, status: int = 0) -> str:
    """Run Python as a file of its own would be, check how it ends, and give what it printed."""
    found, out, err = _forked(_execute, [code], cwd, None, "utf-8")
    assert found == status, out + err
    return out


def _forked(
    work: Callable[[list[str]], None],
    words: list[str],
    cwd: Path | None,
    before: Callable[[], None] | None,
    encoding: str,
) -> tuple[int | None, str, str]:
    """The status of a fork of the server that works on the words, and what it printed on both streams."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in ("out", "err")]
        process = _start(work, words, cwd, files, before, encoding)
        process.join()
        out, err = (file.read_text(encoding) for file in files)
    return process.exitcode, out, err


def started(
    *arguments: object, said: Path, cwd: Path | None = None, before: Callable[[], None] | None = None
) -> ForkServerProcess:
    """A command under way, to be sent signals; `said` gets what it says on standard error."""
    words = [str(word) for word in arguments]
    return _start(_verb, words, cwd, [Path(os.devnull), said], before, "utf-8")


def _start(
    work: Callable[[list[str]], None],
    words: list[str],
    cwd: Path | None,
    files: list[Path],
    before: Callable[[], None] | None,
    encoding: str,
) -> ForkServerProcess:
    place = (str(cwd or Path.cwd()), dict(os.environ), files)
    process = _server.Process(target=_command, args=(work, words, *place, before, encoding))
    process.start()
    return process


def relwalk_each(commands: Sequence[Sequence[object]], cwd: Path) -> list[tuple[int, str]]:
    """The status of each command and what it said on standard error, one after the other in one process: hundreds of
    wrong command lines would spend their time in starting processes."""
    words = [[str(word) for word in command] for command in commands]
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in ("out", "err", "found")]
        process = _server.Process(target=_commands, args=(words, str(cwd), files))
        process.start()
        process.join()
        assert process.exitcode == 0, (len(words), files[1].read_text("utf-8", "replace"))
        found = json.loads(files[2].read_text("utf-8"))
    return [(status, text) for status, text in found]


def _commands(commands: list[list[str]], folder: str, files: list[Path]) -> None:
    from relwalk.cli import app

    children.start_process = fork_zygote().start_process  # type: ignore[assignment]
    os.chdir(folder)
    found = []
    for words in commands:
        for number, file in enumerate(files[:2], start=1):
            os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        sys.argv = ["relwalk", *words]
        try:
            app.main()
        except SystemExit as left:
            status = left.code
        except BaseException:
            status = traceback.format_exc()
        found.append((status, files[1].read_text("utf-8")))
    files[2].write_text(json.dumps(found))


def _command(
    work: Callable[[list[str]], None],
    words: list[str],
    folder: str,
    environment: dict[str, str],
    files: list[Path],
    before: Callable[[], None] | None,
    encoding: str,
) -> None:
    for number, file in enumerate(files, start=1):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), number)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding=encoding, errors="strict")
    brief_calibration()
    brief_theory()
    if any(verb in words[0] for verb in ("compare", "tune", "reproduce")):  # a verb or a snippet
        children.start_process = fork_zygote().start_process  # type: ignore[assignment]
    if before is not None:
        before()
    try:
        work(words)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def _verb(words: list[str]) -> None:
    from relwalk.cli.app import main

    sys.argv = ["relwalk", *words]
    main()


@cache
def zygote() -> Zygote:
    """A process that has imported what the parts of a comparison or a search need, and forks for each."""
    ours, theirs = socket.socketpair()
    with theirs:
        _server.Process(target=serve, args=(theirs,), daemon=True).start()
    return Zygote(ours)


def _execute(words: list[str]) -> None:
    exec(words[0], {"__name__": "__main__"})


def script(*words: str) -> str:
    """What the installed command prints, started as a shell starts it."""
    command = [str(Path(sys.executable).with_name("relwalk")), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def answer(*arguments: object) -> dict:
    """What a verb prints with --json: one object on standard output and nothing else there."""
    found = json.loads(relwalk(*arguments, "--json").stdout)
    assert isinstance(found, dict)
    return found
