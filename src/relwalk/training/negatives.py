"""False triples to learn against: the head or the tail of a true one, replaced.

    SAMPLERS[name](graph, avoid_known=False) -> sampler
    sampler(positives, count, generator)     -> Negatives

A sampler is one function here and one line in SAMPLERS. Each positive has one of its sides replaced, by `count`
entities; which side is drawn anew every time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from relwalk.graph.answers import SIDES, KnownAnswers, Side
from relwalk.graph.graph import Graph
from relwalk.graph.lists import Lists


class Negatives(NamedTuple):
    entities: Tensor  # (batch, count) what stands in the replaced place
    tail: Tensor  # (batch,) True where the tail was replaced, False where the head was


Sampler = Callable[[Tensor, int, torch.Generator], Negatives]


@dataclass(frozen=True)
class Pool:
    """The entities that may stand in a place: all of them, or a list per relation.

    With `known`, the entities that make a known triple are left out exactly, without drawing twice: of a query's
    n candidates, k of them known, the u-th unknown one (u < n - k) stands at place u + |{known places p_j with
    p_j - j <= u}|, and one `searchsorted` over all p_j - j finds it for every draw at once.
    """

    entities: int
    lists: Lists | None  # per relation; None: every entity
    known: _KnownPlaces | None

    def draw(self, given: Tensor, relations: Tensor, count: int, generator: torch.Generator) -> Tensor:
        starts, sizes = self._ranges(relations)
        row, skipped = self.known.rows(given, relations) if self.known else (None, torch.zeros_like(sizes))
        free = torch.where(sizes > skipped, sizes - skipped, sizes)  # nothing unknown left: allow the known
        uniform = torch.rand(len(given), count, generator=generator, dtype=torch.float64)
        places = (uniform * free.unsqueeze(1)).long()  # (batch, count)
        if self.known is not None and row is not None:
            places = torch.where((sizes > skipped).unsqueeze(1), self.known.skip(row, places), places)
        if self.lists is None:
            return places
        return torch.from_numpy(self.lists.values).long()[starts.unsqueeze(1) + places]

    def _ranges(self, relations: Tensor) -> tuple[Tensor, Tensor]:
        if self.lists is None:
            sizes = torch.full_like(relations, self.entities)
            return torch.zeros_like(relations), sizes
        offsets = torch.from_numpy(self.lists.offsets)
        return offsets[relations], offsets[relations + 1] - offsets[relations]


@dataclass(frozen=True)
class _KnownPlaces:
    """The known answers of every training query as places in a pool, ready for `Pool.draw`."""

    answers: KnownAnswers
    shifted: Tensor  # row * width + (place - its index in the row), ascending
    width: int

    @staticmethod
    def from_answers(answers: KnownAnswers, lists: Lists | None, entities: int) -> _KnownPlaces:
        row = answers.lists.row_of_each_value()
        place = answers.lists.values.astype(np.int64)
        if lists is not None:  # the entity's place in the list of the query's relation
            relation = answers.keys[row] % answers.relations
            packed = lists.row_of_each_value() * entities + lists.values
            place = np.searchsorted(packed, relation * entities + place) - lists.offsets[relation]
        index = np.arange(len(place)) - answers.lists.offsets[row]
        return _KnownPlaces(answers, torch.from_numpy(row * (entities + 1) + place - index), entities + 1)

    def rows(self, given: Tensor, relations: Tensor) -> tuple[Tensor, Tensor]:
        row = self.answers.rows(given.numpy(), relations.numpy())
        counts = np.where(row >= 0, self.answers.lists.lengths[row], 0)
        return torch.from_numpy(row), torch.from_numpy(counts)

    def skip(self, row: Tensor, places: Tensor) -> Tensor:
        before = torch.from_numpy(self.answers.lists.offsets)[row].unsqueeze(1)
        passed = torch.searchsorted(self.shifted, row.unsqueeze(1) * self.width + places, right=True) - before
        return torch.where((row >= 0).unsqueeze(1), places + passed, places)


@dataclass(frozen=True)
class Replacing:
    """Replaces the tail with the chance of its relation, else the head, from the pool of that side."""

    pools: Mapping[Side, Pool]
    tail_chance: Tensor  # (relations,)

    def __call__(self, positives: Tensor, count: int, generator: torch.Generator) -> Negatives:
        heads, relations, tails = positives.unbind(1)
        tail = torch.rand(len(positives), generator=generator) < self.tail_chance[relations]
        entities = torch.empty(len(positives), count, dtype=torch.long)
        for side, rows, given in (("tail", tail, heads), ("head", ~tail, tails)):
            entities[rows] = self.pools[side].draw(given[rows], relations[rows], count, generator)  # type: ignore[index]
        return Negatives(entities, tail)


def uniform(graph: Graph, *, avoid_known: bool = False) -> Sampler:
    """Any entity, either side with probability one half: the paper's negatives."""
    return Replacing(_pools(graph, None, avoid_known), torch.full((len(graph.relations),), 0.5))


def bernoulli(graph: Graph, *, avoid_known: bool = False) -> Sampler:
    """Any entity; the side with fewer answers is replaced more often (Wang et al. 2014).

    With t tails per head and h heads per tail, the tail is replaced with probability h / (t + h): a random tail
    of a relation with many tails per head is likelier to be true.
    """
    answers = {side: graph.known_in_train[side] for side in SIDES}
    tails_per_head, heads_per_tail = (_mean_answers(answers[side], graph) for side in ("tail", "head"))
    chance = torch.from_numpy(heads_per_tail / (tails_per_head + heads_per_tail))
    return Replacing(_pools(graph, None, avoid_known), chance.float())


def argument(graph: Graph, *, avoid_known: bool = False) -> Sampler:
    """Entities seen in that place of the relation in train (type-constrained), either side alike."""
    chance = torch.full((len(graph.relations),), 0.5)
    return Replacing(_pools(graph, graph.argument_lists_of_train, avoid_known), chance)


SAMPLERS: dict[str, Callable[..., Sampler]] = {
    "uniform": uniform,
    "bernoulli": bernoulli,
    "argument": argument,
}


def _pools(graph: Graph, lists: Mapping[Side, Lists] | None, avoid_known: bool) -> dict[Side, Pool]:
    n = len(graph.entities)
    pools: dict[Side, Pool] = {}
    for side in SIDES:
        own = lists[side] if lists is not None else None
        known = _KnownPlaces.from_answers(graph.known_in_train[side], own, n) if avoid_known else None
        pools[side] = Pool(n, own, known)
    return pools


def _mean_answers(answers: KnownAnswers, graph: Graph) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """How many answers a query of each relation has on average in train; one where it has no query."""
    relation = answers.keys % answers.relations
    queries = np.bincount(relation, minlength=len(graph.relations))
    total = np.bincount(relation, weights=answers.lists.lengths, minlength=len(graph.relations))
    return np.where(queries > 0, total / np.maximum(queries, 1), 1.0)
