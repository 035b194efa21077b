"""Why a link is predicted: the known facts that it rests on, and the ways that lead there.

The facts that support it most are found from the slopes of the model, and the finding is tested: its two entities are
learned anew without them, and as a control without as many others. See `relwalk.serve.relearn`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from relwalk.answers import Answer
from relwalk.graph.answers import Side
from relwalk.graph.graph import Graph
from relwalk.graph.lists import Longs
from relwalk.prediction import predict
from relwalk.runs.run import Run
from relwalk.serve.entity import fact
from relwalk.serve.paths import Way, ways
from relwalk.serve.relearn import Doubles, Relearner, Standing

FACTS = 64  # of the two entities that are looked at
SUPPORT, PART = 3, 8  # facts that are taken away: so many, or one of so many
LISTED = 8
RIVALS = 100  # best answers that are candidates in any case
CODED = "Its entities are kept as codes, which cannot be learned anew: ask the run that was compressed."


@dataclass(frozen=True, eq=False)
class Why:
    """Facts by what they are worth to the answer, and where it stands with all, without the best, without others."""

    graph: Graph
    question: tuple[int, int, int]
    side: Side
    facts: Longs  # (facts, 3), the most supporting first
    influence: Doubles  # of each: about how much the log of the share falls without it
    taken: int  # so many of the first were taken away
    standing: dict[str, Standing]  # "all", "without", "control"
    ways: list[Way]
    absent: str | None = None

    def as_dict(self) -> dict[str, Any]:
        rows = zip(self.facts.tolist(), self.influence.tolist(), strict=True)
        return {
            **fact(self.graph, *self.question),
            "side": self.side,
            "facts": [
                fact(self.graph, *row, influence=worth, taken=i < self.taken) for i, (row, worth) in enumerate(rows)
            ],
            "check": {name: {"share": s.share, "place": s.place} for name, s in self.standing.items()},
            "taken": self.taken,
            "ways": [way.as_dict(self.graph) for way in self.ways],
            "absent": self.absent,
        }


def why(run: Run, head: str, relation: str, tail: str, *, side: Side = "tail", seed: int = 0) -> Why:
    """What speaks for (head, relation, tail) as the answer to the question for its `side`."""
    graph = run.graph
    question = graph.entities.id(head), graph.relations.id(relation), graph.entities.id(tail)
    found = ways(graph, *question)
    facts = _facts(graph, question, seed)
    if run.model.coded or len(facts) == 0:
        reason = CODED if run.model.coded else "Train has no other fact of either."
        return Why(graph, question, side, facts[:0], np.zeros(0), 0, {}, found, reason)
    own = Relearner(run.model, graph, question, facts, _rivals(run, question), seed)
    every = np.ones(len(facts), np.bool_)
    own.learn(every)
    standing = {"all": own.standing(side)}
    influence = own.influence(side)
    order = np.argsort(-influence, kind="stable")
    taken = min(max(SUPPORT, len(facts) // PART), int((influence > 0).sum()))
    near_nothing = np.argsort(np.abs(influence), kind="stable")
    control = near_nothing[~np.isin(near_nothing, order[:taken])][:taken]
    for name, rows in (("without", order[:taken]), ("control", control)):
        if taken and (name == "without" or len(control) == taken):
            keep = every.copy()
            keep[rows] = False
            own.learn(keep)
            standing[name] = own.standing(side)
    first = order[:LISTED]
    return Why(graph, question, side, facts[first], influence[first], taken, standing, found)


def _facts(graph: Graph, question: tuple[int, int, int], seed: int) -> Longs:
    """The facts that the two entities were learned from, the asked one aside."""
    triples = graph.train.astype(np.int64)
    head, _, tail = question
    mine = np.isin(triples[:, 0], [head, tail]) | np.isin(triples[:, 2], [head, tail])
    rows = np.flatnonzero(mine & ~(triples == np.array(question)).all(1))
    if len(rows) > FACTS:
        rows = np.sort(np.random.default_rng(seed).choice(rows, FACTS, replace=False))
    return triples[rows]


def _rivals(run: Run, question: tuple[int, int, int]) -> Longs:
    """The best answers to both questions."""
    names, (head, relation, tail) = run.graph.entities.names, question
    asked = run.graph.relations.names[relation]
    found: list[Answer] = [
        *predict(run, head=names[head], relation=asked, k=RIVALS, raw=True),
        *predict(run, relation=asked, tail=names[tail], k=RIVALS, raw=True),
    ]
    return np.array([run.graph.entities.id(answer.name) for answer in found], np.int64)
