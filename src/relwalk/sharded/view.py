"""A model as a part of the questions sees it: its relations, the rows that were fetched, its share of the dropout."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TypeVar

import torch.nn.functional as F
from torch import Tensor, nn

from relwalk.models.base import Scorer
from relwalk.models.tables import Dropout, EntityTable
from relwalk.sharded.shards import Rows

M = TypeVar("M", bound=nn.Module)
S = TypeVar("S", bound=Scorer)


class FetchedTable(EntityTable):
    """A table of rows that belong to another process."""

    def __init__(self, rows: Tensor) -> None:
        nn.Module.__init__(self)  # what it shows is no weight of its own
        self.rows, self.num_embeddings, self.embedding_dim = rows, len(rows), rows.shape[1]

    def forward(self, entities: Tensor | None = None) -> Tensor:
        return self.rows if entities is None else F.embedding(entities, self.rows)


class PartDropout(Dropout):
    """Drops what one process would drop of these questions: draws for all of them, and takes its own."""

    def __init__(self, whole: Dropout, questions: Tensor, count: int) -> None:
        super().__init__(whole.rate, axes=whole.axes)
        self.generator, self.training = whole.generator, whole.training
        self.questions, self.count = questions, count

    def draw(self, shape: tuple[int, ...]) -> Tensor:
        return super().draw((self.count, *shape[1:]))[self.questions]


def view(model: S, rows: Rows, questions: Tensor, count: int) -> S:
    """The model for some of `count` questions, by their numbers, whose entities are places in the rows."""
    tables = dict(zip(model.tables(), rows.tables, strict=True))

    def swap(module: nn.Module) -> nn.Module | None:
        if isinstance(module, EntityTable):
            return FetchedTable(tables[module])
        return PartDropout(module, questions, count) if isinstance(module, Dropout) else None

    return _copy(model, swap)


def _copy(module: M, swap: Callable[[nn.Module], nn.Module | None]) -> M:
    """The same module, parameters and all, with some of the modules within it exchanged."""
    twin = copy.copy(module)
    twin.__dict__["_modules"] = {
        name: child if child is None else swap(child) or _copy(child, swap) for name, child in module._modules.items()
    }
    return twin
