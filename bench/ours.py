"""Our side: an epoch by likelihood, filtered ranking, time to a validation MRR, reading a file.

Training is timed from step to step by an observer of the trainer, so that everything counts: making the batch, the
loss, its gradient, both optimisers. The first steps are left out (rotations are still large and dear); an epoch is
scaled from the mean of the measured ones, a mean because a dear step now and then is part of the price. Ranking is
the whole test set, both sides; its first call, which also makes the lists of known answers, is given apart.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from process import emit, peak_mb

from relwalk.evaluation.ranking import rank as rank_split
from relwalk.experiment import make_task
from relwalk.experiment import train as train_run
from relwalk.graph.graph import Graph
from relwalk.graph.read import read_graph
from relwalk.models import Scorer, build_model
from relwalk.training.memory import keep_freed_memory
from relwalk.training.settings import TrainingSettings
from relwalk.training.trainer import Trainer

PATIENCE = 25.0  # seconds for the steps of one round, on a machine that is slow or busy


class Enough(Exception):
    """Raised by an observer to end a training in the middle."""


class StepClock:
    """The time of every step, until there are enough of them, or `least` where they take longer than `PATIENCE`."""

    def __init__(self, steps: int, least: int | None = None) -> None:
        self.steps, self.least, self.stamps = steps, least or steps, [time.perf_counter()]

    def step(self, *_: Any) -> None:
        self.stamps.append(time.perf_counter())
        enough = self.least if self.stamps[-1] - self.stamps[0] > PATIENCE else self.steps
        if len(self.stamps) > enough:
            raise Enough

    def epoch(self, *_: Any) -> None:
        pass


class MrrClock:
    """Training time, validation off the clock, until the last bar is passed or the time is up."""

    def __init__(self, bars: list[float], limit: float) -> None:
        self.bars, self.limit, self.clock, self.best, self.epochs = bars, limit, 0.0, 0.0, 0
        self.reached: dict[str, float] = {}

    def step(self, *_: Any) -> None:
        pass

    def epoch(self, record: Any, progress: Any) -> None:
        self.clock += record.seconds
        self.epochs = record.epoch
        for bar in self.bars if record.metric is not None else []:
            if record.metric >= bar:
                self.reached.setdefault(str(bar), round(self.clock, 3))
        self.best = max(self.best, record.metric or 0.0)
        if len(self.reached) == len(self.bars) or self.clock > self.limit:
            raise Enough


def fresh(graph: Graph, dim: int) -> Scorer:
    return build_model("relwalk", len(graph.entities), len(graph.relations), dim, seed=0, options={})


def fresh_trainer(graph: Graph, dim: int, batch: int, threads: int, observer: Any = None) -> Trainer:
    """A trainer with the default settings but for the size of a batch."""
    keep_freed_memory()  # as the command line does
    settings = TrainingSettings(batch_size=batch, threads=threads, epochs=100_000)
    return Trainer(fresh(graph, dim), make_task(graph, settings), settings, observer=observer)


def step_times(graph: Graph, dim: int, batch: int, threads: int, clock: StepClock) -> tuple[Trainer, list[float]]:
    """Train for some steps; the time of each. The first also holds what an epoch does before its first step."""
    trainer = fresh_trainer(graph, dim, batch, threads, clock)
    clock.stamps = [time.perf_counter()]
    with contextlib.suppress(Enough):
        trainer.run()
    return trainer, np.diff(clock.stamps).tolist()


def questions(graph: Graph) -> int:
    """The distinct (h, R, ?) and (?, R, t) of train: the rows of an epoch."""
    return sum(len(answers.keys) for answers in graph.known_in_train.values())


def export(arguments: argparse.Namespace) -> None:
    """The graph as arrays of ids, for the peers."""
    graph = read_graph(arguments.graph)
    sizes = np.array([len(graph.entities), len(graph.relations)])
    np.savez(arguments.data, train=graph.train, valid=graph.valid, test=graph.test, sizes=sizes)
    emit({"entities": int(sizes[0]), "relations": int(sizes[1]), "train": len(graph.train), "test": len(graph.test)})


def train(arguments: argparse.Namespace) -> None:
    graph = read_graph(arguments.graph)
    read_mb = peak_mb()
    clock = StepClock(arguments.warmup + arguments.steps, least=arguments.warmup + 8)
    trainer, times = step_times(graph, arguments.dim, arguments.batch, arguments.threads, clock)
    measured, rows = times[arguments.warmup :], questions(graph)
    precision = getattr(getattr(trainer.task, "workspace", None), "dtype", "as the engine chose")
    emit(
        {
            "rows": rows,
            "steps_per_epoch": -(-rows // arguments.batch),
            "measured_steps": len(measured),
            "warmup_steps": arguments.warmup,
            "step_seconds": statistics.fmean(measured),
            "step_seconds_median": statistics.median(measured),
            "epoch_seconds": statistics.fmean(measured) * rows / arguments.batch,
            "operations": 6.0 * rows * len(graph.entities) * arguments.dim,
            "precision": str(precision).removeprefix("torch."),
            "peak_mb_after_reading": round(read_mb, 1),
        }
    )


def rank(arguments: argparse.Namespace) -> None:
    graph = read_graph(arguments.graph)
    model, times = fresh(graph, arguments.dim), []
    for _ in range(1 + arguments.repeat):
        started = time.perf_counter()
        rank_split(model, graph, "test")
        times.append(time.perf_counter() - started)
    each = 2.0 * len(graph.entities) * arguments.dim  # operations of one query
    distinct = sum(len(np.unique(graph.test[:, columns], axis=0)) for columns in ([0, 1], [1, 2]))
    emit(
        {
            "triples": len(graph.test),
            "first_seconds": times[0],
            "seconds": statistics.median(times[1:]),
            "repeats": times[1:],
            "queries": 2 * len(graph.test),
            "distinct_queries": distinct,
            "operations": each * 2 * len(graph.test),
            "operations_made": each * distinct,
        }
    )


def mrr(arguments: argparse.Namespace) -> None:
    clock = MrrClock(arguments.bars, arguments.limit)
    with contextlib.suppress(Enough):
        train_run(
            arguments.graph,
            dim=arguments.dim,
            epochs=100_000,
            validate_every=arguments.every,
            patience=100_000,
            threads=arguments.threads,
            observer=clock,
        )
    found = {"reached": clock.reached, "best_mrr": clock.best, "clock_seconds": clock.clock, "epochs": clock.epochs}
    emit({**found, "settings": "the default recipe"})


def read(arguments: argparse.Namespace) -> None:
    started = time.perf_counter()
    graph = read_graph(arguments.data)
    seconds = time.perf_counter() - started
    emit({"seconds": seconds, "triples": len(graph.triples)})


def ready(arguments: argparse.Namespace) -> None:
    """Read a file and index it, to the point where a training takes its first step."""
    started = time.perf_counter()
    graph = read_graph(arguments.data)
    make_task(graph, TrainingSettings(), "cpu")
    emit({"seconds": time.perf_counter() - started, "entities": len(graph.entities)})


def baseline(_: argparse.Namespace) -> None:
    emit({})


WORK = {"export": export, "train": train, "rank": rank, "mrr": mrr, "read": read, "ready": ready, "baseline": baseline}


def main() -> None:
    parser = argparse.ArgumentParser(description="relwalk's side of the benchmark")
    parser.add_argument("work", choices=WORK)
    parser.add_argument("--graph", default="world")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--dim", type=int, default=100)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=32, help="a multiple of 8: every eighth is dearer")
    parser.add_argument("--warmup", type=int, default=16)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--bars", type=float, nargs="+", default=[])
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--every", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    WORK[arguments.work](arguments)


if __name__ == "__main__":
    main()
