"""Where the time of a training step and of a ranking goes.

Training: stopwatches around what the trainer calls (the batches of the task, its loss, the fused softmax inside it,
backward, each optimiser), without a profiler, so the shares are of the true time. What no stopwatch sees stands as
`other`. Then the profiler of torch names the operations that take most time of themselves. Ranking: by the profiler
alone; products are those of two matrices (one with a vector of ones only adds up), and what is outside of torch
(numpy, Python) is the wall time less all of it.
"""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from ours import Enough, StepClock, fresh, fresh_trainer
from process import Row, emit
from torch.profiler import ProfilerActivity, profile

from relwalk.evaluation.ranking import rank
from relwalk.graph.read import read_graph
from relwalk.training import likelihood

PRODUCTS = ("aten::mm", "aten::addmm", "aten::addmm_", "aten::bmm", "aten::baddbmm")
TOP = 8


class Watches:
    """Seconds spent in each piece, while `running`."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.running = False

    def around(self, name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **kwargs: Any) -> Any:
            started = time.perf_counter()
            try:
                return work(*args, **kwargs)
            finally:
                self._add(name, time.perf_counter() - started)

        return timed

    def over(self, name: str, batches: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
        """The same for a generator: the time between asking for a batch and getting it."""

        def timed(*args: Any, **kwargs: Any) -> Iterator[Any]:
            source = iter(batches(*args, **kwargs))
            while True:
                started = time.perf_counter()
                try:
                    batch = next(source)
                except StopIteration:
                    return
                self._add(name, time.perf_counter() - started)
                yield batch

        return timed

    def _add(self, name: str, seconds: float) -> None:
        if self.running:
            self.seconds[name] = self.seconds.get(name, 0.0) + seconds


class Starter(StepClock):
    """Starts the watches when the warm-up is over."""

    def __init__(self, warmup: int, steps: int, watches: Watches) -> None:
        super().__init__(warmup + steps)
        self.warmup, self.watches, self.started = warmup, watches, 0.0

    def step(self, *_: Any) -> None:
        if len(self.stamps) == self.warmup:
            self.watches.running, self.started = True, time.perf_counter()
        super().step()


def training(graph: Any, dim: int, batch: int, threads: int, warmup: int, steps: int) -> Row:
    """The share of each piece in `steps` steps after the warm-up."""
    watches = Watches()
    clock = Starter(warmup, steps, watches)
    trainer = fresh_trainer(graph, dim, batch, threads, clock)
    task: Any = trainer.task
    task.batches = watches.over("batches", task.batches)
    task.loss = watches.around("loss", task.loss)
    fused = hasattr(likelihood, "softmax_loss")
    backward = torch.Tensor.backward
    torch.Tensor.backward = watches.around("backward", backward)
    if fused:
        softmax, likelihood.softmax_loss = likelihood.softmax_loss, watches.around("softmax", likelihood.softmax_loss)
    names = []
    for optimizer in trainer.optimizers:
        names.append(f"optimiser {type(optimizer).__name__}")
        optimizer.step = watches.around(names[-1], optimizer.step)  # type: ignore[method-assign]
    with contextlib.suppress(Enough):
        trainer.run()
    whole = time.perf_counter() - clock.started
    torch.Tensor.backward = backward
    if fused:
        likelihood.softmax_loss = softmax
    seconds = dict(watches.seconds)
    if "softmax" in seconds:  # it is part of the loss: what is left of that is making the queries
        seconds["queries and weight decay"] = seconds.pop("loss") - seconds["softmax"]
    seconds["other"] = whole - sum(seconds.values())
    shares = {name: round(value / whole, 4) for name, value in sorted(seconds.items(), key=lambda item: -item[1])}
    return {"steps": steps, "step_seconds": whole / steps, "shares": shares, "top_operations": _steps_profiled(trainer)}


def _steps_profiled(trainer: Any) -> Row:
    """A few more steps under the profiler."""
    trainer.observer = StepClock(4)
    with profile(activities=[ProfilerActivity.CPU]) as profiler, contextlib.suppress(Enough):
        trainer.run()
    return _top(profiler)


def ranking(graph: Any, dim: int) -> Row:
    """Products, the other operations (comparing, counting, gathering), and what is outside of torch."""
    model = fresh(graph, dim)
    rank(model, graph, "test")
    started = time.perf_counter()
    rank(model, graph, "test")
    plain = time.perf_counter() - started
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        started = time.perf_counter()
        rank(model, graph, "test")
        whole = time.perf_counter() - started
    own = _own_seconds(profiler)
    products = sum(own.get(name, 0.0) for name in PRODUCTS)
    inside = sum(own.values())
    shares = {"products": products, "other operations of torch": inside - products, "outside of torch": whole - inside}
    return {
        "seconds": plain,
        "seconds_under_profiler": whole,
        "shares": {name: round(value / whole, 4) for name, value in shares.items()},
        "top_operations": _top(profiler),
    }


def _own_seconds(profiler: Any) -> dict[str, float]:
    return {event.key: event.self_cpu_time_total / 1e6 for event in profiler.key_averages()}


def _top(profiler: Any) -> Row:
    """The share of the operations with the most time of their own."""
    own = _own_seconds(profiler)
    whole = sum(own.values())
    best = sorted(own.items(), key=lambda item: -item[1])[:TOP]
    return {name: round(value / whole, 4) for name, value in best}


def main() -> None:
    parser = argparse.ArgumentParser(description="Say where the time goes")
    parser.add_argument("work", choices=("training", "ranking"))
    parser.add_argument("--graph", default="world")
    parser.add_argument("--dim", type=int, default=100)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--warmup", type=int, default=16)
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    graph = read_graph(arguments.graph)
    if arguments.work == "ranking":
        emit(ranking(graph, arguments.dim))
    else:
        emit(training(graph, arguments.dim, arguments.batch, arguments.threads, arguments.warmup, arguments.steps))


if __name__ == "__main__":
    main()
