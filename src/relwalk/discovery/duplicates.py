"""Entities that are probably one: near each other, and each fit to do what the other does.

Pairs are entities among the `NEIGHBOURS` nearest of each other, by the cosine of their vectors. Two that are linked by
a relation which links no entity to itself are two, and left out: a neighbour is no duplicate. For each pair, what
either does is asked of the other: of (a, R, x) how well b stands as the answer to (?, R, x),

    fit = 1 where the graph has (b, R, x), else p(b | R, x) / p(the best new answer | R, x)

and the overlap of the two is the mean of these over all facts of both, with weights: a role that few entities have says
more than one that many have, log(entities / answers to the question). Links between the two do not count, and `PRIOR`
roles that do not fit are added, so that one fact in common is no proof. The score is overlap times cosine.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

from relwalk.checks import check_whole
from relwalk.discovery.best import Doubles
from relwalk.discovery.evidence import is_known
from relwalk.discovery.judged import Judge
from relwalk.discovery.links import MOST, check_run
from relwalk.discovery.neighbours import Singles, directions, nearest
from relwalk.discovery.sweep import Sweep
from relwalk.discovery.table import Column, Tabular, named
from relwalk.graph.answers import SIDES, Side
from relwalk.graph.graph import Graph
from relwalk.graph.lists import Ints, Lists, Longs
from relwalk.progress import Count, OnProgress, Progress
from relwalk.progress import shown as shown_progress
from relwalk.runs.run import Run

LOOKED_AT, NEIGHBOURS = 40, 10  # nearest entities, linked ones among them; those that count
PAIRS, FEWEST = 4, 5_000  # pairs whose facts are compared: so many times k, and at least so many
FACTS = 64  # of an entity that are compared, those of the rarest roles
PRIOR = 1.0


@dataclass(frozen=True, eq=False, repr=False)
class Duplicates(Tabular):
    """Pairs of entities, the most probable duplicates first; prints itself."""

    graph: Graph
    pairs: Ints  # (pairs, 2)
    cosine: Doubles
    overlap: Doubles
    facts: Ints  # (pairs, 2) that were compared, of each
    compared: int  # pairs

    @property
    def score(self) -> Doubles:
        """Overlap times cosine."""
        return self.overlap * self.cosine

    def __len__(self) -> int:
        return len(self.pairs)

    def frame(self) -> pl.DataFrame:
        """A row for each pair: names, labels, score, overlap, cosine, and how many facts of each were compared."""
        return self._frame

    @cached_property
    def _frame(self) -> pl.DataFrame:
        one, other = self.pairs.T
        return pl.DataFrame(
            {
                **named(self.graph, entity=one, other=other),
                "score": self.score,
                "overlap": self.overlap,
                "cosine": self.cosine,
                "entity_facts": self.facts[:, 0],
                "other_facts": self.facts[:, 1],
            }
        )

    def columns(self) -> tuple[Column, ...]:
        return (
            Column("entity", "entity_label"),
            Column("other", "other_label"),
            Column("score", "score", "{:.2f}"),
            Column("overlap", "overlap", "{:.0%}"),
            Column("cosine", "cosine", "{:.2f}"),
            Column("facts", "entity_facts", "{:,}"),
            Column("other's", "other_facts", "{:,}"),
        )

    def title(self) -> str:
        return (
            f"{len(self):,} pairs of entities of {self.graph.name}, the most probable duplicates of {self.compared:,}"
        )

    def remarks(self) -> tuple[str, ...]:
        return (
            "overlap: how much of what either does the other does too, or would do as well as the best that does not "
            "yet, rare roles counting more and links between the two not at all; score: overlap times cosine",
        )

    def as_dict(self) -> dict[str, Any]:
        return {"graph": self.graph.name, "compared": self.compared, "pairs": self.frame().to_dicts()}


def duplicates(run: Run, *, k: int = 100, block: int | None = None, progress: Progress = None) -> Duplicates:
    """The k pairs of entities that are most probably the same, of those near each other in a run's vectors."""
    graph, size = check_run(run).graph, check_whole("k", k, 1, MOST)
    with shown_progress(progress) as on_progress:
        count = Count(on_progress, len(graph.entities), "comparing entities")
        near, cosines = nearest(directions(run.model), LOOKED_AT, count.add)
        pairs, close = mutual(graph, near, cosines)
        first = np.lexsort((pairs[:, 1], pairs[:, 0], -close))[: max(PAIRS * size, FEWEST)]
        pairs, cosine = pairs[first], close[first].astype(np.float64)
        sweep = Sweep(run.model, graph, Judge(run.probabilities, None), run.keys, block)
        overlap, facts = overlaps(sweep, pairs, on_progress)
    score = overlap * cosine
    best = np.lexsort((pairs[:, 1], pairs[:, 0], -score))[:size]
    return Duplicates(graph, pairs[best], cosine[best], overlap[best], facts[best], len(pairs))


def mutual(graph: Graph, near: Ints, cosines: Singles) -> tuple[Ints, Singles]:
    """Pairs of entities that may be one and are each among the neighbours of the other, the lower id first, and their
    cosines; `near` are the nearest of each entity, nearest first."""
    entities = len(near)
    one, other = np.repeat(np.arange(entities), near.shape[1]), near.ravel().astype(np.int64)
    may = ~np.isin(_numbered(one, other, entities), _told_apart(graph))
    rank = np.cumsum(may.reshape(near.shape), 1).ravel()  # among those that may
    counts = may & (rank <= NEIGHBOURS)
    there, back = one * entities + other, other * entities + one
    kept = np.flatnonzero(counts & (one < other) & np.isin(there, back[counts]))
    return np.stack([one[kept], other[kept]], 1).astype(np.int32), cosines.ravel()[kept]


def _told_apart(graph: Graph) -> Longs:
    """The pairs that a relation links which links no entity to itself."""
    h, r, t = graph.triples.T
    some = ~graph.has_loops[r]
    return _numbered(h[some], t[some], len(graph.entities))


def _numbered(one: NDArray[np.integer], other: NDArray[np.integer], entities: int) -> Longs:
    """A number for each two entities, whichever comes first."""
    found: Longs = np.minimum(one, other).astype(np.int64) * entities + np.maximum(one, other)
    return found


@torch.inference_mode()
def overlaps(sweep: Sweep, pairs: Ints, on_progress: OnProgress) -> tuple[Doubles, Ints]:
    """The overlap of each pair, and how many facts of each were compared.  # (pairs,), (pairs, 2)"""
    graph = sweep.graph
    roles = Roles(graph)
    fits, weights = np.zeros(len(pairs)), np.full(len(pairs), PRIOR * np.log(len(graph.entities)))
    facts = np.zeros(pairs.shape, np.int32)
    for place in (0, 1):
        taken = roles.lists.take(pairs[:, place])
        pair, role = taken.row_of_each_value(), taken.values
        other = pairs[pair, 1 - place]
        stays = roles.given[role] != other  # what links the two says nothing
        pair, role, other = pair[stays], role[stays], other[stays]
        fit = _fit(sweep, roles, role, other, Count(on_progress, len(role), f"comparing facts, {place + 1} of 2"))
        np.add.at(fits, pair, fit * roles.weight[role])
        np.add.at(weights, pair, roles.weight[role])
        facts[:, place] = np.bincount(pair, minlength=len(pairs))
    return fits / weights, facts


class Roles:
    """What entities do: a fact (a, R, x) is the role of an answer to (?, R, x), and (x, R, a) of one to (x, R, ?)."""

    def __init__(self, graph: Graph) -> None:
        h, r, t = graph.triples.T
        answers = {side: _answers(graph, side) for side in SIDES}
        self.side = np.repeat([0, 1], len(h))  # the place in SIDES: what the entity is an answer for
        self.given, self.relation = np.concatenate([t, h]), np.concatenate([r, r])
        entity = np.concatenate([h, t])
        self.weight = np.log(len(graph.entities) / np.concatenate([answers["head"], answers["tail"]]))
        order = np.lexsort((np.arange(len(entity)), -self.weight, entity))  # the rarest first
        ends = np.searchsorted(entity[order], np.arange(len(graph.entities) + 1))
        within = np.arange(len(order)) - ends[entity[order]]
        kept = within < FACTS
        offsets = np.concatenate([[0], np.cumsum(np.minimum(np.diff(ends), FACTS))])
        self.lists = Lists(offsets, order[kept].astype(np.int32))  # of each entity its roles


def _answers(graph: Graph, side: Side) -> Longs:
    """How many answers the question of this side has that each triple answers."""
    given = graph.triples[:, 0 if side == "tail" else 2]
    known = graph.known[side]
    return known.lists.lengths[known.rows(given, graph.triples[:, 1])]


def _fit(sweep: Sweep, roles: Roles, role: Ints, entity: Ints, count: Count) -> Doubles:
    """How well each entity stands in a role.  # (roles,)"""
    found = np.zeros(len(role))
    for place, side in enumerate(SIDES):
        mine = np.flatnonzero(roles.side[role] == place)
        given, relation, answer = roles.given[role[mine]], roles.relation[role[mine]], entity[mine]
        ends = (answer, relation, given) if side == "head" else (given, relation, answer)
        known = is_known(sweep.graph, np.stack(ends, 1))
        found[mine[known]] = 1.0
        new = mine[~known]
        given, relation, answer = given[~known], relation[~known], answer[~known]
        for block, rows, own in sweep.asking(side, given, relation):
            logits = block.logits(rows, answer[own])
            found[new[own]] = np.exp(np.minimum(logits - block.best[rows], 0.0))
            count.add(len(own))
    return found
