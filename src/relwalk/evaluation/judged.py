"""Triples by name, each with the probability that it is true."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from relwalk.checks import check_number, check_seed, shown
from relwalk.display import Shown, caption, html_table
from relwalk.errors import RelWalkError
from relwalk.evaluation.classification import fit_classifier
from relwalk.evaluation.labelled import triple_keys
from relwalk.evaluation.trained import Trained, model_and_graph
from relwalk.graph.graph import Graph
from relwalk.graph.lists import Ints


@dataclass(frozen=True)
class JudgedTriple:
    """A triple, how probably it is true, on which side of the threshold it is, and whether the graph holds it."""

    head: str
    relation: str
    tail: str
    score: float
    probability: float
    verdict: bool
    known: bool


@dataclass(frozen=True, repr=False)
class JudgedTriples(Shown):
    """Triples in the order they were given; prints itself."""

    triples: tuple[JudgedTriple, ...]
    base_rate: float
    negatives: str  # where the false triples came from that it was fitted on

    def __iter__(self) -> Iterator[JudgedTriple]:
        return iter(self.triples)

    def __len__(self) -> int:
        return len(self.triples)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"triples": [asdict(triple) for triple in self.triples]}

    @property
    def note(self) -> str:
        return f"probability: if {self.base_rate:.3g} of all triples asked about are true; false ones: {self.negatives}"

    def summary(self) -> str:
        return f"{sum(t.verdict for t in self.triples):,} of {len(self):,} triples judged true"

    def _rows(self) -> list[tuple[str, str, str, str]]:
        return [
            (
                f"{t.head}  {t.relation}  {t.tail}",
                f"{t.probability:.2%}",
                "true" if t.verdict else "false",
                "known" if t.known else "new",
            )
            for t in self.triples
        ]

    def _repr_html_(self) -> str:
        return html_table(("triple", "probability", "verdict", ""), self._rows()) + caption(self.note)

    def __str__(self) -> str:
        rows = [("triple", "probability", "verdict", ""), *self._rows()]
        width = max(len(row[0]) for row in rows)
        lines = [f"{name:{width}}  {p:>11}  {verdict:>7}  {known}".rstrip() for name, p, verdict, known in rows]
        return "\n".join([*lines, self.note])


def judge_triples(
    run: Trained,
    triples: Iterable[tuple[str, str, str]],
    *,
    combine: bool = False,
    base_rate: float | None = None,
    seed: int = 0,
) -> JudgedTriples:
    """How probably each (head, relation, tail) is true, by name or label.

    Thresholds and probabilities are fitted on valid, with the graph's own false triples or ones drawn by the seed, as
    `classify` does, `combine` included: scores are then log-odds of all that speaks for a triple. `base_rate` is how
    many of the triples asked about are thought to be true; left out, as many as among those that it is fitted on,
    which is half where they are drawn.
    """
    check_seed(seed)
    if base_rate is not None:
        base_rate = check_number("base_rate", base_rate, 1e-9, 1 - 1e-9)
    model, graph = model_and_graph(run, None, "judge_triples")
    ids = _ids(graph, triples)
    scores_of, thresholds, truth = fit_classifier(model, graph, combine=combine, base_rate=base_rate, seed=seed)
    scores = scores_of(ids) if len(ids) else np.zeros(0)
    margins = scores - thresholds.per_relation[ids[:, 1]]
    known = np.isin(triple_keys(ids, graph), triple_keys(graph.triples, graph))
    columns = (scores.tolist(), truth.probability(margins).tolist(), (margins >= 0).tolist(), known.tolist())
    entity, relation = graph.entities.label, graph.relations.label
    found = tuple(
        JudgedTriple(entity(h), relation(r), entity(t), *rest)
        for (h, r, t), *rest in zip(ids.tolist(), *columns, strict=True)
    )
    shipped = graph.valid_negatives is not None
    return JudgedTriples(found, truth.base_rate, "the data set's own" if shipped else f"drawn, seed {seed}")


def _ids(graph: Graph, triples: Iterable[tuple[str, str, str]]) -> Ints:
    found = []
    for triple in triples:
        if isinstance(triple, str) or len(triple) != 3 or not all(isinstance(name, str) for name in triple):
            raise RelWalkError(f"found {shown(triple)}; expected (head, relation, tail), by name")
        head, relation, tail = triple
        found.append((graph.entities.id(head), graph.relations.id(relation), graph.entities.id(tail)))
    return np.array(found, np.int32).reshape(-1, 3)
