"""A graph in one piece: freed of duplicates, split, and told what the split could not do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from relwalk.graph.formats.base import listing, shorten
from relwalk.graph.graph import Graph
from relwalk.graph.lists import Ints, Longs
from relwalk.graph.split import split_triples

OWN_SPLIT = "bring a folder with train.txt, valid.txt and test.txt"
TOO_FEW = f"Hold out more (--valid, --test), or {OWN_SPLIT}."
NEEDED = f"Give those entities more triples, or {OWN_SPLIT}."


def split_graph(graph: Graph, *, valid: float, test: float, seed: int) -> Graph:
    """The triples of train into train, valid and test, each triple once; what could not be held out is noted."""
    distinct = distinct_triples(graph.train, len(graph.entities), len(graph.relations))
    parts = split_triples(distinct, valid=valid, test=test, seed=seed)
    counts = " / ".join(f"{len(part):,}" for part in parts)
    notes = [f"split by seed {seed} into {counts} triples for train / valid / test"]
    duplicates = len(graph.train) - len(distinct)
    if duplicates:
        notes.insert(0, f"dropped {duplicates:,} duplicate triples")
    split = replace(graph, train=parts[0], valid=parts[1], test=parts[2])
    return replace(split, notes=(*graph.notes, *notes, *_shortcomings(split, {"valid": valid, "test": test})))


def _shortcomings(graph: Graph, shares: dict[str, float]) -> list[str]:
    """What valid and test lack of what was asked for: warnings with their reason and cure."""
    total, size = _by_relation(graph, graph.triples), len(graph.triples)
    held = {part: _by_relation(graph, graph.parts()[part]) for part, share in shares.items() if share > 0}
    empty = [part for part in held if not held[part].any()]
    notes = [_empty(part, shares[part], size) for part in empty]
    asked, found = (
        sum(counts) for counts in ([round(shares[p] * size) for p in held], [c.sum() for c in held.values()])
    )
    if found < asked and len(empty) < len(held):
        notes.append(
            f"held out {found:,} of the {asked:,} triples asked for: train needs the others, to know every name"
        )
    filled = {part: counts for part, counts in held.items() if part not in empty}
    missing = {part: (total > 0) & (counts == 0) for part, counts in filled.items()}
    nowhere = np.logical_and.reduce(list(missing.values())) if missing else np.zeros(len(total), bool)
    notes += _without(graph, " or ".join(missing), nowhere, total, sum(shares.values()))
    for part, lacking in missing.items():
        notes += _without(graph, part, lacking & ~nowhere, total, shares[part])
    return notes


def _by_relation(graph: Graph, triples: Ints) -> Longs:
    return np.bincount(triples[:, 1], minlength=len(graph.relations))


def _empty(part: str, share: float, size: int) -> str:
    if round(share * size) == 0:
        return f"warning: {part} is empty: {share} of {size:,} triples is not even one. {TOO_FEW}"
    return f"warning: {part} is empty: train needs every triple, to know every entity and relation. {NEEDED}"


def _without(
    graph: Graph, where: str, lacking: np.ndarray[tuple[int], np.dtype[np.bool_]], total: Longs, share: float
) -> list[str]:
    """The relations of which nothing was held out, by the reason: too few triples, or triples that train needs."""
    few = lacking & (total * share < 1)
    reasons = (
        ("too few triples for a share of them", few, TOO_FEW),
        ("triples that train needs, to know every entity", lacking & ~few, NEEDED),
    )
    return [
        f"warning: {where} has nothing of {count:,} relation{'s' * (count != 1)} with {reason}, so no figure speaks of "
        f"{'it' if count == 1 else 'them'}: {_names(graph, which)}. {cure}"
        for reason, which, cure in reasons
        if (count := int(which.sum()))
    ]


def _names(graph: Graph, which: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> str:
    return listing([shorten(graph.relations.label(i), 60) for i in np.flatnonzero(which).tolist()], limit=5)


def distinct_triples(triples: Ints, entities: int, relations: int) -> Ints:
    """Each triple once, in the order of first appearance."""
    if entities * entities * relations >= 2**63:  # too many for one key of 64 bits
        rows = pl.from_numpy(triples, schema=["h", "r", "t"], orient="row").unique(maintain_order=True)
        return rows.to_numpy()
    head, relation, tail = (triples[:, column].astype(np.int64) for column in range(3))
    keys = pl.Series((head * relations + relation) * entities + tail).unique(maintain_order=True).to_numpy()
    pairs, tail = np.divmod(keys, entities)
    return np.stack([*np.divmod(pairs, relations), tail], axis=1).astype(np.int32)  # (n, 3)
