"""A budget of time: training stops at the step that reaches it, keeps the best, and goes on with what is left."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from relwalk.checks import MOST, check_seconds
from relwalk.errors import Interrupted, RelWalkError
from relwalk.experiment import resume, train
from relwalk.graph.graph import Graph
from relwalk.runs.checkpoint import Epoch, Progress, read_progress
from relwalk.runs.run import load_run, read_state
from relwalk.training import trainer
from relwalk.training.schedule import Cosine, rate_factor
from relwalk.training.settings import make_settings
from relwalk.training.stopping import StopRequest
from tests.entry import relwalk

SMALL = {"dim": 4, "batch_size": 150, "threads": 1}


class Clock:
    """A clock that a step moves by a second: `time` as the trainer sees it."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    clock, step = Clock(), trainer.Trainer._step

    def timed(*arguments: object) -> float:
        clock.now += 1.0
        return step(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(trainer, "time", clock)
    monkeypatch.setattr(trainer.Trainer, "_step", timed)
    yield clock


def history(run: Path) -> list[dict]:
    return [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(
    ("said", "seconds"),
    [("90s", 90), ("10m", 600), ("1.5h", 5400), ("1d", 86400), ("7", 7), (7, 7), (0.5, 0.5), (" 2 m ", 120)],
)
def test_a_time_in_words(said: object, seconds: float) -> None:
    assert check_seconds("budget", said) == seconds


@pytest.mark.parametrize("wrong", ["", "x", "0s", 0, -1, "10 min", "1e3", math.nan, math.inf, True, None, "9" * 13])
def test_what_is_no_time_is_refused(wrong: object) -> None:
    with pytest.raises(RelWalkError, match=r"budget is .*; expected a time as 90s, 10m or 1h"):
        check_seconds("budget", wrong)


def test_the_step_that_reaches_it_is_the_last(clock: Clock, small_world: Graph, tmp_path: Path) -> None:
    whole = train(small_world, out=tmp_path / "whole", epochs=1, **SMALL)
    steps = round(history(tmp_path / "whole")[0]["seconds"])
    assert steps > 3
    run = train(small_world, out=tmp_path / "run", budget=2.5 * steps, **SMALL)
    epochs = history(tmp_path / "run")
    assert [e["seconds"] for e in epochs] == [steps, steps, math.ceil(2.5 * steps) - 2 * steps]
    assert epochs[-1]["metric"] is not None  # validated at the end, wherever that is
    assert epochs[-1]["loss"] == pytest.approx(epochs[1]["loss"], rel=0.3)  # per triple that it saw
    assert run.record.metrics["seconds"] == sum(e["seconds"] for e in epochs)
    assert run.record.metrics["valid_mrr"] == max(e["metric"] for e in epochs if e["metric"] is not None)
    assert (run.record.training.budget, run.record.training.epochs) == (2.5 * steps, MOST)
    assert "seconds" not in whole.record.metrics
    assert str(read_state(tmp_path / "run")) == "finished: epoch 3"


def test_what_validates_and_saves_is_not_on_the_clock(clock: Clock, small_world: Graph, tmp_path: Path) -> None:
    class Slow:
        def step(self, *_: object) -> None:
            clock.now += 100.0

        def epoch(self, *_: object) -> None:
            clock.now += 100.0

    run = train(small_world, out=tmp_path / "run", budget=5, observer=Slow(), checkpoint_seconds=0, **SMALL)
    assert run.record.metrics["seconds"] == 5


def test_validations_are_twenty_at_most(clock: Clock, five: Graph, tmp_path: Path) -> None:
    train(five, out=tmp_path / "run", budget="100", **SMALL | {"batch_size": 100_000})
    found = [e for e in history(tmp_path / "run") if e["metric"] is not None]
    assert len(found) == 20 and found[-1]["epoch"] == 100


def test_epochs_may_end_it_first(clock: Clock, small_world: Graph) -> None:
    run = train(small_world, budget="1h", epochs=2, **SMALL)
    assert run.record.metrics["epochs"] == 2 and run.record.training.patience == MOST


def test_interrupted_it_goes_on_with_what_is_left(clock: Clock, small_world: Graph, tmp_path: Path) -> None:
    asked = iter([False] * 3)
    with pytest.raises(Interrupted):
        train(small_world, out=tmp_path / "run", budget=20, stop=lambda: next(asked, True), **SMALL)
    assert read_progress(tmp_path / "run" / "checkpoint.safetensors").seconds == 3
    run = resume(tmp_path / "run")
    undisturbed = train(small_world, budget=20, **SMALL)
    assert run.record.metrics == undisturbed.record.metrics and run.record.metrics["seconds"] == 20


def test_a_decay_that_falls_does_so_by_time(clock: Clock, small_world: Graph, tmp_path: Path) -> None:
    falling = SMALL | {"l2": 0.5, "decay_end": 0.001}
    asked = iter([False] * 3)
    with pytest.raises(Interrupted):
        train(small_world, out=tmp_path / "run", budget=20, stop=lambda: next(asked, True), **falling)
    resumed, undisturbed = resume(tmp_path / "run"), train(small_world, budget=20, **falling)
    assert torch.equal(resumed.model.entity.weight, undisturbed.model.entity.weight)
    constant = train(small_world, budget=20, **falling | {"decay_end": 1.0})
    norms = [float(run.model.entity.weight.detach().norm()) for run in (undisturbed, constant)]
    assert norms[0] > 1.05 * norms[1]


def test_interrupted_at_its_last_validation_it_only_validates(clock: Clock, small_world: Graph, tmp_path: Path) -> None:
    stop = StopRequest()

    class AtTheEnd:
        def step(self, *_: object) -> None:
            if clock.now >= 5:
                stop.signal = 2

        def epoch(self, *_: object) -> None:
            pass

    with pytest.raises(Interrupted):
        train(small_world, out=tmp_path / "run", budget=5, stop=stop, observer=AtTheEnd(), **SMALL)
    run = resume(tmp_path / "run")
    assert run.record.metrics["seconds"] == 5 and history(tmp_path / "run")[-1]["metric"] is not None


def test_a_finished_run_is_trained_further_by_more_time(clock: Clock, small_world: Graph, tmp_path: Path) -> None:
    train(small_world, out=tmp_path / "run", budget=20, **SMALL)
    for change in ({"budget": 20}, {"epochs": 1000}):
        with pytest.raises(RelWalkError, match="Say --budget with more"):
            resume(tmp_path / "run", **change)  # type: ignore[arg-type]
    longer = resume(tmp_path / "run", budget="40s")
    assert longer.record.metrics["seconds"] == 40
    assert longer.record.changes[0].settings == {"budget": 40.0}
    train(small_world, out=tmp_path / "other", epochs=1, **SMALL)
    with pytest.raises(RelWalkError, match="begun without a budget"):
        resume(tmp_path / "other", budget="1m")


def test_a_schedule_follows_the_time() -> None:
    settings = make_settings({}, {"budget": 100, "epochs": MOST, "schedule": "cosine", "warmup": 2})
    at = [rate_factor(Cosine(name="cosine"), settings, 10.0, 0, seconds) for seconds in (0, 50, 100, 130)]
    assert at == pytest.approx([1, 0.5, 0, 0], abs=1e-6)
    both = make_settings({}, {"budget": 100, "epochs": 10, "schedule": "cosine"})
    assert rate_factor(Cosine(name="cosine"), both, 5.0, 0, 10) == pytest.approx(0.5)
    assert rate_factor(Cosine(name="cosine"), settings, 1.0, 0, 0) == pytest.approx(0.5)  # warm-up is in epochs


def test_time_is_added_up_from_history() -> None:
    progress = Progress(epoch=2, history=[Epoch(1, 1.0, 2.0, 0.5), Epoch(2, 1.0, 3.0)], step_seconds=0.5)
    assert (progress.seconds, progress.seconds_at_validation) == (5.5, 2.0)
    progress.close_epoch(Epoch(3, 1.0, 4.0, 0.6))
    assert (progress.seconds, progress.seconds_at_validation) == (9.0, 9.0)


def test_on_the_command_line(tmp_path: Path) -> None:
    done = relwalk("train", "world", "--dim", 4, "--budget", "0.3s", "--out", tmp_path / "run")
    record = load_run(tmp_path / "run").record
    assert record.training.budget == 0.3 and record.metrics["seconds"] >= 0.3
    assert str(MOST) not in done.stdout + done.stderr
    relwalk("resume", tmp_path / "run", "--budget", "0.6s")
    wrong = relwalk("train", "world", "--budget", "soon", "--out", tmp_path / "other", status=1)
    assert "budget is 'soon'; expected a time as 90s" in wrong.stderr and not (tmp_path / "other").exists()
