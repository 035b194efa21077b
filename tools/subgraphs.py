"""Graphs to choose a recipe on: cuts of a benchmark, and made-up ones with many relations on few entities.

    python -m tools.subgraphs fb15k-237 --entities 2000 --how snowball --share 0.5 --out cut
    python -m tools.subgraphs terms --entities 100 --out made

All is drawn by `--seed`, and split into train, valid and test as `relwalk split` would.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np

from relwalk import read_graph
from relwalk.errors import choose
from relwalk.graph.graph import Graph
from relwalk.graph.lists import Ints
from relwalk.graph.split import split_triples
from relwalk.graph.vocabulary import Vocabulary
from relwalk.graph.write import write_graph

Random = np.random.Generator
HELD_OUT = 0.1  # of the triples, for valid and for test each


def densest(triples: Ints, entities: int, random: Random) -> Ints:
    """The entities that stand in most triples."""
    degrees = np.bincount(triples[:, [0, 2]].ravel())
    return np.argsort(-degrees - random.random(len(degrees)))[:entities]


def snowball(triples: Ints, entities: int, random: Random) -> Ints:
    """Entities found ring after ring around a random one, the last ring by chance."""
    count = int(triples[:, [0, 2]].max()) + 1
    found = np.zeros(count, bool)
    found[random.choice(triples[:, 0])] = True
    while found.sum() < entities:
        touched = found[triples[:, 0]] | found[triples[:, 2]]
        ring = np.setdiff1d(triples[touched][:, [0, 2]], np.flatnonzero(found))
        if len(ring) == 0:  # the component is over: on with another
            ring = np.flatnonzero(~found)[:1]
        found[random.permutation(ring)[: entities - found.sum()]] = True
    return np.flatnonzero(found)


def at_random(triples: Ints, entities: int, random: Random) -> Ints:
    """Any entities."""
    return random.permutation(int(triples[:, [0, 2]].max()) + 1)[:entities]


CUTS: dict[str, Callable[[Ints, int, Random], Ints]] = {"dense": densest, "snowball": snowball, "random": at_random}


def cut(graph: Graph, entities: int, *, how: str = "dense", share: float = 1.0, seed: int = 0) -> Graph:
    """So many entities of a graph with a share of the triples among them, split anew."""
    random = np.random.default_rng(seed)
    chosen = choose("cut", how, CUTS)(graph.triples, entities, random)
    inside = graph.triples[np.isin(graph.triples[:, 0], chosen) & np.isin(graph.triples[:, 2], chosen)]
    inside = inside[random.random(len(inside)) < share]
    return from_triples(f"{graph.name}-{how}-{entities}", inside, seed)


def terms(entities: int, seed: int) -> Graph:
    """Every pair of people has one of 25 terms: by their sections, generations and sex, with some noise."""
    random = np.random.default_rng(seed)
    section, generation, sex = (random.integers(n, size=entities) for n in (8, 3, 2))
    head, tail = (x.ravel() for x in np.meshgrid(np.arange(entities), np.arange(entities), indexing="ij"))
    kind = (section[head] - section[tail]) % 8 * 10 + (generation[head] - generation[tail] + 2) * 2 + sex[tail]
    term = random.integers(25, size=80)[kind]
    term = np.where(random.random(len(term)) < 0.03, random.integers(25, size=len(term)), term)
    return from_triples(f"terms-{entities}", _drawn(head, term, tail, 0.8, random), seed)


def types(entities: int, seed: int) -> Graph:
    """Concepts in a tree; each of 40 relations holds between the subtrees of some pairs of them, for most members."""
    random = np.random.default_rng(seed)
    parent = np.array([random.integers(max(1, i)) for i in range(entities)])
    under = np.eye(entities, dtype=bool)  # under[a, b]: b is in the subtree of a
    for i in range(entities - 1, 0, -1):
        under[parent[i]] |= under[i]
    sizes = under.sum(1)
    inner = np.flatnonzero((sizes >= 2) & (sizes <= max(3, entities // 5)))
    blocks = []
    for relation in range(40):
        for a, b in random.choice(inner, size=(random.integers(1, 6), 2)):
            head, tail = (x.ravel() for x in np.meshgrid(*(np.flatnonzero(under[x]) for x in (a, b))))
            blocks.append(_drawn(head, np.full(len(head), relation), tail, 0.95, random))
    children = np.arange(1, entities)
    blocks.append(_drawn(children, np.full(entities - 1, 40), parent[1:], 1.0, random))
    return from_triples(f"types-{entities}", np.unique(np.concatenate(blocks), axis=0), seed)


def dealings(entities: int, seed: int) -> Graph:
    """A few actors and 50 kinds of dealings, each as likely as four hidden traits of the two make it."""
    random = np.random.default_rng(seed)
    traits, forms = random.normal(size=(entities, 4)), random.normal(size=(50, 4, 4))
    logits = np.einsum("hi,rij,tj->rht", traits, forms, traits) * 3 - 5 + random.normal(size=(50, 1, 1))
    relation, head, tail = np.nonzero(random.random(logits.shape) < 1 / (1 + np.exp(-logits)))
    return from_triples(f"dealings-{entities}", _drawn(head, relation, tail, 1.0, random), seed)


MADE: dict[str, Callable[[int, int], Graph]] = {"terms": terms, "types": types, "dealings": dealings}


def _drawn(head: Ints, relation: Ints, tail: Ints, share: float, random: Random) -> Ints:
    triples = np.stack([head, relation, tail], 1).astype(np.int32)
    return triples[random.random(len(triples)) < share]


def from_triples(name: str, triples: Ints, seed: int) -> Graph:
    """A graph of the entities and relations that occur, split by seed."""
    entities, places = np.unique(triples[:, [0, 2]], return_inverse=True)
    relations, kinds = np.unique(triples[:, 1], return_inverse=True)
    ends = places.reshape(-1, 2)
    numbered = np.stack([ends[:, 0], kinds.reshape(-1), ends[:, 1]], 1).astype(np.int32)
    train, valid, test = split_triples(numbered, valid=HELD_OUT, test=HELD_OUT, seed=seed)
    names = (
        Vocabulary(kind, tuple(f"{kind[0]}{i}" for i in ids))
        for kind, ids in (("entity", entities), ("relation", relations))
    )
    return Graph(name, *names, train, valid, test)


def make(source: str, entities: int, how: str, share: float, seed: int) -> Graph:
    """A made-up graph by name, or a cut of what `read_graph` takes."""
    if source in MADE:
        return MADE[source](entities, seed)
    return cut(read_graph(source), entities, how=how, share=share, seed=seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", help=f"{', '.join(MADE)}, or a graph to cut")
    parser.add_argument("--entities", type=int, required=True)
    parser.add_argument("--how", choices=CUTS, default="dense")
    parser.add_argument("--share", type=float, default=1.0, help="of the triples among those entities")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    graph = make(given.source, given.entities, given.how, given.share, given.seed)
    write_graph(graph, given.out, "plain")
    print(graph)


if __name__ == "__main__":
    main()
