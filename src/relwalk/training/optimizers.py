"""Optimisers by name: the entities, the free weights of the relations, and their orthogonal matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import Tensor

from relwalk.mapped import MEMORY, DiskRoom, Room
from relwalk.models.base import Scorer
from relwalk.training.common import CommonSettings
from relwalk.training.kbgan import NegativeGenerator
from relwalk.training.optim import SGD, Adagrad, Adam, Group, Optimizer, RowwiseAdagrad
from relwalk.training.orthogonal_adagrad import OrthogonalAdagrad

OPTIMIZERS: dict[str, type[Optimizer]] = {
    "sgd": SGD,
    "adagrad": Adagrad,
    "rowwise-adagrad": RowwiseAdagrad,
    "adam": Adam,
}
ROTATION_LR = 0.3  # relation_lr of orthogonal matrices when none is given


def build_optimizers(model: Scorer, settings: CommonSettings, room: Room = MEMORY) -> list[Optimizer]:
    """One optimiser for all free weights, and one that keeps the orthogonal ones orthogonal."""
    orthogonal, tables = model.orthogonal(), [table.weight for table in model.tables()]
    apart = {id(weights) for weights in (*tables, *orthogonal)}
    free: list[Tensor] = [weights for weights in model.parameters() if id(weights) not in apart]
    one_triple = model.dim**-2.0  # about the square of what a single triple asks of a coordinate, in any model
    groups = [Group([*tables], settings.lr, one_triple)]
    if free:
        groups.append(Group(free, settings.lr if settings.relation_lr is None else settings.relation_lr, one_triple))
    optimizers = [OPTIMIZERS[settings.optimizer](groups, room)]
    if orthogonal:
        optimizers.append(
            OrthogonalAdagrad(
                [Group([*orthogonal], ROTATION_LR if settings.relation_lr is None else settings.relation_lr)]
            )
        )
    return optimizers


def build_all_optimizers(
    model: Scorer, beside: NegativeGenerator | None, settings: CommonSettings, room: Room = MEMORY
) -> list[Optimizer]:
    """Those of a model, then those of the one that chooses its negatives."""
    if beside is None:
        return build_optimizers(model, settings, room)
    own = settings.model_copy(update={"lr": beside.lr, "relation_lr": beside.lr})
    return [*build_optimizers(model, settings, room), *build_optimizers(beside.model, own, room)]


REMEMBERED = {"sgd": 0, "rowwise-adagrad": 0, "adagrad": 1, "adam": 2}  # numbers for each weight


def copies_held(settings: CommonSettings, room: Room = MEMORY) -> int:
    """How often training has a model in memory, at least: its weights, the best ones so far, and the optimiser's."""
    return 0 if isinstance(room, DiskRoom) else 2 + REMEMBERED[settings.optimizer]


def optimizer_tensors(optimizers: Sequence[Optimizer]) -> dict[str, Tensor]:
    """What the optimisers remember as named tensors, `<optimiser>/<weights>/<what>`."""
    return {
        f"{n}/{name}": tensor for n, optimizer in enumerate(optimizers) for name, tensor in optimizer.tensors().items()
    }


def expected_tensors(optimizers: Sequence[Optimizer]) -> dict[str, Tensor]:
    """What `optimizer_tensors` may name, each with its type and shape."""
    return {
        f"{n}/{name}": tensor
        for n, optimizer in enumerate(optimizers)
        for name, tensor in optimizer.all_tensors().items()
    }


def restore_optimizers(optimizers: Sequence[Optimizer], tensors: Mapping[str, Tensor]) -> None:
    for number, optimizer in enumerate(optimizers):
        own = f"{number}/"
        optimizer.restore({name.removeprefix(own): t for name, t in tensors.items() if name.startswith(own)})
