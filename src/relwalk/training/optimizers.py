"""Optimisers by name: the entities, the free weights of the relations, and their orthogonal matrices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from relwalk.models.base import Scorer
from relwalk.training.adagrad import RowAdagrad, RowwiseAdagrad
from relwalk.training.rotations import OrthogonalAdagrad
from relwalk.training.settings import TrainingSettings

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "sgd": torch.optim.SGD,
    "adagrad": torch.optim.Adagrad,
    "rowwise-adagrad": RowwiseAdagrad,
    "adam": torch.optim.Adam,
}
ROTATION_LR = 0.3  # relation_lr of orthogonal matrices when none is given


def build_optimizers(model: Scorer, settings: TrainingSettings, *, sparse: bool = False) -> list[torch.optim.Optimizer]:
    """One optimiser for all free weights, and one that keeps the orthogonal ones orthogonal.

    With `sparse`, the gradient of the entities names only the rows it is about, and only those are stepped.
    """
    orthogonal = model.orthogonal()
    apart = {id(weights) for weights in (model.entity, *orthogonal)}
    free = [weights for weights in model.parameters() if id(weights) not in apart]
    groups: list[dict[str, object]] = [{"params": [model.entity], "lr": settings.lr}]
    if free:
        groups.append({"params": free, "lr": settings.relation_lr or settings.lr})
    kind = RowAdagrad if sparse and settings.optimizer == "adagrad" else OPTIMIZERS[settings.optimizer]
    optimizers = [kind(groups, fused=model.entity.device.type == "cpu" and not sparse)]
    if orthogonal:
        optimizers.append(OrthogonalAdagrad(orthogonal, lr=settings.relation_lr or ROTATION_LR))
    return optimizers


def optimizer_tensors(optimizers: Sequence[torch.optim.Optimizer]) -> dict[str, Tensor]:
    """What the optimisers remember as named tensors, `<optimiser>/<parameter>/<what>`."""
    return {
        f"{number}/{index}/{key}": value
        for number, optimizer in enumerate(optimizers)
        for index, slots in optimizer.state_dict()["state"].items()
        for key, value in slots.items()
    }


def restore_optimizers(optimizers: Sequence[torch.optim.Optimizer], tensors: Mapping[str, Tensor]) -> None:
    for number, optimizer in enumerate(optimizers):
        state: dict[int, dict[str, Tensor]] = {}
        for name, tensor in tensors.items():
            own, index, key = name.split("/")
            if int(own) == number:
                state.setdefault(int(index), {})[key] = tensor
        optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
