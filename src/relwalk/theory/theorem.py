"""The theorem against what it approximates.

    truth     log p(h, t | R) = log E_(c, c') [ exp(hᵀR1 c) / Z_c · exp(tᵀR2 c') / Z_c' ],   |c' - c| = step
    theorem   s / 2d - log Z1 - log Z2,      s = |v|²,  v = R1ᵀh + R2ᵀt,   Z = E_c Z_c, exactly (the paper: Z1 = Z2)
    exact     log B(|v|) - log Z1 - log Z2,  B = E_c exp(v·c), a Bessel function: only Z_c ≈ Z and c' ≈ c are assumed

The truth is a Monte Carlo mean with Z_c computed over all entities, never assumed. Drawn from uniform c ("plain") it
fails for large |v|: the mass of exp(v·c) lies where no uniform c falls. Drawn from the density tilted by exp(v·c)
("tilted"), the same expectation is B(|v|) · E_tilted[ exp(tᵀR2 (c' - c)) / (Z_c Z_c') ], good for any norm. `plain`
is kept beside it, with its effective sample size, as the check that owes nothing to Bessel. Where c is drawn towards a
relation's bias b (an extension of RelWalk), v = R1ᵀh + R2ᵀt + b, s = |v|² - |b|², and means over c are those of that c.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from relwalk.display import Shown
from relwalk.errors import GraphError
from relwalk.evaluation.estimate import Absent, Floats, number, own_generator
from relwalk.graph.answers import SIDES
from relwalk.graph.graph import Graph
from relwalk.models.base import Scorer
from relwalk.models.relwalk import RelWalk
from relwalk.progress import Count, OnProgress, silent
from relwalk.theory.partition import log_mean_partition, log_partition
from relwalk.theory.sphere import displaced, drawn_directions, log_integral, tilted_directions

NO_THEOREM = "the theorem is about RelWalk's p(h, t | R); {} has none."
TOLERANCE = 0.1  # in log p: a tenth of a nat, ten per cent of a probability


@dataclass(frozen=True)
class Fit:
    """How an approximation follows the truth: truth = slope · approximation + constant."""

    slope: float | None  # None when the approximation does not vary
    r2: float | None
    bias: float
    rmse: float
    largest_error: float

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        line = "no slope" if self.slope is None or self.r2 is None else f"slope {self.slope:.3f}, R² {self.r2:.3f}"
        return f"{line}, bias {self.bias:+.3f}, largest error {self.largest_error:.3f}"


def fit(approximation: Floats, truth: Floats) -> Fit:
    """Least squares of the truth on an approximation, and its plain errors."""
    error = truth - approximation
    x, y = approximation - approximation.mean(), truth - truth.mean()
    varies = bool(len(x) > 2 and x @ x > 1e-18 and y @ y > 1e-18)
    return Fit(
        slope=float(x @ y / (x @ x)) if varies else None,
        r2=float((x @ y) ** 2 / ((x @ x) * (y @ y))) if varies else None,
        bias=float(error.mean()),
        rmse=float(np.sqrt((error**2).mean())),
        largest_error=float(np.abs(error).max()),
    )


@dataclass(frozen=True, eq=False)
class LogProbs:
    """log p(h, t | R) of triples of one relation: truth (tilted and plain, with standard errors), and the two forms."""

    truth: Floats
    truth_error: Floats
    plain: Floats
    plain_error: Floats
    plain_sample: Floats  # effective sample size: below 30 the plain mean means nothing
    theorem: Floats
    exact: Floats
    squared: Floats  # |v|² / d


@torch.no_grad()
def log_probs(
    entity: Tensor,
    R1: Tensor,
    R2: Tensor,
    heads: Tensor,
    tails: Tensor,
    *,
    bias: Tensor | None = None,
    blocks: int = 1,
    step: float,
    directions: int,
    draws: int,
    generator: torch.Generator,
) -> LogProbs:
    """All four figures for pairs (heads, tails) of a relation with matrices R1, R2.

    `directions` uniform c give the plain mean; `draws` tilted c for each pair give the truth. With a `bias` c is drawn
    towards it: every mean over c is one of exp(bias·c) times as much, over the mean of that.
    """
    dim = entity.shape[1]
    own = torch.zeros(1, dim) if bias is None else bias.unsqueeze(0)
    h, t = entity[heads] @ R1, entity[tails] @ R2  # (pairs, dim)  R1ᵀh, R2ᵀt
    c = drawn_directions(bias, directions, dim, generator, blocks)
    moved = displaced(c, step, generator, blocks)
    z1, z2 = log_partition(entity, c @ R1.T), log_partition(entity, moved @ R2.T)  # (directions,)
    of_bias = float(log_integral(own, blocks)[0])
    both = (log_mean_partition(entity @ R + own, blocks) - of_bias for R in (R1, R2))
    constant = sum(both)  # log Z1 + log Z2
    plain, plain_error, sample = _log_mean((h @ c.T + t @ moved.T).double() - z1 - z2)

    v = h + t + own
    integral = log_integral(v, blocks) - of_bias
    tilted = tilted_directions(v, draws, generator, blocks)  # (pairs, draws, dim)
    after = displaced(tilted, step, generator, blocks)
    flat = (len(v), draws)
    y1 = log_partition(entity, tilted.flatten(0, 1) @ R1.T).view(flat)
    y2 = log_partition(entity, after.flatten(0, 1) @ R2.T).view(flat)
    shift = ((after - tilted) @ t.unsqueeze(-1)).squeeze(-1).double()  # tᵀR2 (c' - c)
    mean, error, _ = _log_mean(shift - y1 - y2)
    squared = v.double().square().sum(-1).numpy()
    return LogProbs(
        truth=integral + mean,
        truth_error=error,
        plain=plain,
        plain_error=plain_error,
        plain_sample=sample,
        theorem=(squared - float(own.double().square().sum())) / (2 * dim) - constant,
        exact=integral - constant,
        squared=squared / dim,
    )


def _log_mean(logs: Tensor) -> tuple[Floats, Floats, Floats]:
    """log of the mean of exp over each row, its standard error (delta method), its effective sample size."""
    n = logs.shape[1]
    top = logs.amax(1, keepdim=True)
    w = (logs - top).exp()
    mean = w.mean(1)
    error = w.std(1, correction=0) / mean / math.sqrt(n)
    size = w.sum(1).square() / w.square().sum(1)
    return (top[:, 0] + mean.log()).numpy(), error.numpy(), size.numpy()


@dataclass(frozen=True)
class RelationTheorem:
    """The largest errors of both forms in log p over one relation's triples, true and random, and the mean error."""

    relation: str
    triples: int
    theorem_error: float
    exact_error: float
    bias: float  # truth - theorem


@dataclass(frozen=True, repr=False)
class TheoremCheck(Shown):
    """The theorem on a trained model: on true triples, on random ones, and on both."""

    theorem: dict[str, Fit]  # "true", "random", "both"
    exact: dict[str, Fit]
    triples: int  # of each kind
    relations: tuple[RelationTheorem, ...]
    step: float
    squared: dict[str, float]  # mean |v|² / d of each kind: the theorem wants it far below √d
    truth_error: float  # the largest standard error of the truth
    plain_sample: float  # median effective sample size of uniform directions
    plain_gap: float | None  # largest |plain - truth| in standard errors, where uniform directions suffice
    holds: bool
    verdict: str

    def as_dict(self) -> dict[str, Any]:
        return {"applies": True} | asdict(self)

    def __str__(self) -> str:
        many = f"{self.triples} true and {self.triples} random triples of {len(self.relations)} relations"
        lines = [f"log p(h, t | R) of {many}"]
        for name in ("theorem", "exact"):
            form = "s/2d - 2 log Z" if name == "theorem" else "Bessel - 2 log Z"
            lines += [f"  {form:18} {kind:7} {found}" for kind, found in getattr(self, name).items()]
        return "\n".join([*lines, self.verdict])


@torch.no_grad()
def check_theorem(
    model: Scorer,
    graph: Graph,
    *,
    triples: int = 200,
    relations: int = 24,
    directions: int = 1000,
    draws: int = 32,
    step: float = 0.01,
    seed: int = 0,
    progress: OnProgress = silent,
) -> TheoremCheck | Absent:
    """Sample true triples and as many with random entities, and compare the theorem with the truth."""
    if not isinstance(model, RelWalk):
        return Absent(NO_THEOREM.format(model.title))
    if triples < 1 or directions < 2 or draws < 2:
        raise GraphError(f"{triples} triples, {directions} directions, {draws} draws: expected at least 1, 2, 2")
    model = model.unfold()
    rng = np.random.default_rng(seed)
    present, counts = np.unique(graph.triples[:, 1], return_counts=True)
    chosen = present[np.argsort(-counts, kind="stable")[:relations]]
    pool = graph.triples[np.isin(graph.triples[:, 1], chosen)]
    # As many of each relation as can be, so that a rare one is seen too.
    order = rng.permutation(len(pool))
    turn = np.argsort(_places_within(pool[order, 1]), kind="stable")[:triples]
    true = pool[order[turn]].astype(np.int64)
    generator = own_generator(seed, "theorem")
    entity = model.vectors().detach().cpu()
    parts: dict[str, LogProbs] = {}
    kinds: list[bool] = []
    count = Count(progress, len(true), "theorem")
    for r in np.unique(true[:, 1]).tolist():
        own = torch.from_numpy(true[true[:, 1] == r])
        strange = torch.randint(0, len(entity), (len(own), 2), generator=generator)
        heads, tails = torch.cat([own[:, 0], strange[:, 0]]), torch.cat([own[:, 2], strange[:, 1]])
        parts[graph.relations.names[r]] = log_probs(
            *(entity, *(model.dense(side, r).detach().cpu() for side in SIDES), heads, tails),
            bias=model.bias_of(r),
            blocks=model.blocks,
            step=step,
            directions=directions,
            draws=draws,
            generator=generator,
        )
        kinds += [True] * len(own) + [False] * len(own)
        count.add(len(own))
    return _summary(parts, np.array(kinds), step)


def _places_within(relation: Any) -> Any:
    """The place of each row among those of its relation."""
    order = np.argsort(relation, kind="stable")
    starts = np.flatnonzero(np.diff(relation[order], prepend=-1))
    places = np.arange(len(relation)) - np.repeat(starts, np.diff(np.append(starts, len(relation))))
    result = np.empty(len(relation), np.int64)
    result[order] = places
    return result


def _by_relation(relation: str, found: LogProbs) -> RelationTheorem:
    theorem, exact = (fit(form, found.truth) for form in (found.theorem, found.exact))
    return RelationTheorem(relation, len(found.truth), theorem.largest_error, exact.largest_error, theorem.bias)


def _summary(parts: dict[str, LogProbs], true: Any, step: float) -> TheoremCheck:
    columns = {
        name: np.concatenate([getattr(part, name) for part in parts.values()]) for name in LogProbs.__annotations__
    }
    masks = {"true": true, "random": ~true, "both": np.ones(len(true), bool)}
    theorem, exact = (
        {kind: fit(columns[form][mask], columns["truth"][mask]) for kind, mask in masks.items()}
        for form in ("theorem", "exact")
    )
    trusted = columns["plain_sample"] >= 30
    error = (
        np.hypot(columns["plain_error"], columns["truth_error"]) + 1e-6
    )  # of float32: two equal vectors have no other
    gap = np.abs(columns["plain"] - columns["truth"]) / error
    squared = {kind: float(columns["squared"][mask].mean()) for kind, mask in masks.items()}
    holds = theorem["both"].largest_error - 3 * float(columns["truth_error"].max()) <= TOLERANCE
    return TheoremCheck(
        theorem=theorem,
        exact=exact,
        triples=int(true.sum()),
        relations=tuple(_by_relation(name, part) for name, part in parts.items()),
        step=step,
        squared=squared,
        truth_error=float(columns["truth_error"].max()),
        plain_sample=float(np.median(columns["plain_sample"])),
        plain_gap=number(float(gap[trusted].max())) if trusted.any() else None,
        holds=holds,
        verdict=_verdict(theorem["both"], exact["both"], squared, holds),
    )


def _verdict(theorem: Fit, exact: Fit, squared: dict[str, float], holds: bool) -> str:
    size = f"|v|²/d is {squared['true']:.2g} on true and {squared['random']:.2g} on random triples"
    if holds:
        return f"The theorem holds here to {theorem.largest_error:.2g} in log p ({size})."
    cause = "s/2d for the spherical integral" if exact.largest_error < theorem.largest_error / 2 else "Z_c = Z"
    return (
        f"The theorem does not hold here to {TOLERANCE}: it errs by up to {theorem.largest_error:.2g} in log p, "
        f"{exact.largest_error:.2g} with the exact integral; most of it comes from taking {cause} ({size})."
    )
