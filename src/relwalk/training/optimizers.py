"""Optimisers by name, with a learning rate for the entities and one for the relations."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from relwalk.models.base import Scorer
from relwalk.training.settings import TrainingSettings

OPTIMIZERS: dict[str, Callable[[list[dict[str, object]]], torch.optim.Optimizer]] = {
    "sgd": torch.optim.SGD,
    "adagrad": torch.optim.Adagrad,
    "adam": torch.optim.Adam,
}


def build_optimizer(model: Scorer, settings: TrainingSettings) -> torch.optim.Optimizer:
    relations = [weights for weights in model.parameters() if weights is not model.entity]
    groups: list[dict[str, object]] = [{"params": [model.entity], "lr": settings.lr}]
    if relations:
        groups.append({"params": relations, "lr": settings.relation_lr or settings.lr})
    return OPTIMIZERS[settings.optimizer](groups)


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimiser's memory as named tensors, `<parameter>/<what>`."""
    state: Mapping[int, Mapping[str, Tensor]] = optimizer.state_dict()["state"]
    return {f"{index}/{key}": value for index, slots in state.items() for key, value in slots.items()}


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        index, key = name.split("/")
        state.setdefault(int(index), {})[key] = tensor
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
