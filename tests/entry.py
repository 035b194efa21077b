"""`relwalk` in a process of its own, through its entry point, without two seconds of imports for each.

A server imports what the verbs need, once, and forks for every command: a fresh process, its own arguments, folder,
environment and output. That the command starts from nothing is tested with the installed script (`script`).
"""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
from multiprocessing.context import ForkServerContext
from pathlib import Path

_server: ForkServerContext = multiprocessing.get_context("forkserver")
_server.set_forkserver_preload(
    ["relwalk.cli.app", "relwalk.experiment", "relwalk.prediction", "relwalk.exports", "relwalk.report", __name__]
)


def relwalk(*arguments: object, status: int = 0, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    words = [str(word) for word in arguments]
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in ("out", "err")]
        process = _server.Process(target=_command, args=(words, str(cwd or Path.cwd()), dict(os.environ), files))
        process.start()
        process.join()
        out, err = (file.read_text("utf-8") for file in files)
        code = process.exitcode
    assert code == status, out + err
    assert "Traceback" not in err
    return subprocess.CompletedProcess(words, status, out, err)


def _command(words: list[str], folder: str, environment: dict[str, str], files: list[Path]) -> None:
    from relwalk.cli.app import main

    for number, file in enumerate(files, start=1):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), number)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["relwalk", *words]
    try:
        main()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def script(*words: str) -> str:
    """What the installed command prints, started as a shell starts it."""
    command = [str(Path(sys.executable).with_name("relwalk")), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def answer(*arguments: object) -> dict:
    """What a verb prints with --json: one object on standard output and nothing else there."""
    found = json.loads(relwalk(*arguments, "--json").stdout)
    assert isinstance(found, dict)
    return found
