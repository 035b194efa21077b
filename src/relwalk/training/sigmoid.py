"""Binary cross-entropy over all entities as one fused operation, near the speed of its matrix products.

For queries q and keys k, one of each entity, and labels y between 0 and 1, the loss of a row and its slope are

    Σ_e log(1 + exp(s_e)) - y_e s_e,      ∂ / ∂s_e = σ(s_e) - y_e,      s_e = q·k_e.

Every entity has the label `spread`, and a row's targets have their weight more. Autograd would keep several matrices of
rows x entities. Here the scores are made tile by tile, and both gradients from each tile at once: a tile is all that is
held.

The sum may be estimated from a sample S of the entities (see `softmax`), each counting for the w_e that it stands for:
a row's own targets are always there, and the mean over samples is the loss, and the gradient, over all entities.

A row's own targets are struck out of its tiles, and come in from their own scores in full precision: the loss of one
that scores far above zero is a small difference of large numbers.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from relwalk.training.softmax import Own, Targets, Workspace, add_product

ROWS = 1024  # questions scored at a time: with a tile of as many entities, what a cache holds


def bce_loss(
    queries: Tensor,
    keys: Tensor,
    targets: Targets,
    workspace: Workspace,
    *,
    spread: float = 0.0,
    log_weights: Tensor | None = None,
) -> Tensor:
    """The summed loss of all rows: targets have the label `weight + spread`, all other entities `spread`.

    With `log_weights`, the first keys are the sample, drawn once each, with log w_e; the others are there as targets
    only.
    """
    loss: Tensor = _BceLoss.apply(queries, keys, targets, workspace, spread, log_weights)  # type: ignore[no-untyped-call]
    return loss


class _BceLoss(torch.autograd.Function):
    """Value and all gradients in one go: whoever asks for the loss of a step wants its gradient too."""

    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        k: Tensor,
        targets: Targets,
        workspace: Workspace,
        spread: float,
        log_weights: Tensor | None,
    ) -> Tensor:
        rows, columns, weights = targets
        times = k.new_ones(len(k)) if log_weights is None else _stood_for(log_weights, len(k))  # (keys,)
        drawn = len(k) if log_weights is None else len(log_weights)
        slope_q, slope_k, loss = torch.zeros_like(q), torch.zeros_like(k), q.new_zeros(())
        q_hit, k_hit = q[rows], k[columns]  # (pairs, width)
        hit = (q_hit * k_hit).sum(-1)  # (pairs,)
        short_k = k[:drawn].to(workspace.dtype)
        for start in range(0, len(q), ROWS):
            part = slice(start, start + ROWS)
            short_q = q[part].to(workspace.dtype)
            pairs, first = targets.in_rows(start, start + len(short_q)), 0
            own = Own(rows[pairs] - start, columns[pairs], hit[pairs])
            for tile_k, places in zip(torch.split(short_k, workspace.tile), own.places(drawn, workspace), strict=True):
                tile = slice(first, first + len(tile_k))
                scores = short_q @ tile_k.T  # (rows, width)
                scores.view(-1).index_fill_(0, places, -torch.inf)
                losses, slopes = F.softplus(scores), scores.sigmoid_()
                if log_weights is not None:
                    losses, slopes = losses * times[tile], slopes.mul_(times[tile])
                loss += losses.sum(dtype=loss.dtype)
                add_product(slope_q[part], slopes, tile_k)
                add_product(slope_k[tile], slopes.T, short_q)
                first = tile.stop
        label = weights + spread
        if spread:  # taken off every drawn entity alike, which is a product of sums, and given back to the targets
            total_q, total_k = q.sum(0), times @ k
            loss -= spread * (total_q @ total_k)
            slope_q -= spread * total_k
            slope_k -= spread * times.unsqueeze(1) * total_q
            label = label - spread * times[columns]
        loss += (F.softplus(-hit) + (1 - label) * hit).sum()  # log(1 + exp(s)) - y s
        slope = (hit.sigmoid() - label).unsqueeze(1)
        slope_q.index_add_(0, rows, slope * k_hit)
        slope_k.index_add_(0, columns, slope * q_hit)
        ctx.save_for_backward(slope_q, slope_k)
        return loss

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        return (*(grads[0] * slope for slope in ctx.saved_tensors), None, None, None, None)


def _stood_for(log_weights: Tensor, keys: int) -> Tensor:
    """How many entities each key of the sample stands for; none for those that are targets only.  # (keys,)"""
    return F.pad(log_weights.exp(), (0, keys - len(log_weights)))
