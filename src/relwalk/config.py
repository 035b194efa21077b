"""Settings from a file: a TOML of flat names, or the record of a run or of a result to be repeated."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from relwalk.errors import RelWalkError, RunError, UnknownChoice
from relwalk.evaluation.records import read_json
from relwalk.keywords import all_keywords
from relwalk.recipes import RECIPES
from relwalk.reproduction.record import CURE, FORMAT, read_result
from relwalk.runs.folder import RECORD
from relwalk.runs.record import read_record_file

Source = Mapping[str, Any] | Path | str
WHOLE = ("recipe", "model", "dim")  # beside the settings of training and model
LARGEST = 1 << 20  # bytes; a file of settings has a few hundred


@dataclass(frozen=True)
class Config:
    """What a file says. Of what an earlier run had, what does not fit a changed choice is left out."""

    given: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)  # of an earlier run
    options: Mapping[str, Any] = field(default_factory=dict)  # of its model
    recipe: str | None = None
    model: str | None = None
    dim: int | None = None
    unlisted: str = ""  # the model of one's own that an earlier run had


def read_config(source: Source | None) -> Config:
    """Settings by flat names from a mapping, a TOML file, a run's folder or its run.json, or the record of a result."""
    if source is None:
        return Config()
    if isinstance(source, Mapping):
        return _given(source, None)
    path = Path(source)
    path = path / RECORD if path.is_dir() else path
    if path.suffix == ".json":
        return _from_result(path) if _is_result(path) else _from_record(path)
    return _given(read_toml(path), path)


def _given(values: Mapping[str, Any], path: Path | None) -> Config:
    known = [*WHOLE, *all_keywords()]
    for name in values:
        # Options of a model of one's own are known only to that: a mapping may have them, and is checked later.
        if path is not None and name not in known:
            raise UnknownChoice(f"setting in {path}", name, known)
    rest = {name: value for name, value in values.items() if name not in WHOLE}
    return Config(given=rest, **{name: values[name] for name in WHOLE if name in values})


def read_toml(path: Path) -> dict[str, Any]:
    """What a file of settings says, unchecked."""
    if path.stat().st_size > LARGEST:
        raise RelWalkError(f"{path} has {path.stat().st_size:,} bytes; a file of settings has a few hundred.")
    try:
        return tomllib.loads(path.read_bytes().decode())
    except (ValueError, RecursionError) as error:
        raise RelWalkError(
            f'{path} is not readable TOML ({error}). Expected lines as: dim = 64, objective = "margin".'
        ) from error


def _from_record(path: Path) -> Config:
    """All that a run was made of: with the same graph, the same run."""
    record = read_record_file(path)
    return Config(
        training=record.training.flat(),
        options=record.model.options,
        recipe=record.recipe,
        model=record.model.name if record.model.listed else None,
        dim=record.model.dim,
        unlisted="" if record.model.listed else record.model.name,
    )


def _is_result(path: Path) -> bool:
    """Whether a file is the record of a result, and not of a run; one that cannot be read is told by its reader."""
    try:
        return read_json(path, "record", CURE).get("format") == FORMAT
    except RunError:
        return False


def _from_result(path: Path) -> Config:
    """All that the run of a result was made of."""
    record = read_result(path)
    if record.settings is None:
        raise RelWalkError(f"{path} has no settings: {record.reason or 'they were not kept'}. Give them by flags.")
    return Config(
        training=record.settings.training,
        options=record.settings.options,
        recipe=record.recipe if record.recipe in RECIPES else None,  # a name of one's own for the same settings
        model=record.model,
        dim=record.settings.dim,
    )
