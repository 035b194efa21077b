"""Optimisers by name: the entities, the free weights of the relations, and their orthogonal matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import Tensor

from relwalk.models.base import Scorer
from relwalk.training.moving import SGD, Adagrad, Adam, Group, Optimizer, RowwiseAdagrad
from relwalk.training.rotations import OrthogonalAdagrad
from relwalk.training.settings import TrainingSettings

OPTIMIZERS: dict[str, type[Optimizer]] = {
    "sgd": SGD,
    "adagrad": Adagrad,
    "rowwise-adagrad": RowwiseAdagrad,
    "adam": Adam,
}
ROTATION_LR = 0.3  # relation_lr of orthogonal matrices when none is given


def build_optimizers(model: Scorer, settings: TrainingSettings) -> list[Optimizer]:
    """One optimiser for all free weights, and one that keeps the orthogonal ones orthogonal."""
    orthogonal = model.orthogonal()
    apart = {id(weights) for weights in (model.entity, *orthogonal)}
    free: list[Tensor] = [weights for weights in model.parameters() if id(weights) not in apart]
    groups = [Group([model.entity], settings.lr)]
    if free:
        groups.append(Group(free, settings.relation_lr or settings.lr))
    optimizers = [OPTIMIZERS[settings.optimizer](groups)]
    if orthogonal:
        optimizers.append(OrthogonalAdagrad([Group([*orthogonal], settings.relation_lr or ROTATION_LR)]))
    return optimizers


def optimizer_tensors(optimizers: Sequence[Optimizer]) -> dict[str, Tensor]:
    """What the optimisers remember as named tensors, `<optimiser>/<weights>/<what>`."""
    return {
        f"{n}/{name}": tensor for n, optimizer in enumerate(optimizers) for name, tensor in optimizer.tensors().items()
    }


def restore_optimizers(optimizers: Sequence[Optimizer], tensors: Mapping[str, Tensor]) -> None:
    for number, optimizer in enumerate(optimizers):
        own = f"{number}/"
        optimizer.restore({name.removeprefix(own): t for name, t in tensors.items() if name.startswith(own)})
