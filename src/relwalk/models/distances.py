"""Distances that are no product, in bounded memory both ways: L1, and sums of lengths of blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

TILE = 1 << 18  # numbers of a temporary: 1 MB, which the cache of a core holds
SHORTEST = 1e-18  # distance that a slope is divided by: below, squares are rounded to zero
COLUMNS = 1 << 10  # candidates of a tile: enough for the vector units, and rows enough to sum over


class _BlockDistances(torch.autograd.Function):
    """Autograd would keep batch x candidates x dim numbers; here a tile at a time is made, and made again backward."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, place: Tensor | None) -> Tensor:
        x, y = (vectors.permute(1, 2, 0).contiguous() for vectors in (x, y))  # (width, blocks, rows)
        ctx.save_for_backward(x, y, place)
        out = x.new_empty(x.shape[2], y.shape[2] if place is None else place.shape[1])
        for tile in _tiles(out.shape, x.shape[1]):
            torch.sum(_lengths(x, y, place, tile), 0, out=out[tile])
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None]:
        x, y, place = ctx.saved_tensors
        to_x, to_y = torch.zeros_like(x), torch.zeros_like(y)
        for tile in _tiles(grads[0].shape, x.shape[1]):
            rows, columns = tile
            lengths = _lengths(x, y, place, tile)
            weights = grads[0][tile] / lengths.clamp_(min=SHORTEST)  # at a distance of zero, times a difference of zero
            for i, difference in enumerate(_differences(x, y, place, tile)):
                slope = difference.mul_(weights)  # (blocks, rows, columns)
                to_x[i, :, rows] += slope.sum(2)
                if place is None:
                    to_y[i, :, columns] -= slope.sum(1)
                else:
                    to_y[i].index_add_(1, place[tile].flatten(), slope.flatten(1), alpha=-1)
        return to_x.permute(2, 0, 1), to_y.permute(2, 0, 1), None


def _tiles(shape: torch.Size, blocks: int) -> Iterator[tuple[slice, slice]]:
    """Rows and columns, of which the distances of all blocks are `TILE` numbers at most, as far as one pair allows."""
    rows, columns = shape
    width = max(1, min(columns, COLUMNS, TILE // blocks))
    height = max(1, TILE // (width * blocks))
    for top in range(0, rows, height):
        for left in range(0, columns, width):
            yield slice(top, min(top + height, rows)), slice(left, min(left + width, columns))


def _differences(x: Tensor, y: Tensor, place: Tensor | None, tile: tuple[slice, slice]) -> Iterator[Tensor]:
    """x - y, one coordinate of all blocks after the other.  # (blocks, rows, columns)"""
    rows, columns = tile
    for mine, theirs in zip(x, y, strict=True):
        if place is None:
            yield mine[:, rows].unsqueeze(2) - theirs[:, columns].unsqueeze(1)
        else:
            own = theirs.index_select(1, place[tile].flatten())  # three times as fast as theirs[:, place[tile]]
            yield mine[:, rows].unsqueeze(2) - own.view(len(own), *place[tile].shape)


def _lengths(x: Tensor, y: Tensor, place: Tensor | None, tile: tuple[slice, slice]) -> Tensor:
    """||x_b - y_b|| of every block b.  # (blocks, rows, columns)"""
    rows, columns = tile
    squares = x.new_zeros(x.shape[1], rows.stop - rows.start, columns.stop - columns.start)
    for difference in _differences(x, y, place, tile):
        squares.addcmul_(difference, difference)
    return squares.sqrt_()


def block_distances(x: Tensor, y: Tensor, place: Tensor | None = None) -> Tensor:
    """Σ_b ||x_b - y_b|| of every row of x (batch, width, blocks) and y (n, width, blocks).  # (batch, n)

    Column b of a row is its block of `width` numbers. With `place` (batch, m), row i is held against its own
    y[place[i]]: (batch, m). The slope at a distance of zero is zero. Holds a few tiles of `TILE` numbers at a time
    beside the result.
    """
    distances: Tensor = _BlockDistances.apply(x, y, place)  # type: ignore[no-untyped-call]
    return distances


def distinct(candidates: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
    """The entities whose vectors candidates need, and the place of every candidate among them: None for its column."""
    if candidates is None or candidates.dim() == 1:
        return candidates, None
    entities, place = torch.unique(candidates, return_inverse=True)
    return entities, place


def l1_distances(goals: Tensor, points: Tensor) -> Tensor:
    """Σ_i |goal_i - point_i| of each goal (batch, dim) to every point.  # (batch, n)

    `points` are (n, dim), the same for every goal, or (batch, n, dim), its own for each. No difference of two vectors
    is kept, neither here nor for the gradient: `cdist` makes them again on the way back.
    """
    if points.dim() == 2:
        return torch.cdist(goals, points, p=1.0)
    return torch.cdist(goals.unsqueeze(1), points, p=1.0).squeeze(1)
