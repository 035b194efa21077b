"""Random walks over the training triples of a graph: all walkers take a step at a time.

A walk is a row of tokens. Entity `i` is token `i`; where a walk names relations, relation `k` is token `entities + k`,
and its inverse `entities + relations + k`. A walk that cannot go on ends early, and its row is filled with -1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from relwalk.errors import GraphError
from relwalk.graph.graph import Graph
from relwalk.graph.lists import Ints, Lists, Longs

BLOCK = 1 << 22  # tokens, or neighbours with their weights, held at a time
TRIES = 8  # of rejection sampling, before the weights of all neighbours are computed
END = -1  # what fills the row of a walk that ended early


class Walker(Protocol):
    """A way to walk."""

    @property
    def starts(self) -> Ints:
        """The entities that a walk can leave."""

    def draw(self, starts: Ints, length: int, rng: np.random.Generator) -> Ints:
        """A walk over `length` entities from each start, the start among them.  # (starts, tokens)"""


def neighbours(graph: Graph) -> Lists:
    """The neighbours of each entity in the undirected graph of train: a pair is linked once, whatever links it."""
    heads, tails = graph.train[:, 0], graph.train[:, 2]
    apart = heads != tails
    heads, tails = heads[apart], tails[apart]
    if len(heads) == 0:
        raise GraphError(
            f"graph {graph.name!r} links no two different entities: there is nothing to walk along. "
            "Give it a triple with a head and a tail that differ."
        )
    return Lists.group(np.concatenate([heads, tails]), np.concatenate([tails, heads]), len(graph.entities))


class UniformWalker:
    """DeepWalk's (Perozzi, Al-Rfou, Skiena: KDD 2014): to each neighbour with the same probability."""

    def __init__(self, graph: Graph) -> None:
        self.neighbours = neighbours(graph)

    @property
    def starts(self) -> Ints:
        return np.flatnonzero(self.neighbours.lengths).astype(np.int32)

    def draw(self, starts: Ints, length: int, rng: np.random.Generator) -> Ints:
        steps = [starts]
        while len(steps) < length:
            steps.append(self.neighbours.values[_pick(self.neighbours, steps[-1], rng)])
        return np.stack(steps, 1)


class BiasedWalker:
    """node2vec's (Grover, Leskovec: KDD 2016): a step from v, reached from t, goes to x with a weight of

        1/p if x = t,     1 if x is a neighbour of t,     1/q otherwise.

    Drawn by rejection: x among all neighbours of v alike, kept with its weight over the largest one. The way back, one
    neighbour alone, has no part in that largest one: what it weighs more is drawn apart. Where rejection fails several
    times, x is drawn from the weights of all neighbours of v; none of this changes the probabilities.
    """

    def __init__(self, graph: Graph, p: float, q: float) -> None:
        self.neighbours, self.entities = neighbours(graph), len(graph.entities)
        self.back, self.out = 1 / p, 1 / q
        self.links = _Pairs(self.neighbours, self.entities)

    @property
    def starts(self) -> Ints:
        return np.flatnonzero(self.neighbours.lengths).astype(np.int32)

    def draw(self, starts: Ints, length: int, rng: np.random.Generator) -> Ints:
        steps = [starts]
        while len(steps) < length:
            if len(steps) == 1 or self.back == self.out == 1:
                steps.append(self.neighbours.values[_pick(self.neighbours, steps[-1], rng)])
            else:
                steps.append(self._step(steps[-2], steps[-1], rng))
        return np.stack(steps, 1)

    def _step(self, before: Ints, at: Ints, rng: np.random.Generator) -> Ints:
        chosen, left = np.empty_like(at), np.arange(len(at))
        for _ in range(TRIES):
            tried, kept = self._try(before[left], at[left], rng)
            chosen[left[kept]] = tried[kept]
            left = left[~kept]
        for part in _blocks(left, self.neighbours.lengths[at[left]]):
            chosen[part] = self._step_by_weights(before[part], at[part], rng)
        return chosen

    def _try(self, before: Ints, at: Ints, rng: np.random.Generator) -> tuple[Ints, NDArray[np.bool_]]:
        """A neighbour of each v, and whether it is kept."""
        begin, count, top = self.neighbours.offsets[at], self.neighbours.lengths[at], max(1.0, self.out)
        beyond = max(0.0, self.back - top) / top  # of the way back, in neighbours of the largest weight
        point = rng.random(len(at)) * (count + beyond) - beyond
        place = np.clip(point.astype(np.int64), 0, count - 1)
        tried = np.where(point < 0, before, self.neighbours.values[begin + place])
        bar = (point - place) * top  # uniform from 0 to the largest weight; below 0 for the way back
        # Whether x is a neighbour of t is looked up only where that decides.
        kept = bar < np.where(tried == before, self.back, min(1.0, self.out))
        unsure = np.flatnonzero((tried != before) & ~kept)
        kept[unsure] = bar[unsure] < self._weights(before[unsure], tried[unsure])
        return tried, kept

    def _step_by_weights(self, before: Ints, at: Ints, rng: np.random.Generator) -> Ints:
        lists = self.neighbours.take(at)
        weights = self._weights(before[lists.row_of_each_value()], lists.values)
        sums = np.concatenate([[0], np.cumsum(weights)])
        low, high = sums[lists.offsets[:-1]], sums[lists.offsets[1:]]
        place = np.searchsorted(sums, low + rng.random(len(at)) * (high - low), side="right") - 1
        chosen: Ints = lists.values[np.clip(place, lists.offsets[:-1], lists.offsets[1:] - 1)]
        return chosen

    def _weights(self, before: Ints, target: Ints) -> NDArray[np.float64]:
        weights = np.where(self.links.contain(before, target), 1, self.out)
        return np.where(target == before, self.back, weights)


class _Pairs:
    """Which pairs of entities are linked. A table of bits says of most that they are not; the others are searched."""

    def __init__(self, lists: Lists, entities: int) -> None:
        self.entities = entities
        self.known = self._number(lists.row_of_each_value(), lists.values)  # ascending
        self.shift = np.uint64(64 - (8 * len(self.known)).bit_length())
        self.seen = np.zeros(1 << (64 - int(self.shift)), np.bool_)
        self.seen[self._cell(self.known)] = True

    def contain(self, one: Ints, other: Ints) -> NDArray[np.bool_]:
        wanted = self._number(one, other)
        found = self.seen[self._cell(wanted)]
        maybe = np.flatnonzero(found)
        place = np.minimum(np.searchsorted(self.known, wanted[maybe]), len(self.known) - 1)
        found[maybe] = self.known[place] == wanted[maybe]
        return found

    def _number(self, one: NDArray[np.integer], other: NDArray[np.integer]) -> Longs:
        return one.astype(np.int64) * self.entities + other

    def _cell(self, numbers: Longs) -> NDArray[np.uint64]:
        """Fibonacci hashing: the highest bits of a product."""
        return (numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> self.shift


class TripleWalker:
    """RDF2vec's (Ristoski, Paulheim: ISWC 2016): from head to tail along any triple that leaves the entity, with the
    relation as a token between them. With `inverse`, from tail to head as well, by a token of its own."""

    def __init__(self, graph: Graph, inverse: bool = False) -> None:
        head, relation, tail = graph.train.T
        relation = relation + len(graph.entities)
        if inverse:
            relation = np.concatenate([relation, relation + len(graph.relations)])
            head, tail = np.concatenate([head, tail]), np.concatenate([tail, head])
        self.relation, self.tail = relation, tail
        self.leaving = Lists.group(head, np.arange(len(head)), len(graph.entities))  # triples by their place

    @property
    def starts(self) -> Ints:
        return np.flatnonzero(self.leaving.lengths).astype(np.int32)

    def draw(self, starts: Ints, length: int, rng: np.random.Generator) -> Ints:
        tokens = np.full((2 * length - 1, len(starts)), END, np.int32)
        tokens[0] = starts
        going, at = np.arange(len(starts)), starts
        for step in range(1, length):
            onward = self.leaving.lengths[at] > 0
            going, at = going[onward], at[onward]
            triple = self.leaving.values[_pick(self.leaving, at, rng)]
            at = self.tail[triple]
            tokens[2 * step - 1, going], tokens[2 * step, going] = self.relation[triple], at
        return np.ascontiguousarray(tokens.T)


@dataclass(frozen=True)
class Corpus:
    """Walks as the sentences of a text: `walks` from each entity, in an order of their own each time around.

    They are drawn anew whenever they are read, always the same by the seed: a large graph's would not fit into memory.
    """

    walker: Walker
    walks: int
    length: int
    seed: int

    @property
    def sentences(self) -> int:
        return self.walks * len(self.walker.starts)

    def blocks(self) -> Iterator[Ints]:
        """All walks, as many at a time as fit into a block.  # (some, tokens)"""
        starts = self.walker.starts
        size = max(1, BLOCK // (2 * self.length))
        for number in range(self.walks):
            rng = np.random.default_rng([self.seed, number])
            order = rng.permutation(starts)
            for begin in range(0, len(order), size):
                yield self.walker.draw(order[begin : begin + size], self.length, rng)

    def counts(self, tokens: int) -> Longs:
        """How often each token occurs.  # (tokens,)"""
        found = np.zeros(tokens, np.int64)
        for block in self.blocks():
            found += np.bincount(block[block != END], minlength=tokens)
        return found

    def __iter__(self) -> Iterator[list[int]]:
        for block in self.blocks():
            lengths = (block != END).sum(1).tolist()
            yield from (row[:length] for row, length in zip(block.tolist(), lengths, strict=True))


def _pick(lists: Lists, rows: NDArray[np.integer], rng: np.random.Generator) -> Longs:
    """The place of a value of each row, each with the same probability. No row may be empty."""
    begin = lists.offsets[rows]
    picked: Longs = begin + (rng.random(len(rows)) * (lists.offsets[rows + 1] - begin)).astype(np.int64)
    return picked


def _blocks(items: Longs, sizes: Longs) -> list[Longs]:
    """Items in parts of about a block each; an item may be larger than that alone."""
    if len(items) == 0:
        return []
    numbers = np.cumsum(sizes) // BLOCK
    return np.split(items, np.flatnonzero(np.diff(numbers)) + 1)
