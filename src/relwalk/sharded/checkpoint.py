"""Checkpoints and weights of several processes: each writes its rows, rank 0 the rest, and vouches for all."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path

from torch import Tensor

from relwalk.launch import launch_name
from relwalk.memory import FLOAT, available_memory
from relwalk.models.base import Scorer
from relwalk.models.tables import EntityTable, set_rows
from relwalk.runs.checkpoint import WEIGHTS as PARTS
from relwalk.runs.checkpoint import Owner, write_checkpoint
from relwalk.runs.folder import CHECKPOINT, WEIGHTS, folder_to_resume, is_run
from relwalk.runs.record import RunRecord, read_record
from relwalk.runs.run import write_weights
from relwalk.runs.shard_files import INDEX, Wanted, index_of, whole_header, whole_tensors, write_shard
from relwalk.runs.tensor_file import read_header
from relwalk.sharded.shards import Shards
from relwalk.training.checkpoint import frozen, restore_checkpoint
from relwalk.training.trainer import Trainer

LAUNCH = "launch"  # in the metadata: which call of torchrun wrote it


def save_sharded(trainer: Trainer, path: Path, owner: Owner, shards: Shards) -> None:
    """Write a checkpoint together: it is whole, and the earlier one gone, when rank 0 has written its part."""
    tensors, metadata = frozen(trainer, owner)
    sizes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    names = _with_rows(trainer.model, sizes, len(shards.own))
    index = _write_rows(path, {name: tensors.pop(name) for name in names}, shards)
    said = {INDEX: index, LAUNCH: launch_name()}
    shards.world.first_does(lambda: write_checkpoint(path, tensors, metadata | said))


def restore_sharded(trainer: Trainer, path: Path, shards: Shards) -> None:
    """Go on from a checkpoint of any number of processes: each takes the rows that are its own now."""
    sizes = {name: spec.shape for name, spec in whole_header(path)[1].items()}
    names = _with_rows(trainer.model, sizes, shards.entities)
    restore_checkpoint(trainer, path, Wanted(frozenset(names), shards.own))


def save_weights(folder: Path, model: Scorer, shards: Shards) -> None:
    """Write the learned weights together."""
    tensors = model.state_dict()
    index = _write_rows(folder / WEIGHTS, {name: tensors.pop(name) for name in table_names(model)}, shards)
    said = {INDEX: index, LAUNCH: launch_name()}
    shards.world.first_does(lambda: write_weights(folder, tensors, said))


def begun_by_this_launch(path: Path, record: RunRecord) -> bool:
    """Whether the run of a folder is one that processes of the same torchrun began, and that is to be gone on with.

    One that has no checkpoint yet has nothing to lose: it is, if it is to be the same.
    """
    if not is_run(path):
        return False
    folder = folder_to_resume(path)
    files = [folder / name for name in (CHECKPOINT, WEIGHTS) if (folder / name).is_file()]
    if not files:
        return read_record(folder).owner() == record.owner()
    return any(read_header(file)[0].get(LAUNCH) == launch_name() for file in files)


def take_up_whole(model: Scorer, path: Path) -> bool:
    """Put the rows of all processes into the tables of this one; False where they do not fit into memory."""
    room = available_memory()
    sizes = [math.prod(spec.shape) for spec in whole_header(path)[1].values()]
    if room is not None and FLOAT * sum(sizes) > room:
        return False
    tensors = whole_tensors(path)
    for table, name in zip(model.tables(), table_names(model), strict=True):
        set_rows(table, tensors[name])
    model.load_state_dict(tensors)
    return True


def table_names(model: Scorer) -> list[str]:
    """The weights that have a row for each entity."""
    return [f"{name}.weight" for name, module in model.named_modules() if isinstance(module, EntityTable)]


def _with_rows(model: Scorer, sizes: Mapping[str, tuple[int, ...]], rows: int) -> list[str]:
    """What of a checkpoint has a row for each entity: weights of tables, and what the optimizer remembers of them."""
    tables = table_names(model)
    weights = {f"{part}/{name}" for part in PARTS for name in tables}
    first = tuple(f"optimizer/0/{number}/" for number in range(len(tables)))  # tables come before all others
    return [name for name, size in sizes.items() if name in weights or (name.startswith(first) and size[:1] == (rows,))]


def _write_rows(path: Path, rows: Mapping[str, Tensor], shards: Shards) -> str:
    """A file from each process, and what the one that vouches for them is to say."""
    world = shards.world
    files: Iterable[tuple[str, str]] = world.tell(write_shard(path, rows, shards.own, world.rank, world.size))
    return index_of(rows, shards.entities, [(name, digest) for name, digest in files])
