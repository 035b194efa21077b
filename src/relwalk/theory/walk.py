"""The generative process, run forwards on a trained model.

    p(h | R, c) = exp(hᵀR1 c) / Z_c,     c' = c + a small displacement,     p(t | R, c') = exp(tᵀR2 c') / Z_c'

Without a start, c walks slowly over the sphere and each step emits a whole triple: head from c, tail from c'.
With a start the walker stands at an entity h: c is then drawn given that h was emitted, p(c | h, R) ∝ exp(hᵀR1 c)
(Z_c taken as constant, the lemma), the tail is drawn from c', and the walker goes on from the tail; between two
triples c is drawn anew, for the theory asks slowness only within a triple. As in the paper the relation is chosen
uniformly among those that leave the entity in the graph (any, where none does). Where relations have a bias v, c is
drawn with density exp(vᵀc) for each triple, p(c | h, R) ∝ exp((R1ᵀh + v)ᵀc).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from relwalk.checks import check_number, check_seed, check_whole
from relwalk.display import Shown
from relwalk.errors import RelWalkError, choose
from relwalk.evaluation.estimate import own_generator
from relwalk.graph.answers import Side
from relwalk.graph.graph import Graph
from relwalk.graph.lists import Lists
from relwalk.memory import FLOAT, refuse_beyond_memory
from relwalk.models.base import Scorer
from relwalk.models.relwalk import RelWalk
from relwalk.theory.sphere import displaced, tilted_directions, uniform_directions

Hold = Literal["nothing", "entity"]
STEPS = 100_000  # the longest path
TEMPERATURES = (1e-6, 1e6)  # beyond, float32 has no numbers for the chances
HOLDS: dict[str, str] = {"nothing": "go on from each tail", "entity": "begin every step at the start entity"}


@dataclass(frozen=True)
class Step:
    """One emitted triple, by label; `known` when the graph holds it."""

    head: str
    relation: str
    tail: str
    known: bool
    probability: float  # of the tail under its knowledge vector, p(t | R, c')


@dataclass(frozen=True)
class Path:
    """The triples of one walker, in order."""

    steps: tuple[Step, ...]
    joined: bool  # each head is the tail before it

    def as_dict(self) -> dict[str, Any]:
        return {"joined": self.joined, "steps": [asdict(step) for step in self.steps]}

    def __str__(self) -> str:
        arrows = [f"{'—' if s.known else '~'} {s.relation} {'→' if s.known else '~>'} {s.tail}" for s in self.steps]
        if self.joined:
            return " ".join([self.steps[0].head, *arrows])
        return "; ".join(f"{step.head} {arrow}" for step, arrow in zip(self.steps, arrows, strict=True))


@dataclass(frozen=True, repr=False)
class Walks(Shown):
    """Paths drawn from a model; prints them by name. A wavy arrow is a triple that the graph does not hold."""

    paths: tuple[Path, ...]
    step_size: float
    seed: int

    def __iter__(self) -> Iterator[Path]:
        return iter(self.paths)

    def __len__(self) -> int:
        return len(self.paths)

    @property
    def known(self) -> float:
        """The share of emitted triples that the graph holds."""
        return float(np.mean([step.known for path in self.paths for step in path.steps]))

    def as_dict(self) -> dict[str, Any]:
        rest = {"step_size": self.step_size, "seed": self.seed, "known": self.known}
        return rest | {"paths": [path.as_dict() for path in self.paths]}

    def summary(self) -> str:
        return f"{len(self)} paths, {self.known:.1%} of their triples in the graph"

    def __str__(self) -> str:
        return "\n".join([*(str(path) for path in self.paths), f"{self.known:.1%} of these triples are in the graph"])


@torch.no_grad()
def walk(
    model: Scorer,
    graph: Graph,
    *,
    start: str | None = None,
    relation: str | None = None,
    hold: Hold = "nothing",
    steps: int = 5,
    paths: int = 10,
    step_size: float = 0.1,
    temperature: float = 1.0,
    seed: int = 0,
) -> Walks:
    """Draw paths from the model. `relation` holds the relation; `hold="entity"` begins every step at the start.

    A temperature T divides all vectors by √T, and so every s by T: calibration says which T the model needs.
    """
    if not isinstance(model, RelWalk):
        raise RelWalkError(f"a walk needs RelWalk's R1, R2 and knowledge vector; {model.title} has none.")
    model = model.unfold()
    check_whole("steps", steps, most=STEPS)
    check_whole("paths", paths)
    check_number("step_size", step_size, 0, 2)
    check_number("temperature", temperature, *TEMPERATURES)
    check_seed(seed)
    needed = FLOAT * paths * 2 * (model.entities + model.dim)  # of each path the chances of all entities, and vectors
    refuse_beyond_memory(needed, f"a walk of {paths:,} paths at once", "Take fewer --paths.")
    choose("thing to hold", hold, HOLDS)
    if hold == "entity" and start is None:
        raise RelWalkError("to hold the entity, say which: start=NAME")
    first = graph.entities.id(start) if start is not None else None
    fixed = graph.relations.id(relation) if relation is not None else None
    generator = own_generator(seed, "walk")
    walker = _Walker(model, graph, fixed, step_size, temperature, generator)
    state = uniform_directions(paths, model.dim, generator, model.blocks)  # c of each path, where it begins
    head = torch.full((paths,), first, dtype=torch.long) if first is not None else None
    rows: list[tuple[Tensor, ...]] = []
    for _ in range(steps):
        triple, state = walker.step(state, head)
        rows.append(triple)
        if first is not None and hold == "nothing":
            head = triple[2]
    return Walks(_by_name(graph, rows, first is not None and hold == "nothing"), step_size, seed)


class _Walker:
    """One step of every path at once: a matrix product over all entities per relation met."""

    def __init__(
        self,
        model: RelWalk,
        graph: Graph,
        fixed: int | None,
        step_size: float,
        temperature: float,
        generator: torch.Generator,
    ) -> None:
        self.model, self.entity = model, model.vectors().detach().cpu() / temperature**0.5
        self.bias = None if model.bias is None else model.bias.detach().cpu() / temperature**0.5
        self.fixed, self.step_size, self.generator, self.blocks = fixed, step_size, generator, model.blocks
        self.relations = len(graph.relations)
        self.leaving = Lists.group(graph.triples[:, 0], graph.triples[:, 1], len(graph.entities))

    def step(self, state: Tensor, head: Tensor | None) -> tuple[tuple[Tensor, ...], Tensor]:
        relation = self._relations(head, len(state))
        if head is not None:
            turned = self._turned("head", self.entity[head], relation)
            turned = turned if self.bias is None else turned + self.bias[relation]
            state = tilted_directions(turned, 1, self.generator, self.blocks).squeeze(1)  # c given that it emitted h
        else:
            if self.bias is not None:  # its own c for each relation: the walk begins anew with every triple
                state = tilted_directions(self.bias[relation], 1, self.generator, self.blocks).squeeze(1)
            head, _ = self._emit(self._turned("head", state, relation, back=True))
        moved = displaced(state, self.step_size, self.generator, self.blocks)
        tail, probability = self._emit(self._turned("tail", moved, relation, back=True))
        return (head, relation, tail, probability), displaced(moved, self.step_size, self.generator, self.blocks)

    def _relations(self, head: Tensor | None, count: int) -> Tensor:
        if self.fixed is not None:
            return torch.full((count,), self.fixed, dtype=torch.long)
        any_one = torch.randint(0, self.relations, (count,), generator=self.generator)
        if head is None:
            return any_one
        lengths = torch.from_numpy(self.leaving.lengths)[head]
        place = (torch.rand(count, generator=self.generator) * lengths).long().clamp(max=(lengths - 1).clamp(min=0))
        place += torch.from_numpy(self.leaving.offsets)[head]
        values = torch.from_numpy(self.leaving.values.astype(np.int64))
        return torch.where(lengths > 0, values[place.clamp(max=len(values) - 1)], any_one)

    def _turned(self, side: Side, x: Tensor, relation: Tensor, back: bool = False) -> Tensor:
        """Rᵀx of each row by its own relation; `back`: R x."""
        there = self.model.device
        return self.model.turn(side, x.to(there), relation.to(there), back=back).cpu()

    def _emit(self, turned: Tensor) -> tuple[Tensor, Tensor]:
        p = torch.softmax(turned @ self.entity.T, -1)  # (paths, entities)
        drawn = torch.multinomial(p, 1, generator=self.generator)
        return drawn[:, 0], p.gather(1, drawn)[:, 0]


def _by_name(graph: Graph, rows: list[tuple[Tensor, ...]], joined: bool) -> tuple[Path, ...]:
    h, r, t, p = (torch.stack(column, 1).numpy() for column in zip(*rows, strict=True))  # (paths, steps)
    known = _known(graph, h.ravel(), r.ravel(), t.ravel()).reshape(h.shape)
    entity, relation = graph.entities.label, graph.relations.label

    def step(i: int, k: int) -> Step:
        names = entity(int(h[i, k])), relation(int(r[i, k])), entity(int(t[i, k]))
        return Step(*names, known=bool(known[i, k]), probability=float(p[i, k]))

    return tuple(Path(tuple(step(i, k) for k in range(h.shape[1])), joined) for i in range(len(h)))


def _known(graph: Graph, h: Any, r: Any, t: Any) -> Any:
    answers = graph.known["tail"].lookup(h, r)
    same = answers.values == t[answers.row_of_each_value()]
    return np.bincount(answers.row_of_each_value(), same, minlength=len(h)) > 0
