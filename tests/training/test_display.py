"""What is shown of a training, with the time put in by the test; and the loss that is shown."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from relwalk import progress
from relwalk.experiment import make_task, train
from relwalk.graph.graph import Graph
from relwalk.mapped import MEMORY, DiskRoom, Room
from relwalk.models import build_model
from relwalk.progress import MINUTE, Log, Terminal
from relwalk.runs.checkpoint import Epoch, Progress
from relwalk.training.display import TrainingDisplay
from relwalk.training.footprint import LARGE, memory_needed, resident
from relwalk.training.settings import TrainingSettings
from relwalk.training.trainer import Trainer
from tests.conftest import make_graph


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def logged(epochs: int, done: int = 0) -> tuple[TrainingDisplay, list[str], Clock]:
    clock, lines = Clock(), []
    return TrainingDisplay(Log(short=MINUTE, clock=clock, write=lines.append), epochs, done, clock=clock), lines, clock


def an_epoch(display: TrainingDisplay, clock: Clock, number: int, steps: int, seconds: float, **record) -> None:
    """An epoch of so many steps, each of which takes so many seconds."""
    for step in range(1, steps + 1):
        clock.now += seconds
        display.step(number, step, steps, 7.0 - step / steps)
    metric = record.get("metric")
    display.epoch(Epoch(number, 6.0, steps * seconds, metric), Progress(epoch=number, best_metric=metric))


def test_a_long_epoch_is_a_line_a_minute_and_its_time_is_told_before_it_ends() -> None:
    display, lines, clock = logged(epochs=100)
    an_epoch(display, clock, 1, steps=2400, seconds=0.125)
    assert lines[0] == "time: about 5.0 min an epoch, 8 h 20 min for 100. Fewer epochs or a smaller dim take less"
    assert lines[1] == "epoch 1/100  loss 6.7833  step 520/2,400  5.0 min an epoch  ETA 8:18:55"
    assert lines[-1] == "epoch 1/100  loss 6.0000  300.00 s  ETA 8:15:00"
    assert len(lines) == 6 and sum("time: about" in line for line in lines) == 1


def test_short_epochs_are_a_line_at_most_every_few_seconds_and_at_every_validation() -> None:
    display, lines, clock = logged(epochs=60)
    for number in range(1, 61):
        an_epoch(display, clock, number, steps=4, seconds=0.25, metric=0.5 if number % 25 == 0 else None)
    assert not any("time: about" in line for line in lines)  # an epoch is over before anything could be told
    numbers = [int(line.split("/")[0].removeprefix("epoch ")) for line in lines]
    assert numbers == [10, 20, 25, 35, 45, 50, 60]
    assert lines[2] == "epoch 25/60  loss 6.0000  valid MRR 0.5000 (best 0.5000)  1.00 s  ETA 0:35"


def test_a_resumed_training_counts_only_what_is_left() -> None:
    display, lines, clock = logged(epochs=100, done=90)
    an_epoch(display, clock, 91, steps=600, seconds=1.0)
    assert lines[0] == "time: about 10 min an epoch, 1 h 40 min for 10. Fewer epochs or a smaller dim take less"
    assert lines[-1].endswith("ETA 1:30:00")


def test_a_validation_of_minutes_is_shown_too() -> None:
    display, lines, clock = logged(epochs=10)
    an_epoch(display, clock, 1, steps=4, seconds=20.0)
    lines.clear()
    for percent in range(0, 101, 10):
        clock.now += 10
        display.validation(percent, 100, "ranking valid")
    assert lines == [
        "epoch 1/10  validating 50%  loss 6.0000  ETA 12:00",
    ]


def test_the_bar_keeps_epoch_and_time_left_at_40_columns() -> None:
    clock, out = Clock(), io.StringIO()
    console = Console(file=out, force_terminal=True, width=40, color_system=None, legacy_windows=False)
    screen = Terminal(short=0.0, clock=clock, console=console)
    display = TrainingDisplay(screen, 1000, clock=clock)
    an_epoch(display, clock, 1, steps=4, seconds=30.0, metric=0.5)
    screen.live.refresh()
    screen.close()
    assert "epoch 1/1000  loss 6.0000  ETA 33:18:00" in out.getvalue()


@pytest.mark.parametrize(
    ("needed", "there", "words"),
    [
        (LARGE // 2, None, []),
        (4 * LARGE, None, ["memory: about 4.0 GiB at the peak"]),
        (4 * LARGE, 8 * LARGE, ["memory: about 4.0 GiB at the peak"]),
        (
            4 * LARGE,
            2 * LARGE,
            ["memory: about 4.0 GiB at the peak, more than the 2.0 GiB that this machine has for it"],
        ),
    ],
)
def test_much_memory_is_told_before_the_first_step(needed: int, there: int | None, words: list[str]) -> None:
    display, lines, _ = logged(epochs=1)
    display.memory(needed, there)
    assert lines == words


def test_memory_grows_with_what_a_training_holds(world: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert resident() > 0
    monkeypatch.setattr("relwalk.training.footprint.resident", lambda: 0)

    def needed(room: Room = MEMORY, **more) -> int:
        settings = TrainingSettings(candidates_per_step=0, batch_size=1000, **more)
        model = build_model("relwalk", len(world.entities), len(world.relations), 32, seed=0, options={})
        trainer = Trainer(model, make_task(world, settings), settings, room=room)
        return memory_needed(trainer)

    weights = 4 * (len(world.entities) * 32 + len(world.relations) * 32 * 32)
    assert needed(optimizer="sgd") == (100 << 20) + weights + 4 * 1000 * len(world.entities)
    assert needed() - needed(optimizer="sgd") == weights
    assert needed(optimizer="adam") - needed() == weights
    assert needed(average_from=1) - needed() == weights
    assert needed(DiskRoom(tmp_path)) == needed(optimizer="sgd")


@pytest.mark.parametrize("objective", ["likelihood", "softmax"])
@pytest.mark.parametrize("batch_size", [3, 100])
def test_the_loss_is_per_triple_whatever_the_batch(objective: str, batch_size: int, tmp_path: Path) -> None:
    steps = []

    class Watch:
        def step(self, epoch: int, step: int, steps_of_epoch: int, loss: float) -> None:
            steps.append(loss)

        def epoch(self, *_: object) -> None:
            pass

    rng = np.random.default_rng(0)
    graph = make_graph([(h, h % 2, t) for h, t in rng.integers(20, size=(40, 2)).tolist()], entities=20)
    settings = {"objective": objective, "batch_size": batch_size, "lr": 1e-9, "relation_lr": 1e-9, "l2": 0.0}
    settings |= {"negatives": 7} if objective == "softmax" else {}
    train(graph, dim=8, epochs=1, out=tmp_path / "run", observer=Watch(), entity_scale=1e-3, **settings)
    (record,) = [json.loads(line) for line in (tmp_path / "run" / "history.jsonl").read_text().splitlines()]
    nothing = math.log(20 if objective == "likelihood" else 8)  # a model that knows nothing gives each of n 1/n
    assert record["loss"] == pytest.approx(nothing, rel=1e-3)
    assert steps[-1] == pytest.approx(record["loss"])


def test_train_shows_its_progress_where_asked(
    five: Graph, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    train(five, dim=4, epochs=1)
    assert capsys.readouterr().err == ""  # nobody watches
    train(five, dim=4, epochs=1, progress=True)
    assert "epoch 1/1  loss" in capsys.readouterr().err
    monkeypatch.setattr(progress, "on_terminal", lambda: True)
    train(five, dim=4, epochs=1, progress=False)
    assert capsys.readouterr().err == ""
