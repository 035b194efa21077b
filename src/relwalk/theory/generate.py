"""A whole graph from a RelWalk that is known, and the way back: the closed loop.

    entities s · N(0, I);  R1 = I, R2 = Mᵀ with M a random rotation;  a triple: R uniform, c uniform on the sphere,
    h ~ exp(hᵀR1 c) / Z_c,   c' = c + displacement,   t ~ exp(tᵀR2 c') / Z_c'

The joint of all pairs is one product: p(h, t | R) is the mean over c of p(h | R, c) p(t | R, c'), so P1ᵀP2 / n for
the matrices (directions, entities) of both distributions. The loop is closed when a model that saw only the graph
ranks pairs it never saw as the true p(h, t | R) does, beyond how often each entity occurs (`interaction`: what is
left of log p when the effects of head and of tail are taken out) and unlike a shuffled control.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.stats import rankdata
from torch import Tensor

from relwalk.errors import RelWalkError
from relwalk.graph.graph import Graph
from relwalk.graph.lists import Ints
from relwalk.graph.split import split_triples
from relwalk.graph.vocabulary import Vocabulary
from relwalk.models.base import Scorer
from relwalk.models.relwalk import RelWalk
from relwalk.theory.estimate import Estimate, Floats, own_generator
from relwalk.theory.sphere import displaced, uniform_directions

BLOCK = 1 << 22  # probabilities held at a time
SHOWN = 300  # pairs kept for a figure
ROUNDS = 200  # draws of the missing triples before giving up


@dataclass(frozen=True, eq=False)
class Generated:
    """A graph, the model that drew it, and the step size of its knowledge vector."""

    graph: Graph
    model: RelWalk
    step_size: float

    def __str__(self) -> str:
        return f"{self.graph}\n  drawn from a RelWalk of {self.model.dim} dimensions, step size {self.step_size}"


@torch.no_grad()
def generate(
    entities: int,
    relations: int,
    triples: int,
    dim: int,
    *,
    entity_scale: float = 3.0,
    step_size: float = 0.01,
    valid: float = 0.1,
    test: float = 0.1,
    seed: int = 0,
) -> Generated:
    """Draw distinct triples from a fresh RelWalk; entity i is called "e<i>", relation k "r<k>".

    Vectors are about entity_scale · √d long. At 1 all pairs are nearly as likely and a graph shows next to nothing of
    its model; at 3 a few thousand triples show it well.
    """
    if min(entities, relations, triples, dim) < 1 or entities < 2:
        raise RelWalkError(
            f"{entities} entities, {relations} relations, {triples} triples, dim {dim}: expected 2, 1, 1, 1 or more"
        )
    if triples > relations * entities**2 // 2:
        most = relations * entities**2 // 2
        raise RelWalkError(f"{triples:,} distinct triples of {relations * entities**2:,}: expected at most {most:,}")
    generator = own_generator(seed, "generate")
    model = RelWalk(
        entities, relations, dim, generator=generator, start_from="rotations", entity_scale=entity_scale
    ).eval()
    drawn = torch.zeros(0, dtype=torch.long)  # packed (relation, head, tail)
    for _ in range(ROUNDS):
        drawn = _merge(drawn, _draw(model, triples - len(drawn), step_size, generator))
        if len(drawn) >= triples:
            break
    else:
        raise RelWalkError(
            f"after {ROUNDS} rounds only {len(drawn):,} of {triples:,} triples are distinct: the model prefers few "
            "pairs too strongly. Ask for fewer triples or a smaller entity_scale."
        )
    r, pair = drawn // entities**2, drawn % entities**2
    rows = torch.stack([pair // entities, r, pair % entities], 1).numpy().astype(np.int32)
    train, held_valid, held_test = split_triples(rows, valid=valid, test=test, seed=seed)
    graph = Graph(
        name=f"generated-{seed}",
        entities=Vocabulary("entity", tuple(f"e{i}" for i in range(entities))),
        relations=Vocabulary("relation", tuple(f"r{k}" for k in range(relations))),
        train=train,
        valid=held_valid,
        test=held_test,
        notes=(f"drawn from a RelWalk: dim {dim}, entity scale {entity_scale}, step {step_size}, seed {seed}",),
    )
    return Generated(graph, model, step_size)


def _merge(old: Tensor, new: Tensor) -> Tensor:
    """Old ones first, each once, in the order drawn: sorting would favour low ids when the last round is cut."""
    both = torch.cat([old, new])
    _, first = np.unique(both.numpy(), return_index=True)
    return both[torch.from_numpy(np.sort(first))]


def _draw(model: RelWalk, count: int, step_size: float, generator: torch.Generator) -> Tensor:
    n = model.entities
    relation = torch.randint(0, model.relations, (count,), generator=generator).sort().values
    parts = []
    for r in torch.unique(relation).tolist():
        own = int((relation == r).sum())
        for some in torch.split(uniform_directions(own, model.dim, generator), max(1, BLOCK // n)):
            p1, p2 = _emissions(model, r, some, step_size, generator)
            h, t = (torch.multinomial(p, 1, generator=generator)[:, 0] for p in (p1, p2))
            parts.append((r * n + h) * n + t)
    drawn = torch.cat(parts)
    return drawn[torch.randperm(len(drawn), generator=generator)]


def _emissions(
    model: RelWalk, relation: int, c: Tensor, step_size: float, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """p(h | R, c) and p(t | R, c') over all entities.  # (directions, entities) each"""
    entity, moved = model.entity.detach(), displaced(c, step_size, generator)
    heads, tails = c @ model.R1[relation].T, moved @ model.R2[relation].T
    return torch.softmax(heads @ entity.T, -1), torch.softmax(tails @ entity.T, -1)


@torch.no_grad()
def log_joint(
    model: RelWalk, relation: int, *, step_size: float = 0.01, directions: int = 20_000, seed: int = 0
) -> Floats:
    """log p(h, t | R) of every pair, by Monte Carlo over c with Z_c computed.  # (entities, entities)"""
    generator = own_generator(seed, "joint")
    total = torch.zeros(model.entities, model.entities, dtype=torch.float64)
    c = uniform_directions(directions, model.dim, generator)
    for some in torch.split(c, max(1, BLOCK // model.entities)):
        p1, p2 = _emissions(model, relation, some, step_size, generator)
        total += (p1.T @ p2).double()
    return np.asarray((total / directions).clamp(min=1e-300).log().numpy())


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Some of the pairs: log p in truth, as learned (up to a constant), and learned with its entities renamed."""

    truth: Floats  # (pairs,)
    learned: Floats
    shuffled: Floats


@dataclass(frozen=True)
class ClosedLoop:
    """Rank correlation of learned with true log p over pairs that train does not hold."""

    learned: float
    interaction: float
    shuffled: Estimate  # learned entities renamed at random: the middle and range of the same figure
    shuffled_interaction: Estimate
    popularity: float  # what counting each entity's occurrences achieves
    pairs: int
    some: HeldOut

    @property
    def closed(self) -> bool:
        """Far outside the shuffled range, both whole and in the interaction."""
        return self.learned > self.shuffled.high + 0.2 and self.interaction > self.shuffled_interaction.high + 0.2

    def as_dict(self) -> dict[str, Any]:
        estimates = {k: getattr(self, k).as_dict() for k in ("shuffled", "shuffled_interaction")}
        figures = {k: v for k, v in self.__dict__.items() if k != "some"}
        return figures | estimates | {"closed": self.closed}

    def __str__(self) -> str:
        return (
            f"learned against true log p over {self.pairs:,} held-out pairs: Spearman {self.learned:.3f} "
            f"(shuffled {self.shuffled}, popularity alone {self.popularity:.3f}); "
            f"interaction {self.interaction:.3f} (shuffled {self.shuffled_interaction})"
        )


@torch.no_grad()
def closed_loop(
    generated: Generated, learned: Scorer, *, directions: int = 20_000, shuffles: int = 8, seed: int = 0
) -> ClosedLoop:
    """Compare a model learned from `generated.graph` with the one that drew it."""
    truth, graph, n = generated.model, generated.graph, generated.model.entities
    if (learned.entities, learned.relations) != (n, truth.relations):
        raise RelWalkError(
            f"the learned model has {learned.entities} entities and {learned.relations} relations; "
            f"the true one {n} and {truth.relations}"
        )
    relations = range(truth.relations)
    how: dict[str, Any] = {"step_size": generated.step_size, "directions": directions}
    wide = np.stack([log_joint(truth, r, **how, seed=seed + r) for r in relations])  # (relations, n, n)
    every = torch.arange(n)
    scores = np.stack([learned.score_tails(every, torch.full((n,), r)).double().numpy() for r in relations])
    held = np.ones(wide.shape, bool)
    held[graph.train[:, 1], graph.train[:, 0], graph.train[:, 2]] = False
    rng = np.random.default_rng(seed)
    names = [rng.permutation(n) for _ in range(shuffles)]
    whole = [_spearman(wide, scores[:, p][:, :, p], held) for p in names]
    inner, inner_scores = _centred(wide), _centred(scores)
    parts = [_spearman(inner, inner_scores[:, p][:, :, p], held) for p in names]
    cells = rng.choice(np.flatnonzero(held), min(SHOWN, int(held.sum())), replace=False)
    scaled, renamed = learned.scale * scores, learned.scale * scores[:, names[0]][:, :, names[0]]
    return ClosedLoop(
        learned=_spearman(wide, scores, held),
        interaction=_spearman(inner, inner_scores, held),
        shuffled=Estimate(float(np.mean(whole)), min(whole), max(whole)),
        shuffled_interaction=Estimate(float(np.mean(parts)), min(parts), max(parts)),
        popularity=_spearman(wide, _popularity(graph.train, *wide.shape[:2]), held),
        pairs=int(held.sum()),
        some=HeldOut(wide.ravel()[cells], scaled.ravel()[cells], renamed.ravel()[cells]),
    )


def _centred(x: Floats) -> Floats:
    """What head and tail do not explain alone.  # (relations, n, n)"""
    x = x - x.mean(axis=2, keepdims=True)
    return np.asarray(x - x.mean(axis=1, keepdims=True))


def _popularity(train: Ints, relations: int, n: int) -> Floats:
    heads, tails = (np.zeros((relations, n)) for _ in range(2))
    np.add.at(heads, (train[:, 1], train[:, 0]), 1)
    np.add.at(tails, (train[:, 1], train[:, 2]), 1)
    return np.asarray(np.log(heads + 0.5)[:, :, None] + np.log(tails + 0.5)[:, None, :])


def _spearman(a: Floats, b: Floats, held: Any) -> float:
    """The mean over relations: p(h, t | R) is normalised within each."""
    found = []
    for x, y, mask in zip(a, b, held, strict=True):
        rx, ry = rankdata(x[mask]), rankdata(y[mask])
        rx, ry = rx - rx.mean(), ry - ry.mean()
        size = math.sqrt(float(rx @ rx) * float(ry @ ry))
        found.append(float(rx @ ry) / size if size > 0 else 0.0)
    return float(np.mean(found))
