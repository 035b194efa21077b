"""A whole graph drawn from a RelWalk that is known.

    entities s · N(0, I);  R1 = I, R2 = Mᵀ with M a random rotation;  a triple: R uniform, c uniform on the sphere,
    h ~ exp(hᵀR1 c) / Z_c,   c' = c + displacement,   t ~ exp(tᵀR2 c') / Z_c'

The joint of all pairs is one product: p(h, t | R) is the mean over c of p(h | R, c) p(t | R, c'), so P1ᵀP2 / n for
the matrices (directions, entities) of both distributions. What a model learns of such a graph is compared with the
true model in `closed_loop`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from relwalk.checks import DIM, check_number, check_seed, check_whole
from relwalk.display import Shown
from relwalk.errors import RelWalkError
from relwalk.evaluation.estimate import Floats, own_generator
from relwalk.graph.graph import Graph
from relwalk.graph.split import split_triples
from relwalk.graph.vocabulary import Vocabulary
from relwalk.memory import FLOAT, refuse_beyond_memory
from relwalk.models.relwalk import RelWalk
from relwalk.theory.sphere import displaced, drawn_directions, uniform_directions

BLOCK = 1 << 22  # probabilities held at a time
ENTITY_SCALE = 1000.0  # the longest vectors over √d: their products are still numbers
ROUNDS = 200  # draws of the missing triples before giving up


@dataclass(frozen=True, eq=False, repr=False)
class Generated(Shown):
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
    _check(entities, relations, triples, dim, entity_scale, step_size, valid, test, seed)
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


def _check(
    entities: int,
    relations: int,
    triples: int,
    dim: int,
    entity_scale: float,
    step_size: float,
    valid: float,
    test: float,
    seed: int,
) -> None:
    for name, value, least in (("entities", entities, 2), ("relations", relations, 1), ("triples", triples, 1)):
        check_whole(name, value, least)
    check_whole("dim", dim, most=DIM)
    check_number("entity_scale", entity_scale, 0, ENTITY_SCALE, above=True)
    check_number("step_size", step_size, 0, 2)
    for name, share in (("valid", valid), ("test", test)):
        check_number(name, share, 0, 1)
    check_seed(seed)
    if entities**2 * relations >= 2**63:
        raise RelWalkError(f"{entities:,} entities and {relations:,} relations are too many. Ask for fewer.")
    numbers = entities * dim + 3 * relations * dim**2 + 3 * triples * (dim / relations + 6)
    what = f"a graph of {entities:,} entities, {relations:,} relations and {triples:,} triples, dim {dim:,},"
    refuse_beyond_memory(int(FLOAT * numbers), what, "Ask for fewer, or a smaller --dim.")


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
        for some in torch.split(uniform_directions(own, model.dim, generator, model.blocks), max(1, BLOCK // n)):
            p1, p2 = _emissions(model, r, some, step_size, generator)
            h, t = (torch.multinomial(p, 1, generator=generator)[:, 0] for p in (p1, p2))
            parts.append((r * n + h) * n + t)
    drawn = torch.cat(parts)
    return drawn[torch.randperm(len(drawn), generator=generator)]


def _emissions(
    model: RelWalk, relation: int, c: Tensor, step_size: float, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """p(h | R, c) and p(t | R, c') over all entities.  # (directions, entities) each"""
    entity, moved = model.vectors().detach(), displaced(c, step_size, generator, model.blocks)
    heads, tails = c @ model.dense("head", relation).T, moved @ model.dense("tail", relation).T
    return torch.softmax(heads @ entity.T, -1), torch.softmax(tails @ entity.T, -1)


@torch.no_grad()
def log_joint(
    model: RelWalk, relation: int, *, step_size: float = 0.01, directions: int = 20_000, seed: int = 0
) -> Floats:
    """log p(h, t | R) of every pair, by Monte Carlo over c with Z_c computed.  # (entities, entities)"""
    model = model.unfold()
    generator = own_generator(seed, f"joint {relation}")
    total = torch.zeros(model.entities, model.entities, dtype=torch.float64)
    c = drawn_directions(model.bias_of(relation), directions, model.dim, generator, model.blocks)
    for some in torch.split(c, max(1, BLOCK // model.entities)):
        p1, p2 = _emissions(model, relation, some, step_size, generator)
        total += (p1.T @ p2).double()
    return np.asarray((total / directions).clamp(min=1e-300).log().numpy())
