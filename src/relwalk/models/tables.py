"""Vectors by entity, dropout and batch norm: the parts that a model is put together from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from relwalk.mapped import MEMORY, DiskRoom, Room, is_mapped


class EntityTable(nn.Embedding):
    """A vector for every entity: `table(ids)` are those of some, `table()` all of them.

    An `nn.Embedding` like any other; as one of these it is known to have a row per entity, so that the trainer finds
    it. With `sparse` its gradient names the rows it is about, and a step costs what those rows cost. An entity's bias
    is a table of one column. Made within `tables_in` it is where that says.
    """

    coded = False  # its rows are decoded from fewer bytes: better some of them than all
    mapped = False  # they are in a file: better some of them than a copy of all

    def __init__(self, weight: Tensor) -> None:
        room = _room.get()
        if isinstance(room, DiskRoom) and not is_mapped(weight):
            weight = room.copy(weight)
        super().__init__(len(weight), weight.shape[1], _weight=weight)
        self.mapped = is_mapped(weight)

    if TYPE_CHECKING:

        def __call__(self, entities: Tensor | None = None) -> Tensor: ...

    def forward(self, entities: Tensor | None = None) -> Tensor:
        """(*entities.shape, dim), or (entities, dim); a gradient that adds up in the same order every time."""
        return self.weight if entities is None else F.embedding(entities, self.weight, sparse=self.sparse)


def set_rows(table: EntityTable, rows: Tensor, *, mapped: bool = False) -> None:
    """Other rows for a table, more or fewer of them, `mapped` from a file or not."""
    table.weight, table.num_embeddings, table.mapped = nn.Parameter(rows), len(rows), mapped


_kept: ContextVar[Tensor | None] = ContextVar("kept", default=None)
_room: ContextVar[Room] = ContextVar("room", default=MEMORY)
BLOCK = 1 << 14  # rows drawn at a time, where few are kept: sixteen numbers, or a multiple, are drawn together


@contextmanager
def only_rows(entities: Tensor) -> Iterator[None]:
    """Within, tables begin with the rows of these entities alone: the same numbers as they have among all."""
    token = _kept.set(entities)
    try:
        yield
    finally:
        _kept.reset(token)


@contextmanager
def tables_in(room: Room) -> Iterator[None]:
    """Within, tables are made in memory, or in files that are mapped."""
    token = _room.set(room)
    try:
        yield
    finally:
        _room.reset(token)


def normal_rows(
    entities: int, dim: int, generator: torch.Generator, *, times: float = 1.0, over: float = 1.0
) -> Tensor:
    """Where the vectors of entities start: normal numbers, times one number, over another.  # (entities, dim)

    Within `only_rows` those of some entities, and within `tables_in` where that says, a block after the other: there is
    never room for all of them.
    """
    kept, room = _kept.get(), _room.get()
    if torch.get_default_device().type == "meta":
        return torch.empty(entities, dim)  # to draw none of them would take seconds of imports
    if kept is not None and len(kept) == 0:
        return room.empty((0, dim))  # what comes after them is drawn otherwise: for a model that is to be filled in
    if kept is None and not isinstance(room, DiskRoom):
        return torch.randn(entities, dim, generator=generator).mul_(times).div_(over)
    starts = list(range(0, max(entities - BLOCK, 1), BLOCK))  # the last block is the largest: its end is drawn apart
    found, done = room.empty((entities if kept is None else len(kept), dim)), 0
    for start, end in zip(starts, [*starts[1:], entities], strict=True):
        rows = torch.randn(end - start, dim, generator=generator).mul_(times).div_(over)
        rows = rows if kept is None else rows[kept[(kept >= start) & (kept < end)] - start]
        found[done : done + len(rows)] = rows
        done += len(rows)
    return found


class Dropout(nn.Module):
    """Zero a share of the coordinates in training, and enlarge the others for it.

    `rate` is the model's own, or set by the trainer (`training.prepare`). With `axes`, a coordinate of so many leading
    axes is dropped whole: 2 for the feature maps of a convolution. Draws from `generator`, so that an interrupted
    training goes on with the same bits; None: torch's own.
    """

    def __init__(self, rate: float = 0.0, *, axes: int | None = None) -> None:
        super().__init__()
        self.rate, self.axes = rate, axes
        self.generator: torch.Generator | None = None

    if TYPE_CHECKING:

        def __call__(self, x: Tensor) -> Tensor: ...

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or not self.rate:
            return x
        axes = x.dim() if self.axes is None else self.axes
        drawn = self.draw((*x.shape[:axes], *[1] * (x.dim() - axes)))
        return x * (drawn.to(x.device) >= self.rate) / (1 - self.rate)

    def draw(self, shape: tuple[int, ...]) -> Tensor:
        """Numbers between 0 and 1, one for each coordinate: dropped are those below the rate."""
        return torch.rand(shape, generator=self.generator)


class BatchNorm(nn.BatchNorm1d):
    """Each coordinate to mean 0 and variance 1 over the rows of a batch, then a learned slope and intercept
    (Ioffe, Szegedy: ICML 2015). Evaluation has running means in place of the batch's, and so has a row alone, which
    has no variance.
    """

    if TYPE_CHECKING:

        def __call__(self, x: Tensor) -> Tensor: ...

    def forward(self, x: Tensor) -> Tensor:
        if self.training and len(x) > 1:
            return super().forward(x)
        slope, intercept = self.line()
        return slope * x + intercept

    def line(self) -> tuple[Tensor, Tensor]:
        """The slope and the intercept that evaluation has for each coordinate.  # (dim,) each"""
        assert self.running_mean is not None and self.running_var is not None
        slope = self.weight * torch.rsqrt(self.running_var + self.eps)
        return slope, self.bias - slope * self.running_mean


class _SquaredNorms(torch.autograd.Function):
    """Autograd would keep a square of the whole table, and make two more of its size on the way back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        norms: Tensor = torch.linalg.vector_norm(x, dim=-1)
        return norms.square()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return torch.mul(x, (2 * grads[0]).unsqueeze(-1))


def squared_norms(x: Tensor) -> Tensor:
    """||x||² of each vector.  # (...,)"""
    norms: Tensor = _SquaredNorms.apply(x)  # type: ignore[no-untyped-call]
    return norms


class _WithNorms(torch.autograd.Function):
    """One pass over the table each way."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        longer = x.new_empty(*x.shape[:-1], x.shape[-1] + 1)
        longer[..., :-1] = x
        torch.linalg.vector_norm(x, dim=-1, out=longer[..., -1]).square_()
        return longer

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        slope: Tensor = grads[0]
        return torch.addcmul(slope[..., :-1], x, slope[..., -1:], value=2)


class _AndNorms(torch.autograd.Function):
    """As `_WithNorms`, without a copy of the table."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(x)
        norms: Tensor = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        return x.view_as(x), norms.square_()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return torch.addcmul(grads[0], x, grads[1], value=2)


def and_squared_norms(x: Tensor) -> tuple[Tensor, Tensor]:
    """x, ||x||²: the parts of `with_squared_norms`.  # (..., dim), (..., 1)"""
    parts: tuple[Tensor, Tensor] = _AndNorms.apply(x)  # type: ignore[no-untyped-call]
    return parts


def with_squared_norms(x: Tensor) -> Tensor:
    """[x, ||x||²]: each vector with its squared norm as one more coordinate.  # (..., dim + 1)"""
    longer: Tensor = _WithNorms.apply(x)  # type: ignore[no-untyped-call]
    return longer


def with_constant(x: Tensor, value: float) -> Tensor:
    """[x, value]: each vector with a constant as one more coordinate.  # (..., dim + 1)"""
    return torch.cat([x, x.new_full((*x.shape[:-1], 1), value)], -1)


def moduli(x: Tensor) -> Tensor:
    """|a + ib| of each coordinate, real parts in the first half of a vector.  # (..., dim / 2)

    The little under the root keeps its slope finite at zero.
    """
    a, b = x.chunk(2, -1)
    return (a.square() + b.square() + 1e-12).sqrt()
