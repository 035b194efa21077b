"""A training frozen between two steps: a trainer written to a checkpoint, and put back to where one found it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import torch
from torch import Tensor

from relwalk.errors import RunError
from relwalk.models.base import Scorer
from relwalk.runs.checkpoint import (
    Owner,
    check_owner,
    expected_weights,
    read_checkpoint,
    tensors_under,
    write_checkpoint,
)
from relwalk.runs.shard_files import Wanted
from relwalk.runs.tensor_file import CURE, Spec, check_specs
from relwalk.training.kbgan import NegativeGenerator
from relwalk.training.negative_sampling import build_negative_generator
from relwalk.training.optimizers import build_all_optimizers, expected_tensors, optimizer_tensors, restore_optimizers
from relwalk.training.settings import TrainingSettings
from relwalk.training.trainer import Trainer

RANDOM = "random/state"


def save_checkpoint(trainer: Trainer, path: Path, owner: Owner) -> None:
    write_checkpoint(path, *frozen(trainer, owner))


def frozen(trainer: Trainer, owner: Owner) -> tuple[dict[str, Tensor], dict[str, str]]:
    """All that a trainer holds as named tensors, and what is said of it."""
    tensors = {f"model/{name}": tensor for name, tensor in trainer.model.state_dict().items()}
    tensors |= {f"best/{name}": tensor for name, tensor in (trainer.best or {}).items()}
    tensors |= {f"average/{name}": tensor for name, tensor in trainer.average.mean.items()}
    tensors |= {f"generator/{name}": tensor for name, tensor in _beside(trainer.task.negative_generator).items()}
    tensors |= {f"optimizer/{name}": tensor for name, tensor in optimizer_tensors(trainer.optimizers).items()}
    if trainer.progress.step and trainer.random_state is not None:
        tensors[RANDOM] = trainer.random_state
    return tensors, {"progress": json.dumps(asdict(trainer.progress)), "owner": json.dumps(owner, sort_keys=True)}


def check_checkpoint(path: Path, owner: Owner, blueprint: Scorer, settings: TrainingSettings) -> None:
    """Refuse a checkpoint of another training by its header alone. `blueprint` is the model without its numbers."""
    found, progress = check_owner(path, owner)
    expected = expected_weights(progress, blueprint)
    with torch.device(blueprint.device):
        beside = build_negative_generator(settings, settings.objective, blueprint.entities, blueprint.relations)
    expected |= {f"generator/{name}": Spec.from_tensor(tensor) for name, tensor in _beside(beside).items()}
    remembered = expected_tensors(build_all_optimizers(blueprint, beside, settings))
    # Weights that were never moved have nothing to be remembered of them, all or none.
    moved = {name.rpartition("/")[0] for name in found if name.startswith("optimizer/")}
    names = {f"optimizer/{name}": tensor for name, tensor in remembered.items()}
    expected |= {name: Spec.from_tensor(t) for name, t in names.items() if name.rpartition("/")[0] in moved}
    if progress.step:
        expected[RANDOM] = Spec.from_tensor(torch.Generator().get_state())
    check_specs(path, found, expected)


def restore_checkpoint(trainer: Trainer, path: Path, wanted: Wanted | None = None) -> None:
    """Put a trainer back to where `save_checkpoint` found it; `check_checkpoint` comes first. One of several that share
    the entities says which rows are `wanted`."""
    tensors, progress = read_checkpoint(path, wanted)
    if progress.step > len(trainer.task):
        raise RunError(f"{path} is at step {progress.step} of an epoch of {len(trainer.task)} steps. {CURE}")
    trainer.model.load_state_dict(tensors_under("model", tensors))
    if trainer.task.negative_generator is not None:
        trainer.task.negative_generator.load_state_dict(tensors_under("generator", tensors))
    trainer.best = tensors_under("best", tensors) or None
    restore_optimizers(trainer.optimizers, tensors_under("optimizer", tensors))
    trainer.average.mean, trainer.average.count = tensors_under("average", tensors), progress.averaged
    trainer.random_state = _random_state(path, tensors)
    trainer.progress = progress


def _beside(generator: NegativeGenerator | None) -> dict[str, Tensor]:
    """What there is to keep of a model that is trained beside."""
    return {} if generator is None else generator.state_dict()


def _random_state(path: Path, tensors: Mapping[str, Tensor]) -> Tensor | None:
    state = tensors.get(RANDOM)
    try:
        if state is not None:
            torch.Generator().set_state(state)
    except RuntimeError as error:
        raise RunError(f"{path} holds no state of a random generator ({error}). {CURE}") from error
    return state
