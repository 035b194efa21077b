"""A relation's card: what it links, how well it is learned, what its matrix is, and which relations are its kin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from relwalk.errors import RelWalkError
from relwalk.evaluation.estimate import Absent
from relwalk.evaluation.ranking import rank
from relwalk.evaluation.result import RankingResult
from relwalk.graph.cardinality import usage
from relwalk.graph.graph import SPLITS, Graph, Split
from relwalk.report.png import heat_png
from relwalk.serve.entity import fact
from relwalk.serve.opened import Opened
from relwalk.theory.orthogonality import Orthogonality, matrices_of, orthogonality, to_unit
from relwalk.theory.relation_similarity import RelationSimilarity, relation_similarity

Matrix = Literal["M", "R1R1", "R2R2"]
EXAMPLES = 12
NO_JUDGING = "graph {!r} has no test or valid triples to judge the model by."


def once(opened: Opened, what: str, make: Callable[[], Any]) -> Any:
    """What is made of a run the first time that it is asked for."""
    if what not in opened.made:
        opened.made[what] = make()
    return opened.made[what]


def ranking(opened: Opened) -> RankingResult | Absent:
    """Ranks on test, or on valid where there is no test."""
    graph = opened.run.graph
    split: Split | None = "test" if len(graph.test) else "valid" if len(graph.valid) else None
    if split is None:
        return Absent(NO_JUDGING.format(graph.name))
    found: RankingResult = once(opened, "ranking", lambda: rank(opened.run.model, graph, split, progress=False))
    return found


def listing(opened: Opened) -> list[dict[str, Any]]:
    """All relations, the most frequent first."""
    graph = opened.run.graph
    used = once(opened, "usage", lambda: usage(graph))
    facts = np.bincount(graph.triples[:, 1], minlength=len(graph.relations))
    kinds = used.cardinalities()
    order = np.argsort(-facts, kind="stable").tolist()
    names, label = graph.relations.names, graph.relations.label
    return [{"name": names[r], "label": label(r), "facts": int(facts[r]), "cardinality": kinds[r]} for r in order]


def card(opened: Opened, relation: int) -> dict[str, Any]:
    """All that is known of a relation."""
    graph = opened.run.graph
    used = once(opened, "usage", lambda: usage(graph))
    return {
        "run": opened.name,
        "name": graph.relations.names[relation],
        "label": graph.relations.label(relation),
        "facts": {s: int((graph.split(s)[:, 1] == relation).sum()) for s in SPLITS},
        "heads": len(graph.argument_lists["head"][relation]),
        "tails": len(graph.argument_lists["tail"][relation]),
        "cardinality": used.cardinalities()[relation],
        "tails_per_head": float(used.tails_per_head[relation]),
        "heads_per_tail": float(used.heads_per_tail[relation]),
        "accuracy": _accuracy(opened, relation),
        "matrix": _geometry(opened, relation),
        "partners": _partners(opened, relation),
        "examples": _examples(graph, relation),
    }


def _accuracy(opened: Opened, relation: int) -> dict[str, Any]:
    found = ranking(opened)
    if isinstance(found, Absent):
        return {"absent": found.reason}
    mine = found.triples[:, 1] == relation
    if not mine.any():
        return {"absent": f"no {found.protocol.split} triple has this relation."}
    figures: dict[str, Any] = {side: found.metrics(side, where=mine).as_dict() for side in ("head", "tail", "both")}
    return {"protocol": str(found.protocol), "triples": int(mine.sum()), **figures}


def _geometry(opened: Opened, relation: int) -> dict[str, Any]:
    found = measured(opened)
    return {"absent": found.reason} if isinstance(found, Absent) else found.relations[relation].as_dict()


def measured(opened: Opened) -> Orthogonality | Absent:
    found: Orthogonality | Absent = once(
        opened, "orthogonality", lambda: orthogonality(opened.run.model, opened.run.graph)
    )
    return found


def _partners(opened: Opened, relation: int) -> dict[str, Any]:
    """The relations that are alike, inverse or composed with this one."""
    graph = opened.run.graph
    found: RelationSimilarity | Absent = once(
        opened, "similarity", lambda: relation_similarity(opened.run.model, graph, most=200)
    )
    if isinstance(found, Absent):
        return {"absent": found.reason}
    name, kinds = graph.relations.names[relation], ("alike", "inverse", "composed")
    mine = {kind: [s for s in getattr(found, kind) if name in s.relations] for kind in kinds}
    return {
        "threshold": found.threshold,
        "chance": found.chance,
        **{kind: [s.as_dict() | {"words": str(s)} for s in own] for kind, own in mine.items()},
    }


def _examples(graph: Graph, relation: int) -> list[dict[str, Any]]:
    rows = graph.train[graph.train[:, 1] == relation]
    spread = np.unique(np.linspace(0, max(len(rows) - 1, 0), EXAMPLES).astype(np.int64))
    return [fact(graph, *rows[i].tolist()) for i in spread.tolist()] if len(rows) else []


def picture(opened: Opened, relation: int, which: Matrix) -> bytes:
    """A heat map of M, or of RᵀR, as PNG."""
    found = matrices_of(opened.run.model)
    if isinstance(found, Absent):
        raise RelWalkError(found.reason)
    if which == "M":
        own = to_unit(found.M[relation].float()) if found.R1 is None else found.M[relation].float()
        return heat_png(own.numpy(), float(own.abs().max()) or 1.0)
    pair = found.pair(relation)
    if pair is None:
        raise RelWalkError(f"{opened.run.model.title} has M alone, and no {which[:2]}. Ask for M.")
    R = pair[0 if which == "R1R1" else 1]
    gram = (R.mT @ R).float().numpy()
    return heat_png(gram, 1.0)
