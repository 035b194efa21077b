"""Ways from one entity to another through known facts, and how often such a way means a relation.

A way is one fact or two, each walked forwards or backwards. Its rule is the relations it takes, R(x, z) ⇐ a(x, y),
b(y, z), and the rule holds as often as pairs that are linked so are linked by R too.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from relwalk.graph.graph import Graph
from relwalk.graph.lists import Longs
from relwalk.serve.entity import fact

Step = tuple[int, bool]  # a relation, and whether it is walked backwards
MOST = 60  # ways looked at
SHOWN = 5
STARTS = 400  # entities that a rule is tried from


@dataclass(frozen=True)
class Way:
    """The triples of a way, and how often its rule holds, of how many pairs."""

    triples: tuple[tuple[int, int, int], ...]
    backwards: tuple[bool, ...]
    holds: float
    pairs: int

    def as_dict(self, graph: Graph) -> dict[str, Any]:
        words = " then ".join(
            f"{graph.relations.label(r)}{' backwards' if back else ''}"
            for (_, r, _), back in zip(self.triples, self.backwards, strict=True)
        )
        steps = [
            fact(graph, *triple, backwards=back) for triple, back in zip(self.triples, self.backwards, strict=True)
        ]
        return {"rule": words, "holds": self.holds, "pairs": self.pairs, "steps": steps}


def ways(graph: Graph, head: int, relation: int, tail: int) -> list[Way]:
    """The ways from head to tail, those first whose rule holds most often; the asked fact itself is none."""
    asked = (head, relation, tail)
    found: dict[tuple[Step, ...], tuple[tuple[int, int, int], ...]] = {}
    for way in islice(_one_or_two(graph, head, tail), MOST):
        triples = tuple(triple for triple, _ in way)
        if asked not in triples:
            found.setdefault(tuple((r, back) for (_, r, _), back in way), triples)
    rated = [_rated(graph, relation, rule, triples) for rule, triples in found.items()]
    best = sorted((way for way in rated if way.holds > 0), key=lambda way: (-way.holds, -way.pairs))
    # A relation that goes both ways makes the same rule several times.
    once = {(*(r for _, r, _ in way.triples), way.holds, way.pairs): way for way in reversed(best)}
    return list(reversed(once.values()))[:SHOWN]


def _one_or_two(graph: Graph, head: int, tail: int) -> Any:
    """(triple, backwards) of each step."""
    triples = graph.triples
    from_head, to_tail = _touching(triples, head), _touching(triples, tail)
    for triple, back, other in from_head:
        if other == tail:
            yield ((triple, back),)
    ends: dict[int, list[Any]] = {}
    for triple, back, other in to_tail:
        ends.setdefault(other, []).append((triple, not back))  # walked towards the tail
    for triple, back, other in from_head:
        if other not in (head, tail):
            for second in ends.get(other, ()):
                yield ((triple, back), second)


def _touching(triples: Any, entity: int) -> list[tuple[tuple[int, int, int], bool, int]]:
    """Triples with an entity, whether it is their tail, and the other end."""
    rows = triples[(triples[:, 0] == entity) | (triples[:, 2] == entity)][:5000].tolist()
    return [((h, r, t), h != entity, t if h == entity else h) for h, r, t in rows]


def _rated(graph: Graph, relation: int, rule: tuple[Step, ...], triples: tuple[tuple[int, int, int], ...]) -> Way:
    starts = _starts(graph, rule[0])
    reached = _links(graph, rule[0])[starts]
    for step in rule[1:]:
        reached = reached @ _links(graph, step)
    reached.data[:] = 1
    truth = _links(graph, (relation, False))[starts]
    pairs = reached.nnz - sum(int(reached[[row], [start]][0] > 0) for row, start in enumerate(starts.tolist()))
    both = int((reached * truth).nnz)
    return Way(triples, tuple(back for _, back in rule), both / pairs if pairs else 0.0, pairs)


def _starts(graph: Graph, step: Step) -> Longs:
    """Entities that the first step can be taken from, evenly some of them."""
    relation, back = step
    own = graph.argument_lists["tail" if back else "head"][relation]
    return np.unique(own[np.linspace(0, len(own) - 1, min(STARTS, len(own))).astype(np.int64)]).astype(np.int64)


def _links(graph: Graph, step: Step) -> csr_array:
    relation, back = step
    rows = graph.triples[graph.triples[:, 1] == relation]
    start, end = (rows[:, 2], rows[:, 0]) if back else (rows[:, 0], rows[:, 2])
    size = len(graph.entities)
    table = csr_array((np.ones(len(rows), np.float32), (start, end)), shape=(size, size))
    table.sum_duplicates()
    table.data[:] = 1
    return table
