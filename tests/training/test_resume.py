"""A training that is stopped at any moment goes on to the same bits: a real process, and every kind of step."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from relwalk.errors import Interrupted
from relwalk.evaluation.ranking import rank
from relwalk.experiment import resume, train
from relwalk.graph.graph import Graph
from relwalk.runs.checkpoint import read_progress
from relwalk.runs.run import read_state
from relwalk.sharded import processes
from relwalk.training import trainer
from relwalk.training.stopping import StopRequest, stop_on
from tests.entry import answer, relwalk, started

FACTS = "".join(f"e{i % 30}\tr{i % 4}\te{i * 11 % 37}\n" for i in range(200))
SETTINGS = [
    *("--dim", 8, "--epochs", 12, "--batch-size", 40, "--validate-every", 3),
    *("--checkpoint-seconds", 0, "--threads", 1, "--out"),
]


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("facts") / "facts.tsv"
    file.write_text(FACTS)
    return file


@pytest.fixture(scope="module")
def undisturbed(facts: Path) -> Path:
    relwalk("train", facts, *SETTINGS, facts.parent / "whole")
    return facts.parent / "whole"


def wait_after(epoch: int, step: int, here: Path) -> None:
    """A training stands still after this step, until it is asked to stop or killed; `here` says that it has come."""
    take = trainer.Trainer._step

    def stepped(self: trainer.Trainer, batch: object, generator: object, *at: int) -> float:
        loss = take(self, batch, generator, *at)
        if at == (epoch, step):
            here.touch()
            while not self.stop():
                time.sleep(0.005)
        return loss

    trainer.Trainer._step = stepped


def wait_before_it_is_renamed(epoch: int, step: int, here: Path) -> None:
    """The same with a checkpoint written whole that does not have its name yet."""
    trainer.CHECKPOINT_SHARE = float("inf")  # after every step, however long it takes
    replace, take = os.replace, trainer.Trainer._step
    now = [(0, 0)]

    def stepped(self: trainer.Trainer, batch: object, generator: object, *at: int) -> float:
        now[0] = at
        return take(self, batch, generator, *at)

    def renamed(source: object, target: object, **rest: object) -> None:
        if now[0] == (epoch, step) and Path(target).name == "checkpoint.safetensors":
            here.touch()
            time.sleep(600)
        replace(source, target, **rest)

    trainer.Trainer._step, os.replace = stepped, renamed


@pytest.mark.parametrize(
    ("wait", "epoch", "step", "stop"),
    [
        (wait_after, 1, 1, signal.SIGKILL),
        (wait_after, 2, 3, signal.SIGKILL),
        (wait_before_it_is_renamed, 6, 2, signal.SIGKILL),
        (wait_after, 9, 4, signal.SIGINT),
        (wait_after, 3, 2, signal.SIGTERM),
    ],
)
def test_killed_and_resumed_equals_undisturbed(
    facts: Path, undisturbed: Path, tmp_path: Path, wait: Callable[..., None], epoch: int, step: int, stop: int
) -> None:
    run, here, said = tmp_path / "killed", tmp_path / "here", tmp_path / "said"
    before = partial(wait, epoch, step, here)
    process = started("train", facts, *SETTINGS, run, said=said, before=before)
    while not here.exists():
        assert process.exitcode is None, said.read_text()
        time.sleep(0.005)
    os.kill(process.pid, stop)
    process.join()
    assert json.loads((run / "run.json").read_text())["status"] == "training"
    progress = read_progress(run / "checkpoint.safetensors")
    if stop == signal.SIGKILL:
        assert process.exitcode == -signal.SIGKILL
        assert (progress.epoch, progress.step) < (epoch - 1, step)
        assert (hidden(run) != [".lock"]) == (wait is wait_before_it_is_renamed)
        command = ["relwalk", "resume", str(run)]
    else:
        assert process.exitcode == 128 + stop
        assert (progress.epoch, progress.step) == (epoch - 1, step)
        stopped, command = said.read_text().splitlines()[-1].split("; go on with: ")
        assert stopped == f"stopped in epoch {epoch}"
        command = shlex.split(command)
        assert hidden(run) == []
    assert command == ["relwalk", "resume", str(run)]
    relwalk(*command[1:])
    assert (run / "weights.safetensors").read_bytes() == (undisturbed / "weights.safetensors").read_bytes()
    assert json.loads((run / "run.json").read_text())["status"] == "finished"
    assert hidden(run) == []


def hidden(run: Path) -> list[str]:
    return [path.name for path in run.iterdir() if path.name.startswith(".")]


SMALL = {"dim": 8, "epochs": 4, "validate_every": 2, "threads": 1, "checkpoint_seconds": 1e9}
STEPS = {  # every kind of step that draws at random
    "likelihood": {"batch_size": 470, "entity_dropout": 0.1, "relation_weight": 0.5},
    "sampled": {"batch_size": 470, "candidates_per_step": 64, "optimizer": "rowwise-adagrad"},
    "margin": {"batch_size": 470, "objective": "margin", "negatives": 5, "sampler": "bernoulli", "optimizer": "adam"},
    "grown": {"batch_size": 470, "model": "transg", "beta": 0.5, "settle": 2, "candidates_per_step": 64},
    "kbgan": {"batch_size": 470, "objective": "hardest", "negatives": 2, "sampler": "kbgan", "generator_dim": 4},
    "averaged": {"batch_size": 470, "average_from": 2, "schedule": "cosine", "warmup": 1.5},
    "path": {"batch_size": 470, "l2": 0.3, "n3": 0.1, "decay_end": 0.01, "schedule": "cosine"},
    "blocks": {"batch_size": 470, "blocks": 4, "average_from": 3},
    "hidden": {"batch_size": 470, "hidden": True, "equal_lengths": True, "relation_bias": True, "dura": 0.1},
    "network": {"batch_size": 470, "model": "conve", "channels": 4, "objective": "bce", "average_from": 3},
}


@pytest.fixture(scope="module", params=STEPS)
def whole(
    request: pytest.FixtureRequest, small_world: Graph, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict, Path]:
    path = tmp_path_factory.mktemp("whole") / request.param
    settings = SMALL | STEPS[request.param]
    train(small_world, out=path, **settings)
    return settings, path


def assert_same(run: Path, other: Path) -> None:
    assert (run / "weights.safetensors").read_bytes() == (other / "weights.safetensors").read_bytes()
    lines = [(path / "history.jsonl").read_text().splitlines() for path in (run, other)]
    epochs = [[(e["epoch"], e["loss"], e["metric"]) for e in map(json.loads, part)] for part in lines]
    assert epochs[0] == epochs[1]


def test_stopped_after_every_so_many_steps_equals_undisturbed(
    whole: tuple[dict, Path], small_world: Graph, tmp_path: Path
) -> None:
    settings, undisturbed = whole
    run, stops = tmp_path / "run", 0

    def ask_of(steps: int):
        asked = iter([False] * steps)
        return lambda: next(asked, True)

    with pytest.raises(Interrupted):
        train(small_world, out=run, stop=ask_of(2), **settings)
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
    whole: tuple[dict, Path], small_world: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
        train(small_world, out=tmp_path / "run", observer=Dies(), **settings | {"checkpoint_seconds": 0})
    progress = read_progress(tmp_path / "run" / "checkpoint.safetensors")
    assert (progress.epoch, progress.step) == (1, 2)
    resume(tmp_path / "run")
    assert_same(tmp_path / "run", undisturbed)


def test_a_signal_breaks_off_a_validation_which_is_made_again(
    whole: tuple[dict, Path], small_world: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, undisturbed = whole
    request = StopRequest()

    def interrupted(*_: object, **__: object) -> None:
        request.receive(signal.SIGTERM)
        pytest.fail("validation went on after a signal")

    monkeypatch.setattr(processes, "rank", interrupted)
    with pytest.raises(Interrupted, match="epoch 2"):
        train(small_world, out=tmp_path / "run", stop=request, **settings)
    monkeypatch.setattr(processes, "rank", rank)
    resume(tmp_path / "run")
    assert_same(tmp_path / "run", undisturbed)


@pytest.fixture
def heard() -> Iterator[None]:
    """Ctrl-C is heard, also by tests that a shell runs in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_in_python_saves_the_last_step(
    whole: tuple[dict, Path], small_world: Graph, tmp_path: Path, heard: None
) -> None:
    settings, undisturbed = whole
    before = signal.getsignal(signal.SIGINT)

    class Presses:
        def step(self, epoch: int, step: int, steps: int, loss: float) -> None:
            if (epoch, step) == (3, 2):
                signal.raise_signal(signal.SIGINT)

        def epoch(self, *_: object) -> None:
            pass

    with pytest.raises(KeyboardInterrupt, match=r"epoch 3; go on with: relwalk\.resume\('.*run'\)"):
        train(small_world, out=tmp_path / "run", observer=Presses(), **settings)
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
    whole: tuple[dict, Path], small_world: Graph, tmp_path: Path
) -> None:
    settings, undisturbed = whole
    with pytest.raises(Interrupted):
        train(small_world, out=tmp_path / "run", stop=lambda: True, **settings)
    for name in ("checkpoint.safetensors", "history.jsonl"):
        (tmp_path / "run" / name).unlink()
    resume(tmp_path / "run")
    assert_same(tmp_path / "run", undisturbed)


def test_a_finished_run_can_be_trained_further(undisturbed: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(undisturbed, run)
    assert answer("resume", run, "--epochs", 14)["metrics"]["epochs"] == 14


def test_resume_of_something_else_is_refused(tmp_path: Path) -> None:
    assert "is not a relwalk run" in relwalk("resume", tmp_path, status=1).stderr
