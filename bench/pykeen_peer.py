"""PyKEEN's side: an LCWA epoch, filtered ranking, time to a validation MRR, reading a file.

Its own code runs: `LCWATrainingLoop`, `RankBasedEvaluator`, `TriplesFactory.from_path`. It gets what speaks for it on
a CPU: no progress bar, no regulariser (RESCAL's default one costs a pass over the batch), no pinned memory, no search
for a batch size, batches made in the process itself or by one more (the faster counts, though the other is one process
more than anyone else has), and for ranking the fastest of several batch sizes. The model is RESCAL, whose scores cost
the same products as RelWalk's.

Training is timed from batch to batch, so that everything between two of them counts, and stopped by a callback: an
epoch is scaled from the mean of the measured steps. A ranking is scaled from two parts of test by a straight line, so
that what it does once (sorting all known triples) is counted once.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from process import emit
from pykeen.evaluation import RankBasedEvaluator
from pykeen.losses import CrossEntropyLoss
from pykeen.models import RESCAL
from pykeen.regularizers import NoRegularizer
from pykeen.training import LCWATrainingLoop
from pykeen.training.callbacks import TrainingCallback
from pykeen.triples import CoreTriplesFactory, LCWAInstances, TriplesFactory

logging.disable(logging.WARNING)
FEW = 8  # triples whose ranking costs little more than what is done once


class Enough(Exception):
    """Raised by a callback to end a training in the middle."""


class StepClock(TrainingCallback):
    """The time of every step, from one batch to the next."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.steps, self.stamps = steps, [time.perf_counter()]

    def post_batch(self, epoch: int, batch: Any, **kwargs: Any) -> None:
        self.stamps.append(time.perf_counter())
        if len(self.stamps) > self.steps:
            raise Enough


class MrrClock(TrainingCallback):
    """Validates every few epochs, off the clock, until the last bar is passed or the time is up."""

    def __init__(self, valid: torch.Tensor, known: torch.Tensor, bars: list[float], limit: float, every: int) -> None:
        super().__init__()
        self.valid, self.known, self.bars, self.limit, self.every = valid, known, bars, limit, every
        self.clock, self.reached, self.best = 0.0, {}, 0.0
        self.since = time.perf_counter()

    def post_epoch(self, epoch: int, epoch_loss: float, **kwargs: Any) -> None:
        self.clock += time.perf_counter() - self.since
        self.epochs = epoch
        if epoch % self.every == 0:
            figures = evaluate(self.model, self.valid, self.known, batch=256)
            mrr = figures.get_metric("both.realistic.inverse_harmonic_mean_rank")
            self.model.train()
            self.best = max(self.best, mrr)
            for bar in self.bars:
                if mrr >= bar:
                    self.reached.setdefault(str(bar), round(self.clock, 3))
        if len(self.reached) == len(self.bars) or self.clock > self.limit:
            raise Enough
        self.since = time.perf_counter()


def load(path: Path) -> tuple[CoreTriplesFactory, dict[str, torch.Tensor]]:
    """The graph as ids, the same that relwalk gave them."""
    arrays = np.load(path)
    parts = {name: torch.from_numpy(arrays[name].astype(np.int64)) for name in ("train", "valid", "test")}
    entities, relations = (int(n) for n in arrays["sizes"])
    factory = CoreTriplesFactory(
        parts["train"], num_entities=entities, num_relations=relations, create_inverse_triples=True
    )
    return factory, parts


def build(factory: CoreTriplesFactory, dim: int, **options: Any) -> RESCAL:
    return RESCAL(
        triples_factory=factory,
        embedding_dim=dim,
        loss=CrossEntropyLoss(),
        regularizer=NoRegularizer(),
        entity_initializer="xavier_normal",
        relation_initializer="xavier_normal",
        random_seed=0,
        **options,
    )


def fit(
    factory: CoreTriplesFactory, model: RESCAL, clock: TrainingCallback, *, lr: float, batch: int, workers: int = 0
) -> None:
    """Train until the clock says that it is enough."""
    optimizer = torch.optim.Adagrad(model.get_grad_params(), lr=lr)
    loop = LCWATrainingLoop(
        model=model, triples_factory=factory, optimizer=optimizer, automatic_memory_optimization=False
    )
    with contextlib.suppress(Enough):
        loop.train(
            factory,
            num_epochs=100_000,
            batch_size=batch,
            use_tqdm=False,
            num_workers=workers,
            pin_memory=False,
            drop_last=False,
            callbacks=clock,
        )


def evaluate(model: RESCAL, triples: torch.Tensor, known: torch.Tensor, batch: int) -> Any:
    """Filtered ranking of both sides."""
    evaluator = RankBasedEvaluator(filtered=True)
    return evaluator.evaluate(
        model, triples, batch_size=batch, additional_filter_triples=[known], use_tqdm=False, slice_size=None
    )


def train(arguments: argparse.Namespace) -> None:
    factory, _ = load(arguments.data)
    rows = len(LCWAInstances.from_triples_factory(factory))
    model = build(factory, arguments.dim)
    tried = {workers: _step_seconds(factory, model, workers, arguments) for workers in arguments.workers}
    workers = min(tried, key=lambda count: tried[count])
    scale = rows / arguments.batch
    emit(
        {
            "rows": rows,
            "steps_per_epoch": -(-rows // arguments.batch),
            "measured_steps": arguments.steps,
            "warmup_steps": arguments.warmup,
            "step_seconds": tried[workers],
            "epoch_seconds": tried[workers] * scale,
            "workers": workers,
            "epoch_seconds_by_workers": {str(count): seconds * scale for count, seconds in tried.items()},
        }
    )


def _step_seconds(factory: CoreTriplesFactory, model: RESCAL, workers: int, arguments: argparse.Namespace) -> float:
    """The mean of the measured steps. The first of the warm-up also holds the making of all instances."""
    clock = StepClock(arguments.warmup + arguments.steps)
    fit(factory, model, clock, lr=0.1, batch=arguments.batch, workers=workers)
    return float(np.diff(clock.stamps)[arguments.warmup :].mean())


def rank(arguments: argparse.Namespace) -> None:
    factory, parts = load(arguments.data)
    model, test = build(factory, arguments.dim), parts["test"]
    known = torch.cat([parts["train"], parts["valid"], test])
    part = test[torch.randperm(len(test), generator=torch.Generator().manual_seed(0))[: arguments.triples]]
    _seconds(model, part[:FEW], known, FEW)  # what happens only once in a process
    fixed = min(_seconds(model, part[:FEW], known, FEW) for _ in range(2))
    trial = part[: max(arguments.batches)]
    tried = {}
    if len(arguments.batches) > 1:
        tried = {size: _slope(model, trial, known, size, fixed) for size in arguments.batches}
    batch = min(tried, key=lambda size: tried[size]) if tried else arguments.batches[0]
    each = _slope(model, part, known, batch, fixed)
    emit(
        {
            "measured_triples": len(part),
            "scaled_to": len(test),
            "fixed_seconds": fixed,
            "batch_size": batch,
            "seconds_by_batch_size": {str(size): fixed + slope * len(test) for size, slope in tried.items()},
            "seconds": fixed + each * (len(test) - FEW),
        }
    )


def _slope(model: RESCAL, triples: torch.Tensor, known: torch.Tensor, batch: int, fixed: float) -> float:
    """Seconds of one triple more, both sides."""
    return max(_seconds(model, triples, known, batch) - fixed, 0.0) / (len(triples) - FEW)


def _seconds(model: RESCAL, triples: torch.Tensor, known: torch.Tensor, batch: int) -> float:
    started = time.perf_counter()
    evaluate(model, triples, known, batch)
    return time.perf_counter() - started


def mrr(arguments: argparse.Namespace) -> None:
    factory, parts = load(arguments.data)
    known = torch.cat([parts["train"], parts["valid"], parts["test"]])
    clock = MrrClock(parts["valid"], known, arguments.bars, arguments.limit, every=arguments.every)
    fit(factory, build(factory, arguments.dim), clock, lr=arguments.lr, batch=arguments.batch)
    found = {"reached": clock.reached, "best_mrr": clock.best, "clock_seconds": clock.clock, "epochs": clock.epochs}
    emit({**found, "settings": f"RESCAL, LCWA, cross-entropy, Adagrad lr {arguments.lr}, batch {arguments.batch}"})


def read(arguments: argparse.Namespace) -> None:
    started = time.perf_counter()
    factory = TriplesFactory.from_path(arguments.data)
    emit({"seconds": time.perf_counter() - started, "triples": factory.num_triples})


def baseline(_: argparse.Namespace) -> None:
    emit({})


WORK = {"train": train, "rank": rank, "mrr": mrr, "read": read, "baseline": baseline}


def main() -> None:
    parser = argparse.ArgumentParser(description="PyKEEN's side of the benchmark")
    parser.add_argument("work", choices=WORK)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--dim", type=int, default=100)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--triples", type=int, default=1000)
    parser.add_argument("--batches", type=int, nargs="+", default=[32, 128, 512])
    parser.add_argument("--bars", type=float, nargs="+", default=[])
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--every", type=int, default=2)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    WORK[arguments.work](arguments)


if __name__ == "__main__":
    main()
