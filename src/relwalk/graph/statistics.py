"""What a person should know of a graph before training on it: size, shape, faults and leaks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

import numpy as np
from numpy.typing import NDArray

from relwalk.graph.cardinality import CARDINALITIES, usage
from relwalk.graph.description import Degree, GraphDescription, Leakage, RelationDescription, RelationPair, Unseen
from relwalk.graph.graph import SPLITS, Graph, Split
from relwalk.graph.lists import Ints, Lists, Longs, distinct
from relwalk.graph.overlap import Packing, PairTable, contains, relation_pairs

Bools = NDArray[np.bool_]

TOP = 10  # most connected entities listed


def describe(graph: Graph) -> GraphDescription:
    """Count everything that the report holds, by sorting: no Python loop over triples."""
    packing = Packing.from_graph(graph)
    keys = {split: distinct(packing.keys(graph.split(split))) for split in SPLITS}
    pairs = relation_pairs(keys["train"], packing)
    leakage = _leakage(graph.test, keys["train"], pairs.inverse, packing)
    rows = _relation_reports(graph, keys, packing)
    entities, relations = _shown(graph, graph.triples)
    return GraphDescription(
        name=graph.name,
        entities=len(graph.entities),
        relations=len(graph.relations),
        triples={split: len(graph.split(split)) for split in SPLITS},
        negatives={split: _length(graph.negatives(split)) for split in SPLITS},
        duplicates={split: len(graph.split(split)) - len(keys[split]) for split in SPLITS},
        self_loops={split: int((graph.split(split)[:, 0] == graph.split(split)[:, 2]).sum()) for split in SPLITS},
        overlap=_overlap(keys),
        unseen=_unseen(graph),
        isolated_entities=int((~entities).sum()),
        isolated_relations=int((~relations).sum()),
        classes={name: sum(row.cardinality == name for row in rows) for name in CARDINALITIES},
        leakage=leakage,
        leakage_shares={kind: count / max(len(graph.test), 1) for kind, count in asdict(leakage).items()},
        inverse_relations=_named(pairs.inverse, graph),
        duplicate_relations=_named(pairs.duplicate, graph),
        crowded_pairs=pairs.crowded,
        degree=_degree(graph),
        relation_reports=rows,
        notes=graph.notes,
    )


def _overlap(keys: Mapping[Split, Longs]) -> dict[str, int]:
    couples: tuple[tuple[Split, Split], ...] = (("train", "valid"), ("train", "test"), ("valid", "test"))
    return {f"{a} and {b}": int(contains(keys[a], keys[b]).sum()) for a, b in couples}


# Relations and pairs of relations


def _relation_reports(graph: Graph, keys: Mapping[Split, Longs], packing: Packing) -> tuple[RelationDescription, ...]:
    used = usage(graph)
    columns = (
        graph.relations.names,
        *(_per_relation(graph.split(split)[:, 1], graph) for split in SPLITS),
        used.cardinalities(),
        used.tails_per_head.tolist(),
        used.heads_per_tail.tolist(),
        used.heads.tolist(),
        used.tails.tolist(),
        _symmetric_shares(keys, packing).tolist(),
    )
    return tuple(RelationDescription(*row) for row in zip(*columns, strict=True))


def _per_relation(relation: Ints, graph: Graph) -> list[int]:
    counts: list[int] = np.bincount(relation, minlength=len(graph.relations)).tolist()
    return counts


def _symmetric_shares(keys: Mapping[Split, Longs], packing: Packing) -> NDArray[np.float64]:
    every = distinct(np.concatenate([keys[split] for split in SPLITS]))
    relation = packing.relation(every)
    reversed_too = relation[contains(every, packing.reverse(every))]
    size = packing.relations
    return np.bincount(reversed_too, minlength=size) / np.maximum(np.bincount(relation, minlength=size), 1)


def _named(table: PairTable, graph: Graph) -> tuple[RelationPair, ...]:
    names = graph.relations.names
    columns = (table.first.tolist(), table.second.tolist(), table.shared.tolist(), table.overlap.tolist())
    return tuple(RelationPair(names[a], names[b], n, share) for a, b, n, share in zip(*columns, strict=True))


# Leaks from train into test


def _leakage(test: Ints, train: Longs, inverses: PairTable, packing: Packing) -> Leakage:
    keys = packing.keys(test)
    turned = packing.reverse(keys)
    return Leakage(
        symmetric=int(contains(train, turned).sum()),
        inverse=int(_has_other(turned, train, packing).sum()),
        inverse_relation=int(_has_partner(turned, train, inverses, packing).sum()),
        other_relation=int(_has_other(keys, train, packing).sum()),
    )


def _has_other(keys: Longs, train: Longs, packing: Packing) -> Bools:
    """Whether train has the pair of each key under another relation."""
    first = packing.pairs(keys) * packing.relations
    links = np.searchsorted(train, first + packing.relations) - np.searchsorted(train, first)
    found: Bools = links > contains(train, keys)
    return found


def _has_partner(keys: Longs, train: Longs, table: PairTable, packing: Packing) -> Bools:
    """Whether train has the pair of each key under a relation that the table pairs with the key's own."""
    either, other = np.concatenate([table.first, table.second]), np.concatenate([table.second, table.first])
    partners = Lists.group(either, other, packing.relations)
    own = packing.relation(keys)
    found = np.zeros(len(keys), np.bool_)
    for nth in range(int(partners.lengths.max())):  # all at once would need memory for keys * partners
        rows = np.flatnonzero(partners.lengths[own] > nth)
        partner = partners.values[partners.offsets[own[rows]] + nth]
        found[rows] |= contains(train, keys[rows] - own[rows] + partner)
    return found


# Entities


def _shown(graph: Graph, triples: Ints) -> tuple[Bools, Bools]:
    """Which entities, and which relations, the triples show."""
    entities, relations = np.zeros(len(graph.entities), np.bool_), np.zeros(len(graph.relations), np.bool_)
    entities[triples[:, 0]] = entities[triples[:, 2]] = True
    relations[triples[:, 1]] = True
    return entities, relations


def _unseen(graph: Graph) -> Unseen:
    everywhere, known = _shown(graph, graph.triples), _shown(graph, graph.train)
    new_entity, new_relation = everywhere[0] & ~known[0], everywhere[1] & ~known[1]
    triples = {split: graph.split(split) for split in SPLITS}
    return Unseen(
        entities=int(new_entity.sum()),
        relations=tuple(graph.relations.names[index] for index in np.flatnonzero(new_relation).tolist()),
        with_entity={split: int(new_entity[t[:, [0, 2]]].any(axis=1).sum()) for split, t in triples.items()},
        with_relation={split: int(new_relation[t[:, 1]].sum()) for split, t in triples.items()},
    )


def _degree(graph: Graph) -> Degree:
    degrees = np.bincount(graph.triples[:, [0, 2]].ravel(), minlength=len(graph.entities))
    top = np.argsort(-degrees, kind="stable")[:TOP]
    top = top[degrees[top] > 0]
    return Degree(
        mean=float(degrees.mean()),
        median=float(np.median(degrees)),
        max=int(degrees.max()),
        most_connected=tuple((graph.entities.label(index), int(degrees[index])) for index in top.tolist()),
    )


def _length(triples: Ints | None) -> int:
    return 0 if triples is None else len(triples)
