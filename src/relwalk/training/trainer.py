"""The loop: epochs of steps, validation, early stopping, checkpoints.

Randomness of an epoch depends on the seed and the epoch's number alone, and a checkpoint within an epoch holds the
state of its generator: a training that stops after any step and goes on from there ends with the same weights as one
that never stopped.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from itertools import islice
from typing import Any, Protocol

import torch
from torch import Tensor

from relwalk.errors import Interrupted, TrainingDiverged
from relwalk.mapped import MEMORY, Room, all_finite
from relwalk.models.base import Scorer
from relwalk.runs.checkpoint import Epoch, Progress
from relwalk.together import ALONE, Together
from relwalk.training.averaging import Average
from relwalk.training.kbgan import NegativeGenerator
from relwalk.training.optimizers import build_all_optimizers
from relwalk.training.prepare import prepared
from relwalk.training.schedule import decay_factor, rate_factor
from relwalk.training.settings import TrainingSettings

VALIDATIONS = 20  # within a budget, at most, and one at its end
CHECKPOINT_SHARE = 0.05  # of the time within an epoch that checkpoints may take, however large the model


class Task(Protocol):
    """What is learned from: batches, and the loss of a batch.

    `batches` draws all that it needs from the generator before it gives the first one: to go on within an epoch, it is
    asked again from the start, and the batches that are done are passed over.
    """

    @property
    def triples(self) -> int:
        """How many triples the losses of an epoch are about, all together."""

    @property
    def few_entities(self) -> bool: ...  # a step is about a few of the entities alone
    @property
    def note(self) -> str | None: ...  # what should be known of its steps
    @property
    def products(self) -> float | None: ...  # of a question and a candidate in an epoch; None: no matter
    @property
    def negative_generator(self) -> NegativeGenerator | None: ...  # a model that is trained beside, if there is one
    def step_bytes(self, model: Scorer) -> int: ...  # what the scores of a step take
    def __len__(self) -> int: ...
    def batches(self, generator: torch.Generator) -> Iterator[Any]: ...
    def true_triples(self, batch: Any) -> tuple[Tensor, Tensor, Tensor]: ...  # heads, relations, tails of a batch
    def loss(self, model: Scorer, batch: Any, generator: torch.Generator, *, decay: float = 1.0) -> Tensor:
        """Of a batch, with so much of the regularizers' weights as is left."""


class Observer(Protocol):
    """Who wants to watch. The loss of a step is that of its epoch so far, per triple."""

    def step(self, epoch: int, step: int, steps: int, loss: float) -> None: ...
    def epoch(self, record: Epoch, progress: Progress) -> None: ...


class Trainer:
    """Trains a model on a task until the epochs or the time are over, or validation stops improving.

    The time is that of steps alone. The step that reaches the budget ends its epoch, which counts as one all the same.

    `stop` is asked between steps: once it says yes, a checkpoint is made and `Interrupted` raised. `validate` may raise
    `Interrupted` as well: the checkpoint is then that of the last step, and validation is made when training goes on.

    Several processes may train one model `together`, each with a part of its entities: each has a trainer, whose losses
    add up, and all take the same decisions at the same step. `room` is where there is room for what is as large as the
    weights: best and mean ones, and what optimizers remember.
    """

    def __init__(
        self,
        model: Scorer,
        task: Task,
        settings: TrainingSettings,
        *,
        validate: Callable[[Scorer], float] | None = None,
        checkpoint: Callable[[Trainer], None] | None = None,
        observer: Observer | None = None,
        stop: Callable[[], bool] | None = None,
        together: Together = ALONE,
        room: Room = MEMORY,
    ) -> None:
        self.together, self.room = together, room
        self.model, self.task, self.settings = model, task, settings
        self.validate, self.checkpoint, self.observer, self.stop = validate, checkpoint, observer, stop
        self.optimizers = build_all_optimizers(model, task.negative_generator, settings, room)
        self.full_rates = [[group.lr for group in optimizer.groups] for optimizer in self.optimizers]
        self.progress = Progress()
        self.average = Average(room)
        self.best: dict[str, Tensor] | None = None
        self.random_state: Tensor | None = None  # of the epoch's generator after the last whole step
        self._last_checkpoint = time.monotonic()
        self._checkpoint_cost = 0.0  # seconds that the last one took

    def run(self) -> Progress:
        """Train to the end, leave the best weights in the model, and say how it went."""
        if self.progress == Progress():
            self._save()  # from here on a kill at any moment can be resumed
        while not self.over():
            try:
                self._one_epoch()
            except Interrupted:
                self._check_weights()
                self._save()
                raise Interrupted(self.progress.epoch + 1) from None
            self._save_when_due()
        self._save()
        if self.best is not None:
            self.model.load_state_dict(self.best)
        elif self.average.count:
            self.model.load_state_dict(self.average.weights(self.model))
        return self.progress

    def over(self) -> bool:
        patience_lost = self.progress.validations_without_gain >= self.settings.patience
        time_over = self._out_of_time() and self.progress.step == 0  # an epoch that it cut is still to be closed
        return self.progress.epoch >= self.settings.epochs or time_over or patience_lost

    def _out_of_time(self) -> bool:
        return self.progress.seconds >= self.settings.seconds

    def _one_epoch(self) -> None:
        epoch, progress = self.progress.epoch + 1, self.progress
        generator = torch.Generator().manual_seed(_mix(self.settings.seed, epoch))
        clock = time.perf_counter()
        self.model.train()
        with prepared(self.model, self.settings, generator, few_entities=self.task.few_entities):
            for step, batch in enumerate(self._batches_left(generator), start=progress.step + 1):
                self._stop_if_asked()
                if self._out_of_time():
                    break
                loss = self._step(batch, generator, epoch, step)
                now = time.perf_counter()
                progress.step, progress.step_losses = step, progress.step_losses + loss
                progress.step_seconds += self._agreed_time(now - clock)
                self.random_state = generator.get_state()
                if self.observer:
                    share = step / len(self.task)
                    self.observer.step(epoch, step, len(self.task), progress.step_losses / (share * self.task.triples))
                self._save_when_due(within_epoch=True)
                clock = time.perf_counter()
        self._stop_if_asked()
        self._close_epoch(epoch)

    def _batches_left(self, generator: torch.Generator) -> Iterator[Any]:
        """The batches of the epoch that are not done yet, and the generator as it was when they were not."""
        batches = self.task.batches(generator)
        if self.progress.step == 0:
            return batches
        for _ in islice(batches, self.progress.step):
            pass
        if self.random_state is not None:
            generator.set_state(self.random_state)
        return batches

    def _agreed_time(self, seconds: float) -> float:
        """What a step took; with a budget, which schedules follow, the same in all processes."""
        if self.settings.budget is None:
            return seconds
        return float(self.together.largest(torch.tensor(seconds, dtype=torch.float64)))

    def _stop_if_asked(self) -> None:
        if self.together.any(self.stop is not None and self.stop()):
            raise Interrupted(self.progress.epoch + 1)

    def _step(self, batch: Any, generator: torch.Generator, epoch: int, step: int) -> float:
        epochs_done = epoch - 1 + step / len(self.task)
        self._set_rates(epochs_done)
        decay = decay_factor(self.settings, epochs_done, self.progress.seconds)
        for optimizer in self.optimizers:
            optimizer.zero_grad()
        with ExitStack() as stack:
            for optimizer in self.optimizers:
                stack.enter_context(optimizer.collecting())
            loss = self.task.loss(self.model, batch, generator, decay=decay)
            value = float(self.together.sum(loss.detach()))
            if not math.isfinite(value):
                raise self._diverged(f"the loss of step {step} of epoch {epoch} is {value}")
            loss.backward()  # type: ignore[no-untyped-call]
        self._share_gradients()
        if self.settings.clip is not None:
            _clip([weights.grad for weights in self.optimizers[0].weights()], self.settings.clip)
        for optimizer in self.optimizers:
            optimizer.step()
        beside = self.task.negative_generator
        for model in (self.model,) if beside is None else (self.model, beside.model):
            if model.constrained:
                model.constrain(_moved_rows(model))
        if self.model.grows:
            heads, relations, tails = (x.to(self.model.device) for x in self.task.true_triples(batch))
            self.model.grow(heads, relations, tails, generator)
        return value

    def _share_gradients(self) -> None:
        """Of what all processes have alike, the sums; those of entities stay with the process that has their rows."""
        if self.together is not ALONE:
            own = {id(table.weight) for table in self.model.tables()}
            for optimizer in self.optimizers:
                optimizer.share(self.together, own)

    def _set_rates(self, epochs_done: float) -> None:
        progress = self.progress
        factor = rate_factor(self.settings.schedule, self.settings, epochs_done, progress.rate_drops, progress.seconds)
        for optimizer, rates in zip(self.optimizers, self.full_rates, strict=True):
            for group, rate in zip(optimizer.groups, rates, strict=True):
                group.lr = factor * rate

    def _close_epoch(self, epoch: int) -> None:
        self._check_weights()
        self._average(epoch)
        metric = validation_seconds = None
        if self.validate and self._validation_due(epoch):
            started = time.perf_counter()
            metric = self._validate(self.validate, epoch)
            validation_seconds = time.perf_counter() - started
        progress = self.progress
        share = progress.step / len(self.task)  # 1, unless the time was over
        loss = progress.step_losses / (share * self.task.triples)
        record = Epoch(epoch, loss, progress.step_seconds, metric, validation_seconds)
        progress.close_epoch(record)
        if self.observer:
            self.observer.epoch(record, progress)

    def _validation_due(self, epoch: int) -> bool:
        """At the end, and every so many epochs; with a budget not before a part of it has passed."""
        if epoch == self.settings.epochs or self._out_of_time():
            return True
        passed = self.progress.seconds - self.progress.seconds_at_validation
        soon = self.settings.budget is not None and passed < self.settings.seconds / VALIDATIONS
        return epoch % self.settings.validate_every == 0 and not soon

    def _average(self, epoch: int) -> None:
        """Add the weights of this epoch to the mean, unless an interrupted validation came after that already."""
        start = self.settings.average_from
        if start is not None and epoch - start >= self.average.count:
            self.average.add(self.model)
            self.progress.averaged = self.average.count

    def _validate(self, validate: Callable[[Scorer], float], epoch: int) -> float:
        self.model.eval()
        with self.average.within(self.model) if self.average.count else nullcontext():
            metric = validate(self.model)
            if self.progress.note_metric(metric, epoch):
                self.best = {name: self.room.copy(tensor) for name, tensor in self.model.state_dict().items()}
            elif self.settings.schedule.drops_after(self.progress.validations_without_gain):
                self.progress.rate_drops += 1
        return metric

    def _save_when_due(self, *, within_epoch: bool = False) -> None:
        least = self.settings.checkpoint_seconds
        if within_epoch:
            least = max(least, self._checkpoint_cost / CHECKPOINT_SHARE)
        if self.checkpoint and self.together.any(time.monotonic() - self._last_checkpoint >= least):
            if within_epoch:
                self._check_weights()
            self._save()

    def _save(self) -> None:
        if self.checkpoint:
            started = time.monotonic()
            self.checkpoint(self)
            self._last_checkpoint = time.monotonic()
            self._checkpoint_cost = self._last_checkpoint - started

    def _check_weights(self) -> None:
        """What is saved can be gone on from: weights that are no numbers are found before."""
        where = f"after step {self.progress.step} of epoch {self.progress.epoch + 1}"
        beside = self.task.negative_generator
        others = [] if beside is None else [(f"{name} of the generator", w) for name, w in beside.named_parameters()]
        wrong = [n for n, weights in [*self.model.named_parameters(), *others] if not all_finite(weights)]
        if self.together.any(bool(wrong)):
            raise self._diverged(f"{where} {wrong[0] if wrong else 'a table'} holds values that are not numbers")

    def _diverged(self, what: str) -> TrainingDiverged:
        return TrainingDiverged(
            f"training diverged: {what}. Lower --lr (now {self.settings.lr}) or --relation-lr "
            f"(now {self.settings.relation_lr}), or raise --l2."
        )


def _moved_rows(model: Scorer) -> Tensor | None:
    """The entities that have a gradient, if gradients say so: None for all."""
    gradients = [table.weight.grad for table in model.tables()]
    sparse = [gradient.coalesce().indices()[0] for gradient in gradients if gradient is not None and gradient.is_sparse]
    return torch.unique(torch.cat(sparse)) if sparse else None


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
