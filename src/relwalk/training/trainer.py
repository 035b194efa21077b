"""The loop: epochs of steps, validation, early stopping, checkpoints.

Randomness of an epoch depends on the seed and the epoch's number alone, so a training that stops after any
epoch and goes on from there ends with the same weights as one that never stopped.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor

from relwalk.errors import TrainingDiverged
from relwalk.models.base import Scorer
from relwalk.training.averaging import Average
from relwalk.training.memory import keep_freed_memory
from relwalk.training.optimizers import build_optimizers
from relwalk.training.schedule import rate_factor
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
    rate_drops: int = 0  # plateaus met
    averaged: int = 0  # epochs in the mean of the weights
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
        self.full_rates = [[group.lr for group in optimizer.groups] for optimizer in self.optimizers]
        self.progress = Progress()
        self.average = Average()
        self.best: dict[str, Tensor] | None = None
        self._last_checkpoint = time.monotonic()

    def run(self) -> Progress:
        """Train to the end, leave the best weights in the model, and say how it went."""
        keep_freed_memory()
        if self.checkpoint and self.progress.epoch == 0:
            self.checkpoint(self)  # from here on a kill at any moment can be resumed
        while not self.over():
            self._one_epoch()
            self._checkpoint_when_due()
        if self.checkpoint:
            self.checkpoint(self)
        if self.best is not None:
            self.model.load_state_dict(self.best)
        elif self.average.count:
            self.model.load_state_dict(self.average.weights(self.model))
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
        self._set_rates(epoch - 1 + step / len(self.task))
        for optimizer in self.optimizers:
            optimizer.zero_grad()
        loss = self.task.loss(self.model, batch, generator)
        value = float(loss.detach())
        if not math.isfinite(value):
            raise self._diverged(f"the loss of step {step} of epoch {epoch} is {value}")
        loss.backward()  # type: ignore[no-untyped-call]
        if self.settings.clip is not None:
            _clip([weights.grad for weights in self.optimizers[0].weights()], self.settings.clip)
        for optimizer in self.optimizers:
            optimizer.step()
        return value

    def _set_rates(self, epochs_done: float) -> None:
        factor = rate_factor(self.settings, epochs_done, self.progress.rate_drops)
        for optimizer, rates in zip(self.optimizers, self.full_rates, strict=True):
            for group, rate in zip(optimizer.groups, rates, strict=True):
                group.lr = factor * rate

    def _close_epoch(self, loss: float, seconds: float) -> None:
        for name, weights in self.model.named_parameters():
            if not bool(weights.isfinite().all()):
                raise self._diverged(f"after epoch {self.progress.epoch} {name} holds values that are not numbers")
        if self.settings.average_from is not None and self.progress.epoch >= self.settings.average_from:
            self.average.add(self.model)
            self.progress.averaged = self.average.count
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
        with self.average.within(self.model) if self.average.count else nullcontext():
            metric = validate(self.model)
            if self.progress.note_metric(metric):
                self.best = {name: tensor.clone() for name, tensor in self.model.state_dict().items()}
            elif self.progress.validations_without_gain % self.settings.plateau_patience == 0:
                self.progress.rate_drops += 1
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


def _clip(gradients: list[Tensor | None], longest: float) -> None:
    """Shorten all gradients by one factor, so that together they are no longer than that."""
    parts = [g.coalesce().values() if g.is_sparse else g for g in gradients if g is not None]
    length = torch.stack([torch.linalg.vector_norm(part) for part in parts]).norm()
    factor = torch.clamp(longest / (length + 1e-12), max=1.0)
    for gradient in gradients:
        if gradient is not None:
            gradient.mul_(factor)


def _mix(seed: int, epoch: int) -> int:
    """A seed of its own for every epoch (the finaliser of SplitMix64)."""
    mask = (1 << 64) - 1
    z = (seed + epoch * 0x9E3779B97F4A7C15) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return (z ^ (z >> 31)) >> 1
