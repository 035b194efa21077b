"""The exact softmax over all entities as one fused operation, near the speed of its matrix products.

For questions q, entities E and a bias b, the loss of a row with targets T of total weight w is

    w log Σ_e exp(q·e + b_e) - Σ_{t in T} (q·t + b_t).

Autograd would keep several float32 matrices of rows x entities. Here the scores are made tile by tile, turned into
exponentials while the tile is in cache, used at once for the gradient of q, and kept once, in a buffer that is used
again at every step, for the gradient of E.

The sum may be estimated from a sample S of the entities, drawn with replacement from probabilities π:

    Ẑ = Σ_{t in T} exp(s_t) + Σ_{e in S, e not in T} w_e exp(s_e),      w_e = times e was drawn / (|S| π_e),

whose mean over samples is the sum over all entities: a row's own answers are always there, each other entity counts
for those it stands for. log Ẑ and its gradient are off by a term of order 1/|S|.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor

TILE = 1024  # entities scored at a time: a tile of a thousand rows fits the cache


class Targets(NamedTuple):
    """The right answers of each row: pair i says that `columns[i]` answers `rows[i]`, `weights[i]` times."""

    rows: Tensor  # (pairs,) ascending
    columns: Tensor  # (pairs,)
    weights: Tensor  # (pairs,)


@dataclass
class Workspace:
    """Buffers for the exponentials, made once and used by every step."""

    dtype: torch.dtype = torch.float32
    tile: int = TILE
    _buffer: Tensor = field(default_factory=lambda: torch.empty(0))

    def tiles(self, rows: int, entities: int, device: torch.device) -> list[Tensor]:
        """One contiguous (rows, width) matrix per tile of entities."""
        if self._buffer.numel() < rows * entities or self._buffer.device != device:
            self._buffer = torch.empty(rows * entities, dtype=self.dtype, device=device)
        starts = range(0, entities, self.tile)
        widths = [min(self.tile, entities - start) for start in starts]
        parts = torch.split(self._buffer[: rows * entities], [rows * width for width in widths])
        return [part.view(rows, width) for part, width in zip(parts, widths, strict=True)]


def softmax_loss(
    queries: Tensor,
    table: Tensor,
    bias: Tensor | None,
    targets: Targets,
    workspace: Workspace,
    *,
    smoothing: float = 0.0,
    log_weights: Tensor | None = None,
) -> Tensor:
    """The summed loss of all rows. With smoothing, that share of each target is spread over all entities.

    With `log_weights`, the first rows of the table are the sample, drawn once each, with log w_e; the others are there
    as targets only, and a row's targets must be distinct.
    """
    bias = bias if bias is not None else torch.zeros(len(table), device=table.device)
    loss: Tensor = _SoftmaxLoss.apply(queries, table, bias, targets, workspace, smoothing, log_weights)  # type: ignore[no-untyped-call]
    return loss


class _SoftmaxLoss(torch.autograd.Function):
    """Value and all gradients in one go: whoever asks for the loss of a step wants its gradient too."""

    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        e: Tensor,
        b: Tensor,
        targets: Targets,
        workspace: Workspace,
        smoothing: float,
        log_weights: Tensor | None,
    ) -> Tensor:
        rows, columns, share = targets
        dim, drawn = q.shape[1], len(e) if log_weights is None else len(log_weights)
        pairs = _Pairs(rows, q[rows], e[columns], b[columns], _missing(log_weights, columns))
        weight = q.new_zeros(len(q)).index_add_(0, rows, share)  # (rows,)
        made = _exponentials(
            q, e[:drawn], b[:drawn] if log_weights is None else b[:drawn] + log_weights, pairs, workspace
        )
        short = made.shift[rows] - pairs.hit  # subtracted before it is added up: the loss is a small difference
        loss = (share * (made.total.log()[rows] + short)).sum()

        per_z = torch.where(weight > 0, weight / made.total, 0.0)  # a row without targets asks for nothing
        slope_q = torch.where(per_z.unsqueeze(1) > 0, made.slope[:, :dim] * per_z.unsqueeze(1), 0.0)
        weighted = made.q * per_z.unsqueeze(1).to(workspace.dtype)  # its column of ones brings the slope of the bias
        slopes = (
            q.new_empty(len(e), weighted.shape[1]) if log_weights is None else q.new_zeros(len(e), weighted.shape[1])
        )
        for start, tile in zip(range(0, drawn, workspace.tile), made.tiles, strict=True):
            _mm(tile.T, weighted, slopes[start : start + tile.shape[1]])
        slope_e, slope_b = slopes[:, :dim], slopes[:, dim]
        hits = share * (1 - smoothing)
        if made.lacking is not None:
            hits = hits - per_z[rows] * made.lacking
        slope_q.index_add_(0, rows, hits.unsqueeze(1) * pairs.e, alpha=-1)
        slope_e.index_add_(0, columns, hits.unsqueeze(1) * pairs.q, alpha=-1)
        slope_b.index_add_(0, columns, hits, alpha=-1)
        if smoothing:
            loss = loss + _smooth(q, e, b, weight, (share * pairs.hit).sum(), smoothing, (slope_q, slope_e, slope_b))
        ctx.save_for_backward(slope_q, slope_e, slope_b)
        return loss

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        plain = bool(grads[0] == 1)  # the loss itself is what is minimised: spare a copy of every slope
        return (*(slope if plain else grads[0] * slope for slope in ctx.saved_tensors), None, None, None, None)


class _Pairs:
    """The targets of all rows, with their scores."""

    def __init__(self, rows: Tensor, q: Tensor, e: Tensor, b: Tensor, missing: Tensor | None) -> None:
        self.rows, self.q, self.e, self.missing = rows, q, e, missing  # q, e: (pairs, dim)
        self.hit = (q * e).sum(-1) + b  # (pairs,)

    def lacking(self, shift: Tensor) -> Tensor | None:
        """What the sampled sum of a row lacks of each of its targets, negative where it has too much.  # (pairs,)"""
        return None if self.missing is None else self.missing * (self.hit - shift[self.rows]).exp()


def _missing(log_weights: Tensor | None, columns: Tensor) -> Tensor | None:
    """1 - w of each target: it should count once, and was drawn with weight w, or not at all."""
    if log_weights is None:
        return None
    weights = torch.cat([log_weights.exp(), log_weights.new_zeros(1)])
    return 1 - weights[columns.clamp(max=len(log_weights))]


def _shift(hit: Tensor, rows: Tensor, count: int) -> Tensor:
    """What is taken off a row's scores before exp: its best target's, so that no row's sum can vanish."""
    best = hit.new_full((count,), -torch.inf).scatter_reduce_(0, rows, hit, "amax")
    return torch.where(best.isinf(), 0.0, best)


class _Exponentials(NamedTuple):
    """exp(scores - shift) by tiles, and what was found on the way."""

    tiles: list[Tensor]
    q: Tensor  # (rows, dim + 2 or a little more) the rows with a column for the bias and one for the shift
    total: Tensor  # (rows,) the sums
    shift: Tensor  # (rows,) what was taken off the scores
    slope: Tensor  # (rows, dim + ...) the slope of q without targets, times the sum
    lacking: Tensor | None  # (pairs,) what the tiles lack of each target


def _exponentials(q: Tensor, e: Tensor, b: Tensor, pairs: _Pairs, workspace: Workspace) -> _Exponentials:
    tiles = workspace.tiles(len(q), len(e), q.device)
    shift = _shift(pairs.hit, pairs.rows, len(q)).to(workspace.dtype).float()
    long_e = _lengthened(e, b, torch.ones_like(b), workspace.dtype)
    long_q = _lengthened(q, torch.ones_like(shift), -shift, workspace.dtype)
    slope = _fill(tiles, long_q, long_e)
    if not bool(slope.isfinite().all()):  # an entity scores e^88 times a target: shift by the true maximum
        best = [torch.addmm(bb, q, ee.T).amax(1) for ee, bb in _parts(e, b, workspace)]
        shift = torch.stack([shift, *best]).amax(0).to(workspace.dtype).float()
        long_q = _lengthened(q, torch.ones_like(shift), -shift, workspace.dtype)
        slope = _fill(tiles, long_q, long_e)
    total = slope[:, q.shape[1] + 1]
    lacking = pairs.lacking(shift)
    if lacking is not None:
        total = total.index_add(0, pairs.rows, lacking)
    return _Exponentials(tiles, long_q, total, shift, slope, lacking)


def _lengthened(x: Tensor, first: Tensor, second: Tensor, dtype: torch.dtype) -> Tensor:
    """Two more columns, so that one product makes scores with bias and shift, another slopes with their sums; and as
    many zeros as make a multiple of eight, which products like better."""
    rows, dim = x.shape
    longer = x.new_zeros(rows, -(-(dim + 2) // 8) * 8, dtype=dtype)
    longer[:, :dim], longer[:, dim], longer[:, dim + 1] = x, first, second
    return longer


def _fill(tiles: list[Tensor], q: Tensor, e: Tensor) -> Tensor:
    """Put the exponentials into the tiles; their product with the entities.  # (rows, dim + ...)"""
    slope = torch.zeros(q.shape, device=q.device)
    start = 0
    for tile in tiles:
        entities = e[start : start + tile.shape[1]]
        torch.mm(q, entities.T, out=tile)
        tile.exp_()
        if slope.dtype == tile.dtype:
            slope.addmm_(tile, entities)
        else:
            slope += tile @ entities
        start += tile.shape[1]
    return slope


def _parts(e: Tensor, b: Tensor, workspace: Workspace) -> list[tuple[Tensor, Tensor]]:
    return list(zip(torch.split(e, workspace.tile), torch.split(b, workspace.tile), strict=True))


def _mm(a: Tensor, b: Tensor, out: Tensor) -> None:
    if out.dtype == a.dtype:
        torch.mm(a, b, out=out)
    else:
        out.copy_(a @ b)


def _smooth(
    q: Tensor, e: Tensor, b: Tensor, weight: Tensor, hits: Tensor, smoothing: float, slopes: tuple[Tensor, ...]
) -> Tensor:
    """Move a share of every target onto all entities alike: a term of rank one, so no matrix is needed."""
    n = len(e)
    mean_e, mean_b = e.mean(0), b.mean()
    slope_q, slope_e, slope_b = slopes
    slope_q.sub_(smoothing * weight.unsqueeze(1) * mean_e)
    slope_e.sub_(smoothing / n * (weight.unsqueeze(1) * q).sum(0))
    slope_b.sub_(smoothing / n * weight.sum())
    return smoothing * (hits - (weight * (q @ mean_e + mean_b)).sum())
