"""A training that is stopped at any moment goes on to the same bits: a real process, and every kind of step."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from relwalk import experiment
from relwalk.errors import Interrupted
from relwalk.evaluation.ranking import rank
from relwalk.experiment import resume, train
from relwalk.graph.graph import Graph
from relwalk.runs.checkpoint import read_progress
from relwalk.runs.run import read_state
from relwalk.training import trainer
from relwalk.training.stopping import StopRequest, stop_on

TRAIN = [
    *(sys.executable, "-m", "relwalk", "train", "world", "--dim", "16", "--epochs", "12"),
    *("--batch-size", "512", "--validate-every", "3", "--checkpoint-seconds", "0", "--threads", "1", "--out"),
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
    ("epochs", "stop"),
    [(0, signal.SIGKILL), (1, signal.SIGKILL), (5, signal.SIGKILL), (8, signal.SIGINT), (2, signal.SIGTERM)],
)
def test_killed_and_resumed_equals_undisturbed(undisturbed: Path, tmp_path: Path, epochs: int, stop: int) -> None:
    run = tmp_path / "killed"
    process = subprocess.Popen([*TRAIN, str(run)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while epochs_done(run) < epochs and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.003)
    time.sleep(0.02 * (epochs % 3))  # not always right after a checkpoint
    process.send_signal(stop)
    _, said = process.communicate(timeout=120)
    assert json.loads((run / "run.json").read_text())["status"] == "training"
    if stop == signal.SIGKILL:
        assert process.returncode == -signal.SIGKILL
        command = ["relwalk", "resume", str(run)]
    else:
        assert process.returncode == 128 + stop
        progress = read_progress(run / "checkpoint.safetensors")
        stopped, command = said.splitlines()[-1].split("; go on with: ")
        assert stopped == f"stopped in epoch {progress.epoch + 1}"
        command = shlex.split(command)
        assert hidden(run) == []
    assert command == ["relwalk", "resume", str(run)]
    subprocess.run([sys.executable, "-m", *command], check=True, capture_output=True)
    assert (run / "weights.safetensors").read_bytes() == (undisturbed / "weights.safetensors").read_bytes()
    assert json.loads((run / "run.json").read_text())["status"] == "finished"
    assert hidden(run) == []


def hidden(run: Path) -> list[str]:
    return [path.name for path in run.iterdir() if path.name.startswith(".")]


SMALL = {"dim": 8, "epochs": 4, "validate_every": 2, "threads": 1, "checkpoint_seconds": 1e9}
STEPS = {  # every kind of step that draws at random
    "likelihood": {"batch_size": 3000, "entity_dropout": 0.1, "relation_weight": 0.5},
    "sampled": {"batch_size": 3000, "candidates_per_step": 64, "optimizer": "rowwise-adagrad"},
    "margin": {"batch_size": 3000, "objective": "margin", "negatives": 5, "sampler": "bernoulli", "optimizer": "adam"},
    "grown": {"batch_size": 3000, "model": "transg", "beta": 0.5, "settle": 2, "candidates_per_step": 64},
    "kbgan": {"batch_size": 3000, "objective": "hardest", "negatives": 2, "sampler": "kbgan", "generator_dim": 4},
    "averaged": {"batch_size": 3000, "average_from": 2, "schedule": "cosine", "warmup": 1.5},
    "path": {"batch_size": 3000, "l2": 0.3, "n3": 0.1, "decay_end": 0.01, "schedule": "cosine"},
    "blocks": {"batch_size": 3000, "blocks": 4, "average_from": 3},
    "network": {"batch_size": 3000, "model": "conve", "channels": 4, "objective": "bce", "average_from": 3},
}


@pytest.fixture(scope="module", params=STEPS)
def whole(request: pytest.FixtureRequest, world: Graph, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict, Path]:
    path = tmp_path_factory.mktemp("whole") / request.param
    settings = SMALL | STEPS[request.param]
    train(world, out=path, **settings)
    return settings, path


def assert_same(run: Path, other: Path) -> None:
    assert (run / "weights.safetensors").read_bytes() == (other / "weights.safetensors").read_bytes()
    lines = [(path / "history.jsonl").read_text().splitlines() for path in (run, other)]
    epochs = [[(e["epoch"], e["loss"], e["metric"]) for e in map(json.loads, part)] for part in lines]
    assert epochs[0] == epochs[1]


def test_stopped_after_every_so_many_steps_equals_undisturbed(
    whole: tuple[dict, Path], world: Graph, tmp_path: Path
) -> None:
    settings, undisturbed = whole
    run, stops = tmp_path / "run", 0

    def ask_of(steps: int):
        asked = iter([False] * steps)
        return lambda: next(asked, True)

    with pytest.raises(Interrupted):
        train(world, out=run, stop=ask_of(2), **settings)
    while True:
        progress = read_progress(run / "checkpoint.safetensors")
        try:
            resume(run, stop=ask_of(5))
            break
        except Interrupted as error:
            stops += progress.step > 0
            assert error.epoch == read_state(run).epoch + 1
    assert stops >= 2  # in the middle of an epoch
    assert_same(run, undisturbed)


def test_a_checkpoint_by_time_in_the_middle_of_an_epoch(
    whole: tuple[dict, Path], world: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, undisturbed = whole
    monkeypatch.setattr(trainer, "CHECKPOINT_SHARE", float("inf"))  # however long a checkpoint takes

    class Death(BaseException):
        pass

    class Dies:
        def step(self, epoch: int, step: int, steps: int, loss: float) -> None:
            if (epoch, step) == (2, 3):
                raise Death

        def epoch(self, *_: object) -> None:
            pass

    with pytest.raises(Death):
        train(world, out=tmp_path / "run", observer=Dies(), **settings | {"checkpoint_seconds": 0})
    progress = read_progress(tmp_path / "run" / "checkpoint.safetensors")
    assert (progress.epoch, progress.step) == (1, 2)
    resume(tmp_path / "run")
    assert_same(tmp_path / "run", undisturbed)


def test_a_signal_breaks_off_a_validation_which_is_made_again(
    whole: tuple[dict, Path], world: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, undisturbed = whole
    request = StopRequest()

    def interrupted(*_: object, **__: object) -> None:
        request.receive(signal.SIGTERM)
        pytest.fail("validation went on after a signal")

    monkeypatch.setattr(experiment, "rank", interrupted)
    with pytest.raises(Interrupted, match="epoch 2"):
        train(world, out=tmp_path / "run", stop=request, **settings)
    monkeypatch.setattr(experiment, "rank", rank)
    resume(tmp_path / "run")
    assert_same(tmp_path / "run", undisturbed)


def test_ctrl_c_in_python_saves_the_last_step(whole: tuple[dict, Path], world: Graph, tmp_path: Path) -> None:
    settings, undisturbed = whole
    before = signal.getsignal(signal.SIGINT)

    class Presses:
        def step(self, epoch: int, step: int, steps: int, loss: float) -> None:
            if (epoch, step) == (3, 2):
                signal.raise_signal(signal.SIGINT)

        def epoch(self, *_: object) -> None:
            pass

    with pytest.raises(KeyboardInterrupt, match=r"epoch 3; go on with: relwalk\.resume\('.*run'\)"):
        train(world, out=tmp_path / "run", observer=Presses(), **settings)
    assert signal.getsignal(signal.SIGINT) is before
    progress = read_progress(tmp_path / "run" / "checkpoint.safetensors")
    assert (progress.epoch, progress.step) == (2, 2)
    resume(tmp_path / "run")
    assert_same(tmp_path / "run", undisturbed)


def test_the_second_signal_is_not_caught() -> None:
    before = signal.signal(signal.SIGUSR1, signal.default_int_handler)
    try:
        with stop_on(signal.SIGUSR1) as request:
            signal.raise_signal(signal.SIGUSR1)
            assert request() and request.signal == signal.SIGUSR1
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGUSR1)
        with stop_on(signal.SIGUSR1, then=signal.SIG_DFL):
            signal.raise_signal(signal.SIGUSR1)
            assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL  # ends the process, whatever it is doing
        assert signal.getsignal(signal.SIGUSR1) is signal.default_int_handler
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        with stop_on(signal.SIGUSR1) as request:
            signal.raise_signal(signal.SIGUSR1)
            assert not request()  # nohup, a job in the background
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_run_without_a_checkpoint_yet_starts_from_its_seed(
    whole: tuple[dict, Path], world: Graph, tmp_path: Path
) -> None:
    settings, undisturbed = whole
    with pytest.raises(Interrupted):
        train(world, out=tmp_path / "run", stop=lambda: True, **settings)
    for name in ("checkpoint.safetensors", "history.jsonl"):
        (tmp_path / "run" / name).unlink()
    resume(tmp_path / "run")
    assert_same(tmp_path / "run", undisturbed)


def test_a_finished_run_can_be_trained_further(undisturbed: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    subprocess.run(["cp", "-r", str(undisturbed), str(run)], check=True)
    done = subprocess.run([*RESUME, str(run), "--epochs", "14", "--json"], check=True, capture_output=True, text=True)
    assert json.loads(done.stdout)["metrics"]["epochs"] == 14


def test_resume_of_something_else_is_refused(tmp_path: Path) -> None:
    done = subprocess.run([*RESUME, str(tmp_path)], capture_output=True, text=True, env=os.environ)
    assert done.returncode == 1
    assert "is not a relwalk run" in done.stderr
