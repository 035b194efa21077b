"""A training frozen after an epoch, in one safetensors file: weights, optimiser, best and averaged weights, history."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor

from relwalk.errors import RunError
from relwalk.files import write_atomically
from relwalk.training.optimizers import optimizer_tensors, restore_optimizers
from relwalk.training.trainer import Epoch, Progress, Trainer


def save_checkpoint(trainer: Trainer, path: Path) -> None:
    tensors = {f"model/{name}": tensor for name, tensor in trainer.model.state_dict().items()}
    tensors |= {f"best/{name}": tensor for name, tensor in (trainer.best or {}).items()}
    tensors |= {f"average/{name}": tensor for name, tensor in trainer.average.mean.items()}
    tensors |= {f"optimizer/{name}": tensor for name, tensor in optimizer_tensors(trainer.optimizers).items()}
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    metadata = {"progress": json.dumps(asdict(trainer.progress)), "digest": _digest(tensors)}
    write_atomically(path, to_bytes(tensors, metadata))


def restore_checkpoint(trainer: Trainer, path: Path) -> None:
    """Put a trainer back to where `save_checkpoint` found it."""
    tensors, progress = read_checkpoint(path)
    trainer.model.load_state_dict(_under("model", tensors))
    trainer.best = _under("best", tensors) or None
    restore_optimizers(trainer.optimizers, _under("optimizer", tensors))
    trainer.average.mean, trainer.average.count = _under("average", tensors), progress.averaged
    trainer.progress = progress


def read_checkpoint(path: Path) -> tuple[dict[str, Tensor], Progress]:
    """The tensors and the progress of a checkpoint, refused unless they are as they were written."""
    try:
        with safe_open(path, framework="pt") as file:
            metadata: dict[str, str] = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise RunError(f"{path} is not a readable checkpoint ({error}). Train again, or restore the file.") from error
    if metadata.get("digest") != _digest(tensors):
        raise RunError(f"{path} was changed after it was written. Train again, or restore the file.")
    return tensors, _progress(path, metadata.get("progress", ""))


def best_weights(path: Path) -> dict[str, Tensor]:
    """The best weights of an unfinished training, or its last ones when nothing was validated yet."""
    tensors, _ = read_checkpoint(path)
    return _under("best", tensors) or _under("model", tensors)


def _progress(path: Path, text: str) -> Progress:
    try:
        fields: dict[str, Any] = json.loads(text)
        history = [Epoch(**record) for record in fields.pop("history")]
        return Progress(**fields, history=history)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise RunError(f"{path} holds no readable progress ({error}). Train again, or restore the file.") from error


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix + "/"): t for name, t in tensors.items() if name.startswith(prefix + "/")}


def _digest(tensors: dict[str, Tensor]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for name in sorted(tensors):
        digest.update(f"{name} {tuple(tensors[name].shape)} {tensors[name].dtype}".encode())
        digest.update(tensors[name].numpy().tobytes())
    return digest.hexdigest()
