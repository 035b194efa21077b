"""The processes that `relwalk.children` starts, forked from one that has imported what they need.

A comparison, a search or a reproduction starts a Python for each of its parts: two seconds of imports that no test is
about. A zygote is a process without threads that waits for requests on a socket and forks for each. Status and signals
are those of a process that was started the usual way; `tests/test_compare.py` has one that is.
"""

from __future__ import annotations

import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path


class Forked:
    """As much of `subprocess.Popen` as `relwalk.children.Child` needs."""

    def __init__(self, pid: int, stdin: int, status: int) -> None:
        self.pid = pid
        self.stdin = os.fdopen(stdin, "wb")
        self.returncode: int | None = None
        self._status = os.fdopen(status, "rb")

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("a forked child", timeout or 0.0)
            with self._status:
                self.returncode = int(self._status.readline())
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Zygote:
    """Our end of the socket."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection

    def start_process(self, module: str, request: Path) -> Forked:
        """What stands in for `relwalk.children.start_process`."""
        asked = json.dumps([module, str(request), str(Path.cwd()), dict(os.environ)]).encode()
        (stdin, ours), (theirs, status) = os.pipe(), os.pipe()[::-1]
        socket.send_fds(self.connection, [len(asked).to_bytes(4, "big")], [stdin, theirs, sys.stderr.fileno()])
        self.connection.sendall(asked)
        for end in (stdin, theirs):
            os.close(end)
        line = b""
        while not line.endswith(b"\n"):
            line += os.read(status, 1)
        return Forked(int(line), ours, status)


def fork_zygote() -> Zygote:
    """A zygote of this process, which must have no threads yet."""
    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        ours.close()
        serve(theirs)
        os._exit(0)
    theirs.close()
    return Zygote(ours)


def serve(connection: socket.socket) -> None:
    """Fork for every request, until nobody is left to ask."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for those who ask
    while True:
        head, files, _, _ = socket.recv_fds(connection, 4, 3)
        if not head:
            return
        asked = connection.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL)
        if os.fork() == 0:
            connection.close()
            _watch(json.loads(asked), *files)
        for file in files:
            os.close(file)


def _watch(asked: list, stdin: int, status: int, stderr: int) -> None:
    """Fork the process itself, say its number, and its status when it has ended. Never returns."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    pid = os.fork()
    if pid == 0:
        os.close(status)
        _run(asked, stdin, stderr)
    os.close(stdin)
    os.write(status, b"%d\n" % pid)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.write(status, b"%d\n" % code)
    os._exit(0)


def _run(asked: list, stdin: int, stderr: int) -> None:
    """The module as a program of its own. Never returns."""
    module, request, folder, environment = asked
    os.setsid()
    for file, number in ((stdin, 0), (os.open(os.devnull, os.O_WRONLY), 1), (stderr, 2)):
        os.dup2(file, number)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = [module, request]
    code = 1
    try:
        runpy.run_module(module, run_name="__main__")
        code = 0
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else int(left.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stderr.flush()
        os._exit(code)
