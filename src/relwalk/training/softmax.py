"""The exact softmax over all entities as one fused operation, near the speed of its matrix products.

For queries q and keys k, one of each entity, the loss of a row with targets T of total weight w is

    w log Σ_e exp(q·k_e) - Σ_{t in T} q·k_t.

Autograd would keep several float32 matrices of rows x entities. Here the scores are made tile by tile, turned into
exponentials while the tile is in cache, used at once for the gradient of q, and kept once, in a buffer that is used
again at every step, for the gradient of the keys. Rows are taken in blocks, so that the buffer stays within a limit.

The sum may be estimated from a sample S of the entities, drawn with replacement from probabilities π:

    Ẑ = Σ_{t in T} exp(s_t) + Σ_{e in S, e not in T} w_e exp(s_e),      w_e = times e was drawn / (|S| π_e),

whose mean over samples is the sum over all entities: a row's own answers are always there, each other entity counts
for those it stands for. log Ẑ and its gradient are off by a term of order 1/|S|.

A row's own targets are struck out of its tiles, and come in from their own float32 scores: the sum is one of terms
that are never negative, and holds the best target's e^0, so no rounding of a tile can make it vanish.

Several processes may have a part of the keys each, and all queries: each makes its own tiles, maxima and sums are taken
over all of them, and the loss and the slopes of the queries that each returns are parts that add up to the whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor

from relwalk.together import ALONE, Together
from relwalk.training.precision import add_product, multiply

TILE = 1 << 12  # bytes of a row's scores held at a time: a tile of a thousand rows fits the cache
STRETCH = 4  # tiles whose keys are made ready at a time
NUMBERS = 1 << 27  # exponentials held at a time: half a gigabyte in float32


class Targets(NamedTuple):
    """The right answers of each row: pair i says that `columns[i]` answers `rows[i]` with weight `weights[i]`."""

    rows: Tensor  # (pairs,) ascending
    columns: Tensor  # (pairs,) distinct within a row
    weights: Tensor  # (pairs,)

    def in_rows(self, start: int, stop: int) -> slice:
        """The pairs of some of the rows."""
        return slice(*torch.searchsorted(self.rows, self.rows.new_tensor([start, stop])).tolist())


@dataclass
class Workspace:
    """Buffers for the exponentials, made once and used by every step."""

    dtype: torch.dtype = torch.float32
    tile: int = 0  # entities scored at a time; 0: as many as TILE bytes hold
    numbers: int = NUMBERS
    _buffer: Tensor = field(default_factory=lambda: torch.empty(0))

    def __post_init__(self) -> None:
        self.tile = self.tile or TILE // self.dtype.itemsize

    def blocks(self, rows: int, entities: int) -> Iterator[slice]:
        """The rows in equal parts whose exponentials fit the buffer."""
        parts = -(-rows // max(1, self.numbers // max(entities, 1)))
        size = max(1, -(-rows // max(parts, 1)))
        return (slice(start, min(start + size, rows)) for start in range(0, rows, size))

    def widths(self, entities: int) -> list[int]:
        """How many entities each tile has."""
        return [min(self.tile, entities - start) for start in range(0, entities, self.tile)]

    def tiles(self, rows: int, entities: int, device: torch.device) -> list[Tensor]:
        """One contiguous (rows, width) matrix per tile of entities."""
        if self._buffer.numel() < rows * entities or self._buffer.device != device:
            self._buffer = torch.empty(rows * entities, dtype=self.dtype, device=device)
        widths = self.widths(entities)
        parts = torch.split(self._buffer[: rows * entities], [rows * width for width in widths])
        return [part.view(rows, width) for part, width in zip(parts, widths, strict=True)]


def softmax_loss(
    queries: Tensor,
    keys: Tensor | tuple[Tensor, ...],
    targets: Targets,
    workspace: Workspace,
    *,
    smoothing: float = 0.0,
    log_weights: Tensor | None = None,
    together: Together = ALONE,
    all_keys: int | None = None,
) -> Tensor:
    """The summed loss of all rows. With smoothing, that share of each target is spread over all keys.

    Keys may come in parts that stand side by side, so that no whole needs to be made of them. With `log_weights`, the
    first keys are the sample, drawn once each, with log w_e; the others are there as targets only. Several processes
    have `all_keys` keys together, each its own, with the targets that are among them.
    """
    parts = (keys,) if isinstance(keys, Tensor) else keys
    here = len(parts[0] if log_weights is None else log_weights)
    among = _Among(together, here if all_keys is None else all_keys)
    loss: Tensor = _SoftmaxLoss.apply(targets, workspace, smoothing, log_weights, among, queries, *parts)  # type: ignore[no-untyped-call]
    return loss


class _Among(NamedTuple):
    """The processes that have the keys, and over how many they sum together."""

    together: Together
    keys: int


class _SoftmaxLoss(torch.autograd.Function):
    """Value and all gradients in one go: whoever asks for the loss of a step wants its gradient too."""

    @staticmethod
    def forward(
        ctx: Any,
        targets: Targets,
        workspace: Workspace,
        smoothing: float,
        log_weights: Tensor | None,
        among: _Among,
        q: Tensor,
        *k: Tensor,
    ) -> Tensor:
        rows, columns, share = targets
        width, count = q.shape[1], len(k[0])
        drawn = count if log_weights is None else len(log_weights)
        q_hit, k_hit = q[rows], _beside(part[columns] for part in k)  # (pairs, width)
        hit = (q_hit * k_hit).sum(-1)  # (pairs,)
        weight = q.new_zeros(len(q)).index_add_(0, rows, share)  # (rows,)
        sample = _Sample(tuple(part[:drawn] for part in k), log_weights, workspace.tile, workspace.dtype)

        loss = q.new_zeros(())
        slope_q, hits = torch.empty_like(q), share * (1 - smoothing)
        covered = drawn == count and len(q) > 0  # every row of the slopes is written by a tile
        slopes = (q.new_empty if covered else q.new_zeros)(count, _longer(width))
        for part in workspace.blocks(len(q), among.keys):  # alike in each process
            pairs = targets.in_rows(part.start, part.stop)
            own = Own(rows[pairs] - part.start, columns[pairs], hit[pairs])
            made = _exponentials(q[part], sample, own, weight[part], workspace, among.together)
            short = made.shift[own.rows] - own.hit  # subtracted before it is added up: the loss is a small difference
            loss = loss + (share[pairs] * (made.total.log()[own.rows] + short)).sum()
            per_z = torch.where(made.weight > 0, made.weight / made.total, 0.0)  # no targets: nothing is asked
            slope_q[part] = torch.where(per_z.unsqueeze(1) > 0, made.slope[:, :width] * per_z.unsqueeze(1), 0.0)
            weighted = made.q * per_z.unsqueeze(1).to(made.q.dtype)
            for slope, tile in zip(torch.split(slopes[:drawn], workspace.tile), made.tiles, strict=True):
                if part.start == 0:
                    multiply(tile.T, weighted, out=slope)
                else:
                    add_product(slope, tile.T, weighted)
            hits[pairs] -= per_z[own.rows] * made.own
        slope_k = slopes[:, :width]
        slope_q.index_add_(0, rows, hits.unsqueeze(1) * k_hit, alpha=-1)
        slope_k.index_add_(0, columns, hits.unsqueeze(1) * q_hit, alpha=-1)
        if smoothing:
            weight = among.together.sum(weight)
            total_k = _beside(part.sum(0) for part in k)
            loss = loss + _smooth(q, total_k, weight, (share * hit).sum(), smoothing, (slope_q, slope_k), among.keys)
        ctx.save_for_backward(slope_q, *torch.split(slope_k, [part.shape[1] for part in k], 1))
        return loss

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        plain = bool(grads[0] == 1)  # the loss itself is what is minimised: spare a copy of every slope
        return (*[None] * 5, *(slope if plain else grads[0] * slope for slope in ctx.saved_tensors))


class _Sample:
    """The keys that are summed over, in parts that stand side by side, a tile of them at a time."""

    def __init__(self, k: tuple[Tensor, ...], log_weights: Tensor | None, tile: int, dtype: torch.dtype) -> None:
        self.k, self.log_weights, self.tile = k, log_weights, tile
        self.stretch = STRETCH * tile
        self._long = _lengthened(self._some(0, self.stretch), 1.0, 0.0, dtype)

    def __len__(self) -> int:
        return len(self.k[0])

    def _some(self, start: int, count: int) -> Tensor:
        return _beside(part[start : start + count] for part in self.k)  # (count or the rest, width)

    def long_tiles(self) -> Iterator[Tensor]:
        """Each tile of them, with a column of ones for the shift, and one for the weights of a sample.

        Good until the next is asked for, which may take its place: there is no second copy of all keys.
        """
        for start in range(0, len(self), self.stretch):
            count, width = min(self.stretch, len(self) - start), 0
            long = self._long[:count]
            for part in self.k:
                long[:, width : width + part.shape[1]] = part[start : start + count]
                width += part.shape[1]
            if self.log_weights is not None:
                long[:, width + 1] = self.log_weights[start : start + count]
            yield from torch.split(long, self.tile)  # (tile, width + 2 or a little more)

    def best(self, q: Tensor) -> Tensor:
        """The highest score of each row, in float32.  # (rows,)"""
        if not len(self):  # of several processes, one may have none
            return q.new_full((len(q),), -torch.inf)
        weights = torch.split(q.new_zeros(len(self)) if self.log_weights is None else self.log_weights, self.tile)
        tiles = (self._some(start, self.tile) for start in range(0, len(self), self.tile))
        return torch.stack([torch.addmm(w, q, k.T).amax(1) for k, w in zip(tiles, weights, strict=True)]).amax(0)


class Own(NamedTuple):
    """The targets of a block of rows, with their scores."""

    rows: Tensor  # (pairs,)
    columns: Tensor  # (pairs,)
    hit: Tensor  # (pairs,)

    def shift(self, count: int, together: Together = ALONE) -> Tensor:
        """What is taken off a row's scores before exp: its best target's."""
        best = self.hit.new_full((count,), -torch.inf).scatter_reduce_(0, self.rows, self.hit, "amax")
        best = together.largest(best)
        return torch.where(best.isinf(), 0.0, best)

    def places(self, entities: int, workspace: Workspace) -> Iterable[Tensor]:
        """Where those among the first so many entities stand in each flattened tile of them."""
        among = self.columns < entities
        columns, order = torch.sort(self.columns[among])
        tiles, widths = columns // workspace.tile, columns.new_tensor(workspace.widths(entities))
        places = self.rows[among][order] * widths[tiles] + columns % workspace.tile
        return torch.split(places, torch.bincount(tiles, minlength=len(widths)).tolist())


class _Exponentials(NamedTuple):
    """exp(scores - shift) by tiles, without the row's own targets, and what was found on the way."""

    tiles: list[Tensor]
    own: Tensor  # (pairs,) the same of the targets
    q: Tensor  # (rows, width + 2 or a little more) the rows with a column for the shift and one of ones
    total: Tensor  # (rows,) the sums, over all keys
    weight: Tensor  # (rows,) of all targets
    shift: Tensor  # (rows,) what was taken off the scores
    slope: Tensor  # (rows, width + ...) the slope of q without targets, times the sum


def _exponentials(
    q: Tensor, sample: _Sample, own: Own, weight: Tensor, workspace: Workspace, together: Together = ALONE
) -> _Exponentials:
    best = own.shift(len(q), together)
    made = _fill(q, sample, own, best.to(workspace.dtype).float(), workspace)
    total, weight, far = _sums(made, weight, together)
    if far:  # a key scores e^88 times a target: shift by the true maximum
        shift = torch.maximum(best, together.largest(sample.best(q)))
        # Scores so far apart are too coarse in bfloat16: a row's maximum would be missed by more than e^88 again.
        precise = _Sample(sample.k, sample.log_weights, workspace.tile, torch.float32)
        made = _fill(q, precise, own, shift, Workspace(tile=workspace.tile))
        total = together.sum(made.total)
    return made._replace(total=total, weight=weight)


def _sums(made: _Exponentials, weight: Tensor, together: Together) -> tuple[Tensor, Tensor, bool]:
    """Over all processes, in one message: the totals, the targets' weights, whether anything is not finite."""
    infinite = not bool(made.slope.isfinite().all())
    if together is ALONE:
        return made.total, weight, infinite
    sums = together.sum(torch.cat([made.total, weight, weight.new_tensor([float(infinite)])]))
    total, weight, far = torch.split(sums, [len(weight), len(weight), 1])
    return total, weight, bool(far > 0)


def _fill(q: Tensor, sample: _Sample, own: Own, shift: Tensor, workspace: Workspace) -> _Exponentials:
    """Score, exponentiate, strike out the targets, and multiply with the keys, a tile at a time."""
    tiles = workspace.tiles(len(q), len(sample), q.device)
    long_q = _lengthened(q, -shift, 1.0, workspace.dtype)
    slope = torch.zeros(long_q.shape, device=q.device)
    for keys, tile, targets in zip(sample.long_tiles(), tiles, own.places(len(sample), workspace), strict=True):
        multiply(long_q, keys.T, out=tile)
        tile.exp_().view(-1).index_fill_(0, targets, 0.0)
        add_product(slope, tile, keys)
    exponentials = (own.hit - shift[own.rows]).exp()
    total = slope[:, q.shape[1]].index_add(0, own.rows, exponentials)  # a column of ones adds up the tiles
    return _Exponentials(tiles, exponentials, long_q, total, total, shift, slope)


def _beside(parts: Iterable[Tensor]) -> Tensor:
    """Parts of the same rows as one, which a part alone is already."""
    first, *others = parts
    return torch.cat([first, *others], -1) if others else first


def _longer(width: int) -> int:
    return -(-(width + 2) // 8) * 8


def _lengthened(x: Tensor, first: Tensor | float, second: Tensor | float, dtype: torch.dtype) -> Tensor:
    """Two more columns, so that one product makes scores with shift and weights, another slopes with their sums; and
    as many zeros as make a multiple of eight, which products like better."""
    rows, width = x.shape
    longer = x.new_zeros(rows, _longer(width), dtype=dtype)
    longer[:, :width], longer[:, width], longer[:, width + 1] = x, first, second
    return longer


def _smooth(
    q: Tensor, total_k: Tensor, weight: Tensor, hits: Tensor, smoothing: float, slopes: tuple[Tensor, Tensor], keys: int
) -> Tensor:
    """Move a share of every target onto all keys alike: a term of rank one, so no matrix is needed."""
    mean_k = total_k / keys  # of those here, their part of it
    slope_q, slope_k = slopes
    slope_q.sub_(smoothing * weight.unsqueeze(1) * mean_k)
    slope_k.sub_(smoothing / keys * (weight.unsqueeze(1) * q).sum(0))
    return smoothing * (hits - (weight * (q @ mean_k)).sum())
