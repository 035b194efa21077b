"""What is read from the scores of all entities for a question: features of candidates, and its own temperature.

`w` are scores times β, less the greatest of the question: at most 0, and 0 is the first answer.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from relwalk.exponentials import exp_
from relwalk.graph.lists import Lists

Floats = NDArray[np.float64]
FEATURES = (
    "log share among the new answers",
    "height above the mean of all entities",
    "height above the mean of the known answers; 0 without any",
    "log(1 + known answers)",
    "spread of the scores of all entities",
)
RISING = 3  # the first features grow with the score, and their slopes are not negative: so does the confidence
NOTHING = -1e9  # in place of -inf, where a difference is taken
OCTAVES, NEAR, STEPS = 4.0, 0.002, 16  # γ lies between 2^-4 and 2^4, and is found to so much of an octave


def features(
    scores: Tensor, betas: Floats, known: Lists, columns: NDArray[np.integer], times: Tensor | None = None
) -> Floats:
    """The `FEATURES` of candidates, from the scores of all entities; -inf for one that has no score.

    `times` says of each score how many entities it stands for, if not for one.  # (questions, columns, features)
    """
    w = _times(scores - scores.amax(1, keepdim=True), betas)  # (questions, entities)
    row, place = _index(known.row_of_each_value(), w), _index(known.values, w)
    of_known = _array(w[row, place])
    own = _array(w.gather(1, _index(columns, w)))
    absent = w.isneginf()
    entities = (w.shape[1] if times is None else times.sum(1)) - _sum(absent if times is None else absent.to(w), times)
    filled, count = w.masked_fill(absent, 0.0), entities.clamp(min=1)
    mean = _sum(filled, times) / count
    spread = (_sum(filled.square_(), times) / count - mean.square()).clamp_(min=0).sqrt()
    w[row, place] = -torch.inf
    found = np.empty((*columns.shape, len(FEATURES)))
    found[..., 0] = np.minimum(own - _log_sum(w, times)[:, None], 0.0)
    found[..., 1] = own - _array(mean)[:, None]
    found[..., 2] = (known.lengths > 0)[:, None] * (np.maximum(own, NOTHING) - _means(known, of_known)[:, None])
    found[..., 3] = np.log1p(known.lengths)[:, None]
    found[..., 4] = _array(spread)[:, None]
    found[np.isneginf(own)] = -np.inf
    return found


def sharpened(
    scores: Tensor, betas: Floats, known: Lists, log_odds: Callable[[Floats], Floats], times: Tensor | None = None
) -> Floats:
    """β at which the first new answer has the share that `log_odds` says for its share at `betas`.  # (questions,)

    As near to it as γ = β / `betas` may go. A question without new answers keeps its β.
    """
    new = scores.clone()
    new[_index(known.row_of_each_value(), new), _index(known.values, new)] = -torch.inf
    top = new.amax(1, keepdim=True)
    w = _times(new.sub_(top.clamp(min=NOTHING)).clamp_(min=NOTHING), betas)  # (questions, entities), at most 0
    share = np.exp(-_log_sum(w, times))
    wanted = np.logaddexp(0.0, -log_odds(share))  # -log of the share
    return np.where(np.isneginf(_array(top[:, 0])), betas, betas * _sharpening(w, wanted, times))


def _sharpening(w: Tensor, wanted: Floats, times: Tensor | None) -> Floats:
    """γ at which log Σ exp(γ w) of each row is as wanted, or as near as it comes.  # (rows,)

    The sum falls with γ: by Newton's steps, and by halving where one leaves the bounds that are known by then. A row
    that has come near enough is not looked at again.
    """
    found = np.zeros(len(w))  # log2 γ
    low, high = (np.full(len(w), sign * OCTAVES) for sign in (-1, 1))
    place, rows = found.copy(), np.arange(len(w))
    for _ in range(STEPS):
        e = exp_(w * _column(2**place, w))
        e = e if times is None else e.mul_(times)
        total = _array(e.sum(1))
        slope = _array(e.mul_(w).sum(1)) * 2**place * np.log(2.0)  # of the sum
        too_flat = np.log(total) - wanted
        low, high = np.where(too_flat > 0, place, low), np.where(too_flat > 0, high, place)
        newton = place - too_flat * total / np.minimum(slope, -1e-30)
        before, place = place, _next(place, newton, low, high)
        found[rows] = place
        far = np.abs(place - before) >= NEAR
        if not far.any():
            break
        if 2 * far.sum() <= len(far):  # worth a copy of the rest
            some = _index(np.flatnonzero(far), w)
            w, times = w[some], times[some] if times is not None else None
            place, low, high, wanted = (x[far] for x in (place, low, high, wanted))
            rows = rows[far]
    return np.asarray(2**found)


def _next(place: Floats, newton: Floats, low: Floats, high: Floats) -> Floats:
    """Newton's step, or the half of what lies between the bounds; first the end of all, where the step leads beyond."""
    within = (low < newton) & (newton < high)
    end = np.where(newton >= high, OCTAVES, -OCTAVES)
    untried = (np.where(newton >= high, high, low) == end) & (place != end)
    return np.where(within, newton, np.where(untried, end, (low + high) / 2))


def _times(w: Tensor, factors: Floats) -> Tensor:
    """Each row times its factor, in place."""
    return w.mul_(_column(factors, w))


def _column(factors: Floats, like: Tensor) -> Tensor:
    """A factor for each row."""
    return torch.from_numpy(factors).to(like).unsqueeze(1)


def _sum(x: Tensor, times: Tensor | None) -> Tensor:
    """Of each row, each number as often as it stands for one.  # (rows,)"""
    return x.sum(1) if times is None else (x * times).sum(1)


def _log_sum(w: Tensor, times: Tensor | None = None) -> Floats:
    """log Σ exp of each row; far below any score where nothing is left.  # (rows,)"""
    top = w.amax(1, keepdim=True).clamp(min=NOTHING)
    total = _array(_sum(exp_(w - top), times))
    return np.asarray(_array(top[:, 0]) + np.log(np.maximum(total, 1e-30)))


def _means(lists: Lists, values: Floats) -> Floats:
    """The mean of the finite values of each list; 0 without any.  # (lists,)"""
    there = np.isfinite(values)
    row = lists.row_of_each_value()[there]
    counts = np.bincount(row, minlength=len(lists))
    return np.asarray(np.bincount(row, values[there], minlength=len(lists)) / np.maximum(counts, 1))


def _index(array: NDArray[np.integer], like: Tensor) -> Tensor:
    return torch.from_numpy(array.astype(np.int64)).to(like.device)


def _array(tensor: Tensor) -> Floats:
    return tensor.double().cpu().numpy()
