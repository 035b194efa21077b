"""Graphs whose missing links, duplicates and false triples are known."""

from __future__ import annotations

import numpy as np

from relwalk.graph.graph import Graph
from relwalk.graph.vocabulary import Vocabulary


def graph_of(name: str, triples: np.ndarray, entities: int, relations: int, seed: int = 0) -> Graph:
    """A graph that is split at random: 80% train, 10% valid, 10% test."""
    order = np.random.default_rng(seed).permutation(len(triples))
    triples = triples[order].astype(np.int32)
    first, second = round(0.8 * len(triples)), round(0.9 * len(triples))
    return Graph(
        name,
        Vocabulary("entity", tuple(f"e{i}" for i in range(entities))),
        Vocabulary("relation", tuple(f"r{i}" for i in range(relations))),
        triples[:first].copy(),
        triples[first:second].copy(),
        triples[second:].copy(),
    )


def families(count: int = 20, size: int = 8, seed: int = 0, loops: int = 0) -> Graph:
    """Families: members know each other (0), and so many of them themselves; they have the name of their family (1),
    and like that of another (2)."""
    rng = np.random.default_rng(seed)
    members = np.arange(count * size).reshape(count, size)
    names = count * size + np.arange(count)
    knows = [(a, 0, b) for family in members.tolist() for a in family for b in family if a != b]
    knows += [(a, 0, a) for a in range(loops)]
    called = [(a, 1, name) for family, name in zip(members.tolist(), names.tolist(), strict=True) for a in family]
    friends = rng.integers(0, count, count)
    likes = [(a, 2, names[friends[i]]) for i, family in enumerate(members.tolist()) for a in family]
    return graph_of("families", np.array(knows + called + likes), count * size + count, 3, seed)


def people(count: int = 150, things: int = 80, seed: int = 0) -> Graph:
    """People who have six of many things, each by one of three relations."""
    rng = np.random.default_rng(seed)
    rows = [
        (person, relation, count + thing)
        for person in range(count)
        for relation in range(3)
        for thing in rng.choice(things, 3, replace=False)
    ]
    return graph_of("people", np.array(rows), count + things, 3, seed)
