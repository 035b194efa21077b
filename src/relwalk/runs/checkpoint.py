"""A training frozen between two steps, in one safetensors file: weights, optimiser, best and averaged weights, history.

The header says what the file belongs to, and holds a digest of everything else in it. This reads how far a training is
and which weights it has; what a trainer does with the rest stands in `training.checkpoint`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from pydantic import TypeAdapter, ValidationError
from torch import Tensor

from relwalk.errors import RunError
from relwalk.files import parse_json
from relwalk.models.base import Scorer
from relwalk.runs.shard_files import INDEX, Wanted, put_in_place, whole_header, with_rows
from relwalk.runs.tensor_file import CURE, Spec, check_specs, read_header, read_tensors

Owner = Mapping[str, Any]  # what a checkpoint belongs to, as JSON values
WEIGHTS = ("model", "best", "average")  # the parts that are weights of the model


@dataclass(frozen=True)
class Epoch:
    """What one epoch did: a line of history.jsonl."""

    epoch: int
    loss: float  # per triple, weight decay and penalties included
    seconds: float
    metric: float | None = None  # the validation figure, where one was taken
    validation_seconds: float | None = None

    def as_dict(self) -> dict[str, float | int | None]:
        return asdict(self)


@dataclass
class Progress:
    """Where a training stands: after its last whole epoch, and within the one under way."""

    epoch: int = 0
    best_metric: float | None = None
    best_epoch: int = 0
    validations_without_gain: int = 0
    rate_drops: int = 0  # plateaus met
    averaged: int = 0  # epochs in the mean of the weights
    history: list[Epoch] = field(default_factory=list)
    step: int = 0  # whole steps of the epoch under way
    step_losses: float = 0.0  # their sum
    step_seconds: float = 0.0  # and the time they took

    def __post_init__(self) -> None:
        self.seconds_of_epochs = self.seconds_at_validation = 0.0  # of whole epochs: all, and up to the last validation
        for record in self.history:
            self._add_time(record)

    def _add_time(self, record: Epoch) -> None:
        self.seconds_of_epochs += record.seconds
        if record.metric is not None:
            self.seconds_at_validation = self.seconds_of_epochs

    @property
    def seconds(self) -> float:
        """The time of all steps so far; validations and checkpoints are not in it."""
        return self.seconds_of_epochs + self.step_seconds

    def note_metric(self, metric: float, epoch: int) -> bool:
        """Whether this is the best figure so far."""
        if self.best_metric is None or metric > self.best_metric:
            self.best_metric, self.best_epoch, self.validations_without_gain = metric, epoch, 0
            return True
        self.validations_without_gain += 1
        return False

    def close_epoch(self, record: Epoch) -> None:
        self.history.append(record)
        self._add_time(record)
        self.epoch, self.step, self.step_losses, self.step_seconds = record.epoch, 0, 0.0, 0.0


_PROGRESS = TypeAdapter(Progress)


def check_owner(path: Path, owner: Owner) -> tuple[dict[str, Spec], Progress]:
    """What the header of a checkpoint says of its tensors and its progress; one of another training is refused."""
    metadata, found = whole_header(path)
    written = _json(path, metadata.get("owner", ""))
    if not isinstance(written, dict):
        raise RunError(f"{path} does not say what it belongs to: an earlier relwalk wrote it. Train again.")
    for name in [*owner, *(name for name in written if name not in owner)]:
        have, want = written.get(name), owner.get(name)
        if have != want:
            raise RunError(f"{path} belongs to another run: its {name} is {have!r}; expected {want!r}. {CURE}")
    return found, _progress(path, metadata)


def check_weights(path: Path, owner: Owner, blueprint: Scorer) -> None:
    """Refuse a checkpoint of another training, or with other weights than the model's, by its header alone.

    `blueprint` is the model without its numbers.
    """
    found, progress = check_owner(path, owner)
    weights = {name: spec for name, spec in found.items() if name.partition("/")[0] in WEIGHTS}
    check_specs(path, weights, expected_weights(progress, blueprint))


def expected_weights(progress: Progress, blueprint: Scorer) -> dict[str, Spec]:
    """The weights that a checkpoint at this point holds: the last, the best and the mean ones."""
    weights = {name: Spec.from_tensor(tensor) for name, tensor in blueprint.state_dict().items()}
    parts = ["model", *["best"] * (progress.best_metric is not None), *["average"] * (progress.averaged > 0)]
    return {f"{part}/{name}": spec for part in parts for name, spec in weights.items()}


def write_checkpoint(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """What a training holds, and what is said of it: its `owner`, its `progress`, and the files of rows that belong to
    it, if there are any."""
    own = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    said = {**metadata, "digest": digest_of(own, metadata)}
    put_in_place(path, own, said, metadata.get(INDEX))


def read_checkpoint(path: Path, wanted: Wanted | None = None) -> tuple[dict[str, Tensor], Progress]:
    """The tensors and the progress of a checkpoint, refused unless they are as they were written; of those that have a
    row for each entity, the rows that are wanted."""
    metadata, _ = read_header(path)
    tensors = read_tensors(path)
    if metadata.get("digest") != digest_of(tensors, metadata):
        raise RunError(f"{path} was changed after it was written. {CURE}")
    return with_rows(path, metadata, tensors, wanted), _progress(path, metadata)


def read_progress(path: Path) -> Progress:
    """How far a checkpoint is, from its header."""
    return _progress(path, read_header(path)[0])


def best_weights(path: Path, wanted: Wanted | None = None) -> dict[str, Tensor]:
    """The best weights of an unfinished training, or its last ones when nothing was validated yet."""
    if wanted is not None:
        wanted = wanted._replace(names=frozenset(f"{part}/{name}" for part in WEIGHTS for name in wanted.names))
    tensors, _ = read_checkpoint(path, wanted)
    return tensors_under("best", tensors) or tensors_under("model", tensors)


def tensors_under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors whose names begin with `prefix/`, by the rest of their names."""
    return {name.removeprefix(prefix + "/"): t for name, t in tensors.items() if name.startswith(prefix + "/")}


def digest_of(tensors: dict[str, Tensor], metadata: Mapping[str, str]) -> str:
    """A digest of all that a checkpoint holds."""
    digest = hashlib.blake2b(digest_size=16)
    for key in ("owner", "progress", *[INDEX] * (INDEX in metadata)):
        digest.update(f"{key} {metadata.get(key, '')}\n".encode())
    for name in sorted(tensors):
        digest.update(f"{name} {tuple(tensors[name].shape)} {tensors[name].dtype}".encode())
        digest.update(tensors[name].reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _progress(path: Path, metadata: Mapping[str, str]) -> Progress:
    try:
        progress = _PROGRESS.validate_python(_json(path, metadata.get("progress", "")))
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(map(str, fault["loc"])) or "progress"
        raise RunError(f"{path} holds no readable progress ({where}: {fault['msg']}). {CURE}") from error
    if min(progress.epoch, progress.step, progress.averaged) < 0:
        raise RunError(f"{path} holds no readable progress (epoch {progress.epoch}, step {progress.step}). {CURE}")
    return progress


def _json(path: Path, text: str) -> Any:
    try:
        return parse_json(text) if text else None
    except ValueError as error:
        raise RunError(f"{path} has a header that is not readable JSON ({error}). {CURE}") from error
