"""run.json: what a run says of itself, and that the files beside it are the ones it vouches for."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from relwalk import __version__
from relwalk.errors import RelWalkError, RunError
from relwalk.evaluation.probabilities import Probabilities
from relwalk.files import parse_json, sha256, write_atomically
from relwalk.models.compressed import Compression
from relwalk.runs.folder import FILES, RECORD, not_a_run, settle
from relwalk.training.settings import TrainingSettings, fitting

# 2: a run may have diverged, and may have changed its rates; entities are tables. 3: nested settings. 4: compression
# 5: probabilities
RUN_FORMAT = 5
LARGEST_RECORD = 1 << 26  # bytes; a record has a few thousand


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class ModelRecord(_Record):
    """Which model, and with which options it was built."""

    name: str  # as it is listed, or module:Class of one's own
    listed: bool = True
    dim: int = Field(ge=1)
    options: dict[str, bool | int | float | str] = Field(default_factory=dict)
    compression: Compression | None = None  # what `relwalk compress` made of it

    def __str__(self) -> str:
        how = f" ({self.compression})" if self.compression is not None else ""
        return f"{self.name} d={self.dim}{how}"


class GraphRecord(_Record):
    """Which graph the run was trained on."""

    name: str
    source: str
    fingerprint: str
    entities: int
    relations: int
    notes: tuple[str, ...] = ()


class Change(_Record):
    """Settings that were changed after so many whole epochs."""

    after_epoch: int
    settings: dict[str, float | int]


class RunRecord(_Record):
    """run.json."""

    format: Literal["relwalk-run"] = "relwalk-run"
    version: int = RUN_FORMAT
    status: Literal["training", "finished", "diverged"] = "training"
    reason: str = ""  # why it diverged, or has no probabilities
    created: str = Field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    versions: dict[str, str] = Field(default_factory=lambda: software_versions())
    recipe: str = "default"
    graph: GraphRecord
    model: ModelRecord
    training: TrainingSettings
    changes: tuple[Change, ...] = ()  # of settings, by `resume`
    metrics: dict[str, float | int | None] = Field(default_factory=dict)
    probabilities: Probabilities | None = None  # what valid taught about the scores
    files: dict[str, str] = Field(default_factory=dict)  # sha256 of each

    def owner(self) -> dict[str, Any]:
        """What a checkpoint must have been made by to be gone on from here: all that `resume` cannot change."""
        training = self.training.model_dump(include={"optimizer", "batch_size", "batches", "seed"})
        model = self.model.model_dump(exclude={"listed"})
        return {**model, "graph": self.graph.fingerprint, "objective": self.training.objective.name, **training}


def software_versions() -> dict[str, str]:
    return {
        "relwalk": __version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
    }


def write_record(path: Path, record: RunRecord) -> None:
    record = record.model_copy(update={"version": RUN_FORMAT})  # also one that was read from an earlier format
    write_atomically(path / RECORD, (record.model_dump_json(indent=2) + "\n").encode())


def read_record(path: Path, *, check_files: bool = True) -> RunRecord:
    """run.json, checked: what it says, and that the other files are the ones it vouches for."""
    settle(path)
    file = path / RECORD
    if not file.is_file():
        raise RunError(not_a_run(path))
    for name in FILES:
        if (path / name).exists() and not (path / name).is_file():
            kind = "folder" if (path / name).is_dir() else "device or pipe"
            raise RunError(f"{path / name} is a {kind}; expected a file. Move it away, or train again elsewhere.")
    record = read_record_file(file)
    for name, digest in record.files.items() if check_files else ():
        _check_file(path, name, digest)
    return record


def read_record_file(file: Path) -> RunRecord:
    """What a record says; the files it vouches for are not looked at."""
    content = _record_content(file)
    _check_version(file, content)
    try:
        return RunRecord.model_validate(_as_now(content))
    except (ValidationError, RelWalkError) as error:
        raise RunError(
            f"{file} is not a valid run record: {_first_fault(error)}. Restore it, or train again."
        ) from error


def _as_now(content: dict[str, Any]) -> dict[str, Any]:
    """Up to format 2 settings were flat, and those of every objective were there."""
    training = content.get("training")
    if content["version"] > 2 or not isinstance(training, dict):
        return content
    return {**content, "training": fitting(training, training)}


def _record_content(file: Path) -> Any:
    size = file.stat().st_size
    if size > LARGEST_RECORD:
        raise RunError(f"{file} has {size:,} bytes; a record has a few thousand. Restore it, or train again.")
    try:
        return parse_json(file.read_bytes())
    except ValueError as error:
        raise RunError(f"{file} is not readable JSON ({error}). Restore it, or train again.") from error


def _check_version(file: Path, content: Any) -> None:
    if not isinstance(content, dict) or content.get("format") != "relwalk-run":
        raise RunError(f'{file} was not written by relwalk: found no "format": "relwalk-run" in it.')
    version = content.get("version")
    if not isinstance(version, int) or version > RUN_FORMAT:
        raise RunError(f"{file} has run format {version!r}; this relwalk reads up to {RUN_FORMAT}. Upgrade relwalk.")


def _check_file(path: Path, name: str, digest: str) -> None:
    if name not in FILES:
        raise RunError(f"{path / RECORD} names a file {name!r} that is no part of a run.")
    if not (path / name).is_file():
        raise RunError(f"{path / name} is missing. Restore it, or train again.")
    if sha256(path / name) != digest:
        raise RunError(f"{path / name} is truncated or was changed after the run wrote it. Restore it, or train again.")


def _first_fault(error: Exception) -> str:
    if isinstance(error, ValidationError):
        fault = error.errors()[0]
        return f"{'.'.join(str(part) for part in fault['loc'])}: {fault['msg']}"
    return str(error)
