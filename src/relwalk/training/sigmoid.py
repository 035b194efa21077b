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

from relwalk.training.precision import add_product, multiply
from relwalk.training.softmax import Own, Targets, Workspace

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
        drawn = len(k) if log_weights is None else len(log_weights)
        times = k.new_ones(drawn) if log_weights is None else log_weights.exp()  # that each drawn entity counts
        slope_q, slope_k, loss = torch.zeros_like(q), torch.zeros_like(k), q.new_zeros(())
        q_hit, k_hit = q[rows], k[columns]  # (pairs, width)
        hit = (q_hit * k_hit).sum(-1)  # (pairs,)
        sample = k[:drawn].to(workspace.dtype)
        for start in range(0, len(q), ROWS):
            part = slice(start, min(start + ROWS, len(q)))
            pairs = targets.in_rows(part.start, part.stop)
            own = Own(rows[pairs] - start, columns[pairs], hit[pairs])
            weighted = None if log_weights is None else times
            loss += _add_tiles(q[part].to(workspace.dtype), sample, own, weighted, workspace, slope_q[part], slope_k)
        label = weights + spread
        if spread:  # taken off every drawn entity alike, which is a product of sums, and given back to the targets
            total_q, total_k = q.sum(0), times @ k[:drawn]
            loss -= spread * (total_q @ total_k)
            slope_q -= spread * total_k
            slope_k[:drawn] -= spread * times.unsqueeze(1) * total_q
            label = label - spread * F.pad(times, (0, len(k) - drawn))[columns]
        loss += (F.softplus(-hit) + (1 - label) * hit).sum()  # log(1 + exp(s)) - y s
        slope = (hit.sigmoid() - label).unsqueeze(1)
        slope_q.index_add_(0, rows, slope * k_hit)
        slope_k.index_add_(0, columns, slope * q_hit)
        ctx.save_for_backward(slope_q, slope_k)
        return loss

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        return (*(grads[0] * slope for slope in ctx.saved_tensors), None, None, None, None)


def _add_tiles(
    q: Tensor, k: Tensor, own: Own, times: Tensor | None, workspace: Workspace, slope_q: Tensor, slope_k: Tensor
) -> Tensor:
    """The loss of a block of rows without their targets, labels aside; its slopes are added to those given."""
    loss, start = slope_q.new_zeros(()), 0
    for keys, targets in zip(torch.split(k, workspace.tile), own.places(len(k), workspace), strict=True):
        tile = slice(start, start + len(keys))
        scores = q.new_empty(len(q), len(keys))  # (rows, width)
        multiply(q, keys.T, out=scores)
        scores.view(-1).index_fill_(0, targets, -torch.inf)
        losses, slopes = F.softplus(scores), scores.sigmoid_()
        if times is not None:
            losses, slopes = losses.mul_(times[tile]), slopes.mul_(times[tile])
        loss += losses.sum(dtype=loss.dtype)
        add_product(slope_q, slopes, keys)
        add_product(slope_k[tile], slopes.T, q)
        start = tile.stop
    return loss
