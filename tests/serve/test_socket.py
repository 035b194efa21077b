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
from typing import Any

import httpx
import pytest

from tests import entry
from tests.entry import relwalk

WAIT = 120  # seconds, on a machine with other work


class Service:
    """`relwalk serve` on a free port, as a shell starts it or forked: where it answers, what it says, how it ends."""

    def __init__(self, folder: Path, *words: str, shell: bool = False) -> None:
        self.said = folder.with_name("said")
        command = ["serve", str(folder), "--port", "0", *words]
        if shell:
            with self.said.open("w") as said:
                start = [sys.executable, "-m", "relwalk", *command]
                self.process: Any = subprocess.Popen(start, stderr=said, stdout=subprocess.DEVNULL)
        else:
            self.process = entry.started(*command, said=self.said)
        until = time.monotonic() + WAIT
        while not (self.said.exists() and self.said.read_text().endswith("\n")):
            assert time.monotonic() < until
            time.sleep(0.01)
        line = self.said.read_text()
        assert "serving" in line, line
        self.where = line.split(" at ")[1].split()[0].rstrip(";/")

    def status(self) -> int | None:
        """Its exit status, once it has ended."""
        if isinstance(self.process, subprocess.Popen):
            return self.process.wait(WAIT)
        self.process.join(WAIT)
        return int(self.process.exitcode)


@contextmanager
def started(folder: Path, *words: str, shell: bool = False) -> Iterator[Service]:
    service = Service(folder, *words, shell=shell)
    try:
        yield service
    finally:
        service.process.kill()
        service.status()


@pytest.mark.parametrize(("number", "shell"), [(signal.SIGTERM, True), (signal.SIGINT, False)])
def test_it_ends_well_and_finishes_what_is_under_way(number: int, shell: bool, folder: Path) -> None:
    with started(folder, shell=shell) as service:
        assert httpx.get(f"{service.where}/readyz", timeout=WAIT).json() == {"status": "ready"}
        found: list[httpx.Response] = []
        asked = threading.Thread(
            target=lambda: found.append(httpx.get(f"{service.where}/api/v1/discover", params={"k": 3}, timeout=WAIT))
        )
        asked.start()
        until = time.monotonic() + WAIT
        while "relwalk_requests_under_way 2.0" not in httpx.get(f"{service.where}/metrics", timeout=WAIT).text:
            assert time.monotonic() < until and not found
        os.kill(service.process.pid, number)
        asked.join(WAIT)
        assert found and found[0].status_code == 200 and len(found[0].json()["links"]) == 3
        assert service.status() == 0
        assert "Traceback" not in service.said.read_text()
        with pytest.raises(httpx.TransportError):
            httpx.get(f"{service.where}/healthz", timeout=5)


def test_a_token_is_taken_from_the_environment_and_not_printed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "not-to-be-printed-1"
    monkeypatch.setenv("RELWALK_TOKEN", secret)
    with started(folder, "--host", "0.0.0.0") as service:
        assert httpx.get(f"{service.where}/api/v1/runs", timeout=WAIT).status_code == 401
        headers = {"Authorization": f"Bearer {secret}"}
        assert httpx.get(f"{service.where}/api/v1/runs", headers=headers, timeout=WAIT).status_code == 200
        os.kill(service.process.pid, signal.SIGTERM)
        assert service.status() == 0
        assert secret not in service.said.read_text()


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
