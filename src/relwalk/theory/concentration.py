"""Does the partition function concentrate?

    Z_c = Σ_h exp(hᵀR1 c),   Z_c' = Σ_t exp(tᵀR2 c),     c uniform on the unit sphere,

summed over all entities, over a random sample of them (the paper: 10,000), and over the entities that fill the
relation's argument. Spread is sigma / mean: sigma alone grows with the number summed. The paper's last column is
√(sigma_c² + sigma_c'²) (it says geometric mean).

When R is exactly orthogonal R c is as uniform as c: over all entities the law of Z_c is the same for every relation,
and what differs between relations is noise, which `excess` measures against the bootstrap: about 1 for pure noise,
below for less (all relations see the same c), far above when relations do differ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from relwalk.display import Shown
from relwalk.evaluation.estimate import (
    Absent,
    Estimate,
    Floats,
    clip,
    estimate,
    number,
    own_generator,
    resampling_weights,
    show,
)
from relwalk.graph.answers import SIDES, Side
from relwalk.graph.graph import Graph
from relwalk.models.base import Scorer
from relwalk.models.relwalk import RelWalk
from relwalk.progress import Count, OnProgress, silent
from relwalk.theory.partition import log_partition, log_terms
from relwalk.theory.sphere import uniform_directions

SETS = ("all", "sample", "argument")
MARGINS = (0.01, 0.05, 0.1, 0.25)  # eps of the share of Z_c inside (1 ± eps) Z
BOOTSTRAP = 500
MOST_RELATIONS = 300
HEAVY = 5  # a skew at which a thousand directions do not settle sigma
NOT_RELWALK = "concentration is a claim about RelWalk's random walk; {} has no knowledge vector and no Z_c."


@dataclass(frozen=True)
class Spread:
    """The distribution of Z over directions. `mean` and `sigma` are None when too large for a number."""

    entities: int
    log_mean: float  # of the directions drawn
    exact_log_mean: float | None  # of all directions: Σ_e B(|Rᵀe|), which no draw can miss
    relative: Estimate  # sigma / mean
    skew: float | None
    within: dict[str, float]  # eps -> share of directions with Z_c inside (1 ± eps) Z

    @property
    def mean(self) -> float | None:
        return math.exp(self.log_mean) if self.log_mean < 700 else None

    @property
    def sigma(self) -> Estimate | None:
        if self.mean is None:
            return None
        return Estimate(*(self.mean * x for x in (self.relative.value, self.relative.low, self.relative.high)))

    def as_dict(self) -> dict[str, Any]:
        return {
            "entities": self.entities,
            "mean": self.mean,
            "log_mean": self.log_mean,
            "exact_log_mean": self.exact_log_mean,
            "sigma": self.sigma.as_dict() if self.sigma else None,
            "relative": self.relative.as_dict(),
            "skew": self.skew,
            "within": self.within,
        }


@dataclass(frozen=True)
class RelationConcentration:
    """Z_c (head) and Z_c' (tail) of one relation, over each set of entities; None for an argument without any."""

    relation: str
    head: dict[str, Spread | None]
    tail: dict[str, Spread | None]

    def combined(self, entities: str) -> float | None:
        """√(sigma_c² + sigma_c'²), the paper's last column."""
        head, tail = self.head[entities], self.tail[entities]
        if head is None or tail is None or head.sigma is None or tail.sigma is None:
            return None
        return number(math.hypot(head.sigma.value, tail.sigma.value))

    def as_dict(self) -> dict[str, Any]:
        sides = {"head": self.head, "tail": self.tail}
        return {
            "relation": self.relation,
            **{side: {k: s.as_dict() if s else None for k, s in spreads.items()} for side, spreads in sides.items()},
            "combined": {name: self.combined(name) for name in SETS},
        }


@dataclass(frozen=True, repr=False)
class Concentration(Shown):
    """The spread of Z for every relation, and how far relations differ beyond noise."""

    relations: tuple[RelationConcentration, ...]
    directions: int
    sample: int
    excess: dict[str, dict[str, float | None]]  # set -> side -> sd over relations / sd of the bootstrap
    note: str

    def as_dict(self) -> dict[str, Any]:
        plain = {k: getattr(self, k) for k in ("directions", "sample", "excess", "note")}
        return {"applies": True, **plain, "relations": [relation.as_dict() for relation in self.relations]}

    def __str__(self) -> str:
        head = f"{'sigma / mean of Z':34}" + "".join(f"{f'{side} {s}':>15}" for s in SETS for side in SIDES)
        rows = [
            f"{clip(r.relation, 33):34}" + "".join(show(_relative(r, s, side), 15) for s in SETS for side in SIDES)
            for r in self.relations
        ]
        excess = f"{'sd over relations / noise':34}" + "".join(
            show(self.excess[s][side], 15) for s in SETS for side in SIDES
        )
        return "\n".join([head, *rows, excess, self.note])


def _relative(r: RelationConcentration, entities: str, side: Side) -> Estimate | None:
    spread = (r.head if side == "head" else r.tail)[entities]
    return spread.relative if spread is not None else None


@torch.no_grad()
def concentration(
    model: Scorer,
    graph: Graph,
    *,
    directions: int = 1000,
    sample: int = 10_000,
    seed: int = 0,
    most_relations: int = MOST_RELATIONS,
    progress: OnProgress = silent,
) -> Concentration | Absent:
    """Measure Z_c and Z_c' of every relation (of the most frequent ones when there are very many).

    All relations see the same directions c; each relation and side draws its own sample, as the paper did.
    """
    if not isinstance(model, RelWalk):
        return Absent(NOT_RELWALK.format(model.title))
    given, model = model, model.unfold()
    generator = own_generator(seed, "concentration")
    c = uniform_directions(directions, model.dim, generator, model.blocks)  # (directions, dim)
    entity = model.vectors().detach().cpu()
    counts = np.bincount(graph.train[:, 1], minlength=model.relations)
    chosen = np.sort(np.argsort(-counts, kind="stable")[:most_relations])
    sample = min(sample, len(entity))
    columns: list[Tensor] = []  # (sets, directions) of each relation and side
    sizes: list[list[int]] = []
    exact: list[Floats] = []
    terms = log_terms(entity, model.blocks) if model.exact else None  # an orthogonal R leaves every norm as it is
    count = Count(progress, len(chosen), "concentration")
    for r in chosen.tolist():
        for side in SIDES:
            groups = torch.zeros(len(SETS), len(entity))
            groups[0] = 1
            groups[1, torch.randperm(len(entity), generator=generator)[:sample]] = 1
            groups[2, torch.from_numpy(graph.argument_lists[side][r].astype(np.int64))] = 1
            R = model.dense(side, r).detach().cpu()
            columns.append(log_partition(entity, c @ R.T, groups))  # R c
            sizes.append([int(n) for n in groups.sum(1)])
            own = log_terms(entity @ R, model.blocks) if terms is None else terms
            exact.append(_group_sums(own, groups))
        count.add(1)
    lengths = [n for row in sizes for n in row]
    spreads = spreads_of(torch.cat(columns).numpy(), lengths, seed, np.concatenate(exact))
    relations = tuple(
        RelationConcentration(
            graph.relations.names[r],
            dict(zip(SETS, spreads[6 * i : 6 * i + 3], strict=True)),
            dict(zip(SETS, spreads[6 * i + 3 : 6 * i + 6], strict=True)),
        )
        for i, r in enumerate(chosen.tolist())
    )
    return Concentration(relations, directions, sample, _excess(relations), _note(given, model, relations))


def _note(given: RelWalk, model: RelWalk, relations: tuple[RelationConcentration, ...]) -> str:
    how = "soft" if given.orthogonality == "soft" else "no longer exact"
    text = (
        "Orthogonality is exact: over all entities Z_c cannot depend on the relation; differences are noise."
        if model.exact
        else f"Orthogonality is {how}: R c is not quite uniform, so Z_c may depend on the relation."
    )
    if model.bias is not None:
        text += " Relations have a bias, which their c are drawn towards: here c is uniform, as in the paper."
    if given.hidden:
        text += f" Hidden dimensions are written out: d is {model.dim:,} in place of {given.dim:,}."
    norms = model.vectors().detach().norm(dim=-1)
    text += (
        f" Entity norms: mean {float(norms.mean()):.2f}, largest {float(norms.max()):.2f}, √d = {model.dim**0.5:.2f}."
    )
    spreads = [s for r in relations for s in (r.head["all"], r.tail["all"]) if s is not None]
    heavy = sum(s.skew is not None and s.skew > HEAVY for s in spreads)
    if heavy:
        text += (
            f" {heavy} of {len(spreads)} sums over all entities have a skew above {HEAVY}: a few directions carry"
            " their sigma, and their intervals are too narrow."
        )
    if len(relations) < model.relations:
        text += f" Measured for the {len(relations):,} most frequent of {model.relations:,} relations."
    return text


def _group_sums(terms: Floats, groups: Tensor) -> Floats:
    top = float(terms.max())
    with np.errstate(divide="ignore"):  # an empty group
        return np.asarray(top + np.log(groups.double().numpy() @ np.exp(terms - top)))


def spreads_of(log_z: Floats, sizes: list[int], seed: int, exact: Floats | None = None) -> list[Spread | None]:
    """The spread of each row of log Z; None for a row that sums over nothing. All bootstraps are one product."""
    top = log_z.max(axis=1, keepdims=True)
    z = np.exp(log_z - top)
    mean = z.mean(axis=1, keepdims=True)
    z = z / mean - 1  # (rows, directions) relative departures
    variance = (z**2).mean(axis=1)
    weights = resampling_weights(z.shape[1], BOOTSTRAP, seed)
    first, second = weights @ z.T, weights @ (z**2).T  # (times, rows)
    resampled = np.sqrt(np.maximum(second - first**2, 0)) / (1 + first)
    skew = np.divide((z**3).mean(axis=1), variance**1.5, out=np.full(len(z), np.nan), where=variance > 1e-24)
    inside = {eps: (np.abs(z) <= eps).mean(axis=1) for eps in MARGINS}
    return [
        Spread(
            entities=sizes[i],
            log_mean=float(top[i, 0] + np.log(mean[i, 0])),
            exact_log_mean=number(float(exact[i])) if exact is not None else None,
            relative=estimate(float(np.sqrt(variance[i])), resampled[:, i]),
            skew=number(float(skew[i])),
            within={str(eps): float(share[i]) for eps, share in inside.items()},
        )
        if sizes[i] > 0
        else None
        for i in range(len(z))
    ]


def _excess(relations: tuple[RelationConcentration, ...]) -> dict[str, dict[str, float | None]]:
    """Standard deviation over relations of sigma / mean, against that of its bootstrap (a quarter of the interval)."""

    def of(entities: str, side: Side) -> float | None:
        found = [x for x in (_relative(r, entities, side) for r in relations) if x is not None]
        noise = float(np.mean([(x.high - x.low) / 3.92 for x in found])) if found else 0.0
        if len(found) < 2 or noise == 0:
            return None
        return number(round(float(np.std([x.value for x in found], ddof=1)) / noise, 6))

    return {entities: {side: of(entities, side) for side in SIDES} for entities in SETS}
