"""The service as a process: where it listens, how it ends, what it refuses."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.entry import relwalk

WAIT = 120  # seconds, on a machine with other work


@contextmanager
def started(folder: Path, *words: str, **environment: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`relwalk serve` on a free port: its process, and where it answers."""
    command = [sys.executable, "-m", "relwalk", "serve", str(folder), "--port", "0", *words]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env={**os.environ, **environment}
    )
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert "serving" in line, line
        yield process, line.split(" at ")[1].split()[0].rstrip(";/")
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=WAIT)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_well_and_finishes_what_is_under_way(number: int, folder: Path) -> None:
    with started(folder) as (process, where):
        assert httpx.get(f"{where}/readyz", timeout=WAIT).json() == {"status": "ready"}
        found: list[httpx.Response] = []
        asked = threading.Thread(
            target=lambda: found.append(httpx.get(f"{where}/api/v1/discover", params={"k": 3}, timeout=WAIT))
        )
        asked.start()
        until = time.monotonic() + WAIT
        while "relwalk_requests_under_way 2.0" not in httpx.get(f"{where}/metrics", timeout=WAIT).text:
            assert time.monotonic() < until and not found
        process.send_signal(number)
        asked.join(WAIT)
        assert found and found[0].status_code == 200 and len(found[0].json()["links"]) == 3
        assert process.wait(WAIT) == 0
        assert "Traceback" not in (process.stderr.read() if process.stderr else "")
        with pytest.raises(httpx.TransportError):
            httpx.get(f"{where}/healthz", timeout=5)


def test_a_token_is_taken_from_the_environment_and_not_printed(folder: Path) -> None:
    secret = "not-to-be-printed-1"
    with started(folder, "--host", "0.0.0.0", RELWALK_TOKEN=secret) as (process, where):
        assert httpx.get(f"{where}/api/v1/runs", timeout=WAIT).status_code == 401
        allowed = httpx.get(f"{where}/api/v1/runs", headers={"Authorization": f"Bearer {secret}"}, timeout=WAIT)
        assert allowed.status_code == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT) == 0
        assert process.stderr is not None and secret not in process.stderr.read()


def test_a_port_in_use_is_one_sentence_with_the_cure(folder: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        told = relwalk("serve", folder, "--port", port, status=1).stderr
    assert told.count("\n") == 1 and f"port {port} of 127.0.0.1 is in use" in told and "--port 0" in told


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nowhere"], "nowhere is not a relwalk run"),
        (["--host", "0.0.0.0"], "Say --token"),
        (["--host", "203.0.113.7", "--token", "long-enough"], "is no address of this machine"),
        (["--token", "short"], "the --token has 5 characters"),
    ],
)
def test_what_cannot_be_served_is_one_sentence(words: list[str], told: str, learned: Path) -> None:
    run = [] if words[0] == "nowhere" else [learned]
    found = relwalk("serve", *run, *words, "--port", 0, status=1).stderr
    assert found.count("\n") == 1 and found.startswith("relwalk: ") and told in found


def lack_fastapi() -> None:
    sys.modules["fastapi"] = None  # type: ignore[assignment]  # what `import` finds of a package that is not there


def test_without_the_extra_it_says_what_to_install(learned: Path) -> None:
    found = relwalk("serve", learned, status=1, before=lack_fastapi).stderr
    assert found.count("\n") == 1 and "pip install 'relwalk[serve]'" in found
