"""Tensors of which each process of a training has some rows: a file from each, and one that vouches for them all.

    weights.safetensors                        what all processes have alike; its header names the others
    weights.0-of-2.3fa94c01d2e5.safetensors    the rows of one process, and which entities they are

A file of rows is named after its content, and written before the one that vouches for it takes its place: at every
moment there is one whole set. Whoever reads, one process or many, gets whole tensors or the rows that it asks for.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple, Self

import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from torch import Tensor

from relwalk.errors import RunError
from relwalk.files import parse_json, sha256
from relwalk.runs.folder import shards_in
from relwalk.runs.tensor_file import CURE, Spec, file_parts, read_header, read_tensors, write_tensors

ENTITIES = "shard/entities"  # of the rows of a file, in its own list of tensors
INDEX = "shards"  # in the metadata of the file that vouches


class ShardIndex(BaseModel):
    """What the vouching file says of the others."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    entities: int = Field(ge=1)
    tables: dict[str, tuple[str, tuple[int, ...]]]  # type and shape of each whole tensor
    files: dict[str, str]  # sha256 of each

    @model_validator(mode="after")
    def _a_row_for_each(self) -> Self:
        if not self.tables or any(shape[:1] != (self.entities,) for _, shape in self.tables.values()):
            raise ValueError(f"tables without a row for each of {self.entities} entities")
        return self


class Wanted(NamedTuple):
    """Rows that one process asks for, of the tensors that have a row for each entity."""

    names: frozenset[str]
    entities: Tensor  # (n,) ascending


def write_shard(path: Path, rows: Mapping[str, Tensor], entities: Tensor, rank: int, size: int) -> tuple[str, str]:
    """The rows of one process, for the file `path` to vouch for: the name of their file and its checksum."""
    tensors, hashed = {**rows, ENTITIES: entities}, hashlib.sha256()
    for part in file_parts(tensors):
        hashed.update(part)
    digest = hashed.hexdigest()
    name = f"{path.stem}.{rank}-of-{size}.{digest[:12]}{path.suffix}"
    write_tensors(path.with_name(name), tensors)
    return name, digest


def index_of(rows: Mapping[str, Tensor], entities: int, files: Iterable[tuple[str, str]]) -> str:
    """What the vouching file is to say, from the rows of any process and the files of all."""
    specs = {name: Spec.from_tensor(tensor) for name, tensor in rows.items()}
    tables = {name: (spec.dtype, (entities, *spec.shape[1:])) for name, spec in specs.items()}
    return ShardIndex(entities=entities, tables=tables, files=dict(files)).model_dump_json()


def put_in_place(
    path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None, index: str | None = None
) -> None:
    """Write a file that vouches for those of the index, and for no others: older ones are removed."""
    write_tensors(path, tensors, metadata)
    kept = json.loads(index)["files"] if index is not None else {}
    for name in shards_in(path.parent, path.stem):
        if name not in kept:
            path.with_name(name).unlink(missing_ok=True)


def whole_header(path: Path) -> tuple[dict[str, str], dict[str, Spec]]:
    """`read_header` of all that a file holds or vouches for."""
    metadata, specs = read_header(path)
    index = _index(path, metadata)
    return metadata, specs if index is None else specs | {name: Spec(*spec) for name, spec in index.tables.items()}


def whole_tensors(path: Path, wanted: Wanted | None = None) -> dict[str, Tensor]:
    """`read_tensors` of all that a file holds or vouches for, or of the rows of it that are wanted."""
    return with_rows(path, read_header(path)[0], read_tensors(path), wanted)


def with_rows(
    path: Path, metadata: Mapping[str, str], tensors: dict[str, Tensor], wanted: Wanted | None
) -> dict[str, Tensor]:
    """The tensors of a file with those of the files that it vouches for."""
    index = _index(path, metadata)
    if wanted is not None:
        tensors = {name: t[wanted.entities] if name in wanted.names else t for name, t in tensors.items()}
    return tensors if index is None else tensors | _rows(path, index, None if wanted is None else wanted.entities)


def _rows(path: Path, index: ShardIndex, wanted: Tensor | None) -> dict[str, Tensor]:
    """The rows of all files, each in its place."""
    place = torch.full((index.entities,), -1)
    place[slice(None) if wanted is None else wanted] = torch.arange(index.entities if wanted is None else len(wanted))
    found: dict[str, Tensor] = {}
    filled = torch.zeros(int(place.max()) + 1, dtype=torch.bool)
    for name, digest in index.files.items():
        rows = _shard(path, index, name, digest)
        here = place[rows.pop(ENTITIES)]
        filled[here[here >= 0]] = True
        for table, values in rows.items():
            whole = found.setdefault(table, values.new_empty(len(filled), *values.shape[1:]))
            whole[here[here >= 0]] = values[here >= 0]
    if not bool(filled.all()):
        raise RunError(f"{path}: its files hold {int(filled.sum()):,} of {len(filled):,} rows. {CURE}")
    return found


def _shard(path: Path, index: ShardIndex, name: str, digest: str) -> dict[str, Tensor]:
    """The tensors of one file, refused unless they are as they were written."""
    file = path.with_name(name)
    if name not in shards_in(path.parent, path.stem):
        raise RunError(f"{file} is missing: {path.name} vouches for it. {CURE}")
    if sha256(file) != digest:
        raise RunError(f"{file} is truncated or was changed after it was written. {CURE}")
    specs = read_header(file)[1]
    rows = specs.get(ENTITIES, Spec("", (0,))).shape[0]
    expected = {table: Spec(dtype, (rows, *shape[1:])) for table, (dtype, shape) in index.tables.items()}
    if specs != expected | {ENTITIES: Spec("I64", (rows,))}:
        raise RunError(f"{file} holds other tensors than {path.name} vouches for. {CURE}")
    tensors = read_tensors(file)
    entities = tensors[ENTITIES]
    if rows and not 0 <= int(entities.min()) <= int(entities.max()) < index.entities:
        raise RunError(f"{file} holds rows of entities that are not there. {CURE}")
    return tensors


def _index(path: Path, metadata: Mapping[str, str]) -> ShardIndex | None:
    said = metadata.get(INDEX)
    if said is None:
        return None
    try:
        return ShardIndex.model_validate(parse_json(said))
    except (ValueError, ValidationError) as error:
        raise RunError(f"{path} does not say which files hold its rows ({str(error)[:200]}). {CURE}") from error
