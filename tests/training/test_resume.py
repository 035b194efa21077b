"""A real process, killed at any moment, goes on to the same bits."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

TRAIN = [
    *(sys.executable, "-m", "relwalk", "train", "world", "--dim", "16", "--epochs", "12"),
    *("--batch-size", "512", "--validate-every", "3", "--checkpoint-seconds", "0", "--threads", "2", "--out"),
]
RESUME = [sys.executable, "-m", "relwalk", "resume"]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("resume") / "whole"
    subprocess.run([*TRAIN, str(run)], check=True, capture_output=True)
    return run


def epochs_done(run: Path) -> int:
    """How many epochs the history on disk tells of; it is written right after each checkpoint."""
    history = run / "history.jsonl"
    return len(history.read_text().splitlines()) if history.exists() else -1


@pytest.mark.parametrize(
    ("epochs", "stop"), [(0, signal.SIGKILL), (1, signal.SIGKILL), (5, signal.SIGKILL), (8, signal.SIGINT)]
)
def test_killed_and_resumed_equals_undisturbed(undisturbed: Path, tmp_path: Path, epochs: int, stop: int) -> None:
    run = tmp_path / "killed"
    process = subprocess.Popen([*TRAIN, str(run)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while epochs_done(run) < epochs and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.003)
    time.sleep(0.02 * (epochs % 3))  # not always right after a checkpoint
    process.send_signal(stop)
    assert process.wait() == (-signal.SIGKILL if stop == signal.SIGKILL else 130)
    assert json.loads((run / "run.json").read_text())["status"] == "training"
    subprocess.run([*RESUME, str(run)], check=True, capture_output=True)
    assert (run / "weights.safetensors").read_bytes() == (undisturbed / "weights.safetensors").read_bytes()
    assert json.loads((run / "run.json").read_text())["status"] == "finished"
    assert [path.name for path in run.iterdir() if path.name.startswith(".")] == [] or stop == signal.SIGKILL


def test_a_finished_run_can_be_trained_further(undisturbed: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    subprocess.run(["cp", "-r", str(undisturbed), str(run)], check=True)
    done = subprocess.run([*RESUME, str(run), "--epochs", "14", "--json"], check=True, capture_output=True, text=True)
    assert json.loads(done.stdout)["metrics"]["epochs"] == 14


def test_resume_of_something_else_is_refused(tmp_path: Path) -> None:
    done = subprocess.run([*RESUME, str(tmp_path)], capture_output=True, text=True, env=os.environ)
    assert done.returncode == 1
    assert "is not a relwalk run" in done.stderr
