"""The loop: epochs of steps, validation, early stopping, checkpoints.

Randomness of an epoch depends on the seed and the epoch's number alone, so a training that stops after any
epoch and goes on from there ends with the same weights as one that never stopped.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor

from relwalk.errors import TrainingDiverged
from relwalk.models.base import Scorer
from relwalk.training.optimizers import build_optimizers
from relwalk.training.settings import TrainingSettings


class Task(Protocol):
    """What is learned from: batches, and the loss of a batch."""

    def __len__(self) -> int: ...
    def batches(self, generator: torch.Generator) -> Iterator[Any]: ...
    def loss(self, model: Scorer, batch: Any, generator: torch.Generator) -> Tensor: ...


@dataclass(frozen=True)
class Epoch:
    """What one epoch did: a line of history.jsonl."""

    epoch: int
    loss: float  # mean over its steps
    seconds: float
    metric: float | None = None  # the validation figure, where one was taken
    validation_seconds: float | None = None

    def as_dict(self) -> dict[str, float | int | None]:
        return asdict(self)


@dataclass
class Progress:
    """Where a training stands after its last whole epoch."""

    epoch: int = 0
    best_metric: float | None = None
    best_epoch: int = 0
    validations_without_gain: int = 0
    history: list[Epoch] = field(default_factory=list)

    def note_metric(self, metric: float) -> bool:
        """Whether this is the best figure so far."""
        if self.best_metric is None or metric > self.best_metric:
            self.best_metric, self.best_epoch, self.validations_without_gain = metric, self.epoch, 0
            return True
        self.validations_without_gain += 1
        return False


class Observer(Protocol):
    """Who wants to watch: the command line draws its progress bar here."""

    def step(self, epoch: int, step: int, steps: int, loss: float) -> None: ...
    def epoch(self, record: Epoch, progress: Progress) -> None: ...


class Trainer:
    """Trains a model on a task until the epochs are over or validation stops improving."""

    def __init__(
        self,
        model: Scorer,
        task: Task,
        settings: TrainingSettings,
        *,
        validate: Callable[[Scorer], float] | None = None,
        checkpoint: Callable[[Trainer], None] | None = None,
        observer: Observer | None = None,
    ) -> None:
        self.model, self.task, self.settings = model, task, settings
        self.validate, self.checkpoint, self.observer = validate, checkpoint, observer
        self.optimizers = build_optimizers(model, settings)
        self.progress = Progress()
        self.best: dict[str, Tensor] | None = None
        self._last_checkpoint = time.monotonic()

    def run(self) -> Progress:
        """Train to the end, leave the best weights in the model, and say how it went."""
        if self.checkpoint and self.progress.epoch == 0:
            self.checkpoint(self)  # from here on a kill at any moment can be resumed
        while not self.over():
            self._one_epoch()
            self._checkpoint_when_due()
        if self.checkpoint:
            self.checkpoint(self)
        if self.best is not None:
            self.model.load_state_dict(self.best)
        return self.progress

    def over(self) -> bool:
        patience_lost = self.progress.validations_without_gain >= self.settings.patience
        return self.progress.epoch >= self.settings.epochs or patience_lost

    def _one_epoch(self) -> None:
        started = time.perf_counter()
        epoch = self.progress.epoch + 1
        generator = torch.Generator().manual_seed(_mix(self.settings.seed, epoch))
        total = 0.0
        for step, batch in enumerate(self.task.batches(generator), start=1):
            loss = self._step(batch, generator, epoch, step)
            total += loss
            if self.observer:
                self.observer.step(epoch, step, len(self.task), loss)
        self.progress.epoch = epoch
        seconds = time.perf_counter() - started
        self._close_epoch(total / len(self.task), seconds)

    def _step(self, batch: Any, generator: torch.Generator, epoch: int, step: int) -> float:
        for optimizer in self.optimizers:
            optimizer.zero_grad()
        loss = self.task.loss(self.model, batch, generator)
        value = float(loss.detach())
        if not math.isfinite(value):
            raise self._diverged(f"the loss of step {step} of epoch {epoch} is {value}")
        loss.backward()  # type: ignore[no-untyped-call]
        for optimizer in self.optimizers:
            optimizer.step()
        return value

    def _close_epoch(self, loss: float, seconds: float) -> None:
        for name, weights in self.model.named_parameters():
            if not bool(weights.isfinite().all()):
                raise self._diverged(f"after epoch {self.progress.epoch} {name} holds values that are not numbers")
        metric = validation_seconds = None
        last = self.progress.epoch == self.settings.epochs
        if self.validate and (last or self.progress.epoch % self.settings.validate_every == 0):
            started = time.perf_counter()
            metric = self._validate(self.validate)
            validation_seconds = time.perf_counter() - started
        record = Epoch(self.progress.epoch, loss, seconds, metric, validation_seconds)
        self.progress.history.append(record)
        if self.observer:
            self.observer.epoch(record, self.progress)

    def _validate(self, validate: Callable[[Scorer], float]) -> float:
        metric = validate(self.model)
        if self.progress.note_metric(metric):
            self.best = {name: tensor.clone() for name, tensor in self.model.state_dict().items()}
        return metric

    def _checkpoint_when_due(self) -> None:
        if self.checkpoint and time.monotonic() - self._last_checkpoint >= self.settings.checkpoint_seconds:
            self.checkpoint(self)
            self._last_checkpoint = time.monotonic()

    def _diverged(self, what: str) -> TrainingDiverged:
        return TrainingDiverged(
            f"training diverged: {what}. Lower --lr (now {self.settings.lr}) or --relation-lr "
            f"(now {self.settings.relation_lr}), or raise --l2."
        )


def _mix(seed: int, epoch: int) -> int:
    """A seed of its own for every epoch (the finaliser of SplitMix64)."""
    mask = (1 << 64) - 1
    z = (seed + epoch * 0x9E3779B97F4A7C15) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return (z ^ (z >> 31)) >> 1
