"""Where the theorem stops holding: synthetic RelWalks with one thing changed at a time.

Entities are s · N(0, I), so |h| is about s √d, and R1, R2 random rotations: the lemma's prior exactly. Expected:

    norm   the integral's next term is -|v|⁴ / 4d²(d+2), about -s⁴/d for random pairs: s = 1 costs 1/d
    n      Z_c varies by √((e^(s²) - 1) / n)
    step   c' = c + step moves tᵀR2 c by up to s √d · step

Of a trained model the base is its own dimension, and `here` says where in the range it stands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from relwalk.display import Shown
from relwalk.evaluation.estimate import Absent, own_generator
from relwalk.models.base import Scorer
from relwalk.models.orthogonal import random_rotations
from relwalk.models.relwalk import RelWalk
from relwalk.progress import Count, OnProgress, silent
from relwalk.theory.theorem import NO_THEOREM, TOLERANCE, Fit, fit, log_probs

BASE: dict[str, float] = {"dim": 100, "entities": 2000, "norm": 1.0, "step": 0.01}  # |h| = √d: the lemma's prior
GRID: dict[str, tuple[float, ...]] = {
    "dim": (8, 25, 50, 100, 200, 500),
    "entities": (50, 200, 1000, 5000),
    "norm": (0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0),
    "step": (0.0, 0.01, 0.05, 0.1, 0.25, 0.5),
}


@dataclass(frozen=True)
class SweepRow:
    """One synthetic model: what was changed, and how the two forms did."""

    changed: str
    value: float
    theorem: Fit
    exact: Fit
    truth_error: float  # the largest standard error of the Monte Carlo truth

    @property
    def holds(self) -> bool:
        return self.theorem.largest_error - 3 * self.truth_error <= TOLERANCE

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"holds": self.holds}


@dataclass(frozen=True, repr=False)
class Sweep(Shown):
    """All rows, and the first value of each quantity at which the theorem errs by more than the tolerance."""

    rows: tuple[SweepRow, ...]
    base: dict[str, float]
    here: dict[str, float] | None = None  # where a trained model stands
    tolerance: float = TOLERANCE

    def rows_of(self, name: str) -> list[SweepRow]:
        return [row for row in self.rows if row.changed == name]

    @property
    def breaks_at(self) -> dict[str, float | None]:
        """Going up in norm and step, down in dim and entities; None where it never breaks."""
        found: dict[str, float | None] = {}
        for name in dict.fromkeys(row.changed for row in self.rows):
            bad = [row.value for row in self.rows_of(name) if not row.holds]
            found[name] = (min(bad) if name in ("norm", "step") else max(bad)) if bad else None
        return found

    def as_dict(self) -> dict[str, Any]:
        rest = {"base": self.base, "here": self.here, "tolerance": self.tolerance, "breaks_at": self.breaks_at}
        return {"applies": True} | rest | {"rows": [row.as_dict() for row in self.rows]}

    def __str__(self) -> str:
        head = f"{'changed':10}{'to':>8}{'slope':>8}{'R²':>7}{'error':>9}{'Bessel':>9}{'± MC':>9}"
        rows = [
            f"{row.changed:10}{row.value:>8g}{_cell(row.theorem.slope)}{_cell(row.theorem.r2, 7)}"
            f"{row.theorem.largest_error:>9.3f}{row.exact.largest_error:>9.3f}{row.truth_error:>9.4f}"
            for row in self.rows
        ]
        return "\n".join([head, *rows, self.verdict])

    @property
    def verdict(self) -> str:
        base = ", ".join(f"{name} {value:g}" for name, value in self.base.items())
        ends = [f"{name} {value:g}" for name, value in self.breaks_at.items() if value is not None]
        words = (
            f"On synthetic models ({base}, one of them changed at a time) the theorem errs by more than "
            f"{self.tolerance} in log p from: {', '.join(ends) or 'nowhere in this range'}."
        )
        if self.here is None:
            return words
        return f"{words} This model has norm {self.here['norm']:.2f} and {self.here['entities']:,.0f} entities."


def _cell(x: float | None, width: int = 8) -> str:
    return f"{'-':>{width}}" if x is None else f"{x:>{width}.3f}"


def sweep(
    grid: Mapping[str, Sequence[float]] | None = None,
    *,
    base: Mapping[str, float] | None = None,
    pairs: int = 48,
    directions: int = 500,
    draws: int = 128,
    seed: int = 0,
    progress: OnProgress = silent,
) -> Sweep:
    """Change dim, entities, norm (s of |h| = s √d) and step one at a time from the base."""
    start = {**BASE, **(base or {})}
    cells = [(name, value) for name, values in (grid or GRID).items() for value in values]
    rows, count = [], Count(progress, len(cells), "sweep")
    for name, value in cells:
        rows.append(_row(name, value, tuple({**start, name: value}.items()), pairs, directions, draws, seed))
        count.add(1)
    return Sweep(tuple(rows), start)


@torch.no_grad()
def limits(model: Scorer, *, step: float = 0.01, seed: int = 0, progress: OnProgress = silent) -> Sweep | Absent:
    """The sweep around the dimension of a trained model, with its own place."""
    if not isinstance(model, RelWalk):
        return Absent(NO_THEOREM.format(model.title))
    if model.blocks > 1:
        return Absent(f"the sweep is about one walker, and this model has {model.blocks}, one for each block.")
    model = model.unfold()
    norm = float((model.vectors().square().sum(-1).mean() / model.dim).sqrt())
    here = {"dim": float(model.dim), "entities": float(model.entities), "norm": norm, "step": step}
    return replace(sweep(base={"dim": model.dim}, seed=seed, progress=progress), here=here)


@lru_cache(maxsize=256)
def _row(
    name: str, value: float, place: tuple[tuple[str, float], ...], pairs: int, directions: int, draws: int, seed: int
) -> SweepRow:
    """One synthetic model. Of a trained one only its dimension counts here: rows are kept for the next of the same."""
    at = dict(place)
    dim, n = int(at["dim"]), int(at["entities"])
    generator = own_generator(seed, "sweep")
    entity = at["norm"] * torch.randn(n, dim, generator=generator)
    R1, R2 = random_rotations(2, dim, generator)
    heads = torch.randint(0, n, (pairs,), generator=generator)
    # Half the tails are likely ones, drawn from p(t | h, R), so that log p has a range to be followed over.
    logits = (entity[heads[: pairs // 2]] @ R1) @ (entity @ R2).T / dim + entity.square().sum(-1) / (2 * dim)
    likely = torch.multinomial(torch.softmax(logits, -1), 1, generator=generator)[:, 0]
    tails = torch.cat([likely, torch.randint(0, n, (pairs - len(likely),), generator=generator)])
    found = log_probs(
        entity, R1, R2, heads, tails, step=at["step"], directions=directions, draws=draws, generator=generator
    )
    return SweepRow(
        name,
        float(value),
        fit(found.theorem, found.truth),
        fit(found.exact, found.truth),
        float(np.max(found.truth_error)),
    )
