"""An entity's card: what the graph says of it, what it lacks, and who is like it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from relwalk.answers import Answers
from relwalk.graph.answers import SIDES, Side
from relwalk.graph.graph import SPLITS, Graph
from relwalk.prediction import Query
from relwalk.serve.opened import Opened

FACTS = 200  # known ones of a card
NEAREST = 8
NEW = 5  # proposed for each of its roles
MOST_NEW = 40  # of a card
ROLES = 60  # that are asked about


@dataclass(frozen=True)
class Role:
    """A relation that an entity stands in, as its head or as its tail, and how often."""

    relation: int
    side: Side  # what is asked: "tail" where the entity is the head
    facts: int


def roles(graph: Graph, entity: int) -> list[Role]:
    """What the graph has an entity for, the most frequent first."""
    found = []
    for side in SIDES:
        known = graph.known[side]
        first, last = np.searchsorted(known.keys, [entity * known.relations, (entity + 1) * known.relations])
        lengths = known.lists.lengths[first:last].tolist()
        relations = (known.keys[first:last] % known.relations).tolist()
        found += [Role(relation, side, facts) for relation, facts in zip(relations, lengths, strict=True)]
    return sorted(found, key=lambda role: (-role.facts, role.relation, role.side))


def questions(graph: Graph, entity: int, own: list[Role]) -> list[Query]:
    """What is asked to find its missing facts: each of its roles once more."""
    name, relations = graph.entities.names[entity], graph.relations.names
    return [
        (name, relations[role.relation], None) if role.side == "tail" else (None, relations[role.relation], name)
        for role in own[:ROLES]
    ]


def fact(graph: Graph, head: int, relation: int, tail: int, **more: Any) -> dict[str, Any]:
    """A triple by name and by label."""
    entity, relations = graph.entities, graph.relations
    return {
        "head": entity.names[head],
        "relation": relations.names[relation],
        "tail": entity.names[tail],
        "head_label": entity.label(head),
        "relation_label": relations.label(relation),
        "tail_label": entity.label(tail),
        **more,
    }


def known_facts(graph: Graph, entity: int, own: list[Role], most: int) -> list[dict[str, Any]]:
    """Facts of an entity, some of each role in turn, so that a role of thousands leaves room for the others."""
    found = []
    for row, role in enumerate(own):
        answers = graph.known[role.side].lookup(np.array([entity]), np.array([role.relation]))[0]
        found += [(place, row, other) for place, other in enumerate(answers[:most].tolist())]
    chosen = sorted(sorted(found)[:most], key=lambda one: one[1])
    ends = [((entity, other) if own[row].side == "tail" else (other, entity), own[row]) for _, row, other in chosen]
    return [fact(graph, head, role.relation, tail, side=role.side) for (head, tail), role in ends]


def new_facts(graph: Graph, answered: list[Answers], own: list[Role]) -> list[dict[str, Any]]:
    """What the questions brought, the most confident first; by share where a run has no confidences."""
    found = []
    for answers, role in zip(answered, own, strict=False):
        for answer in answers:
            names = {"head": answers.head, "tail": answers.tail}
            labels = {**names, role.side: answer.label}
            found.append(
                {
                    "head": answer.name if role.side == "head" else None,
                    "relation": graph.relations.names[role.relation],
                    "tail": answer.name if role.side == "tail" else None,
                    "head_label": labels["head"],
                    "relation_label": answers.relation,
                    "tail_label": labels["tail"],
                    "side": role.side,
                    "share": answer.share,
                    "confidence": answer.confidence,
                    "probability": answer.probability,
                }
            )
    return sorted(found, key=_worth, reverse=True)


def _worth(found: dict[str, Any]) -> tuple[float, float]:
    return (found["confidence"] or 0.0, found["share"] if found["share"] is not None else found["probability"])


@torch.inference_mode()
def nearest(opened: Opened, entity: int, count: int = NEAREST) -> list[dict[str, Any]]:
    """The entities whose vectors point the same way."""
    graph, vectors = opened.run.graph, opened.directions
    cosines = vectors @ vectors[entity]
    cosines[entity] = -torch.inf
    values, places = cosines.topk(min(count, len(cosines) - 1)) if len(cosines) > 1 else (cosines[:0], cosines[:0])
    pairs = zip(places.long().tolist(), values.tolist(), strict=True)
    return [{"name": graph.entities.names[i], "label": graph.entities.label(i), "cosine": c} for i, c in pairs]


def card(opened: Opened, entity: int, own: list[Role], answered: list[Answers]) -> dict[str, Any]:
    """All of it. `answered` are the answers to `questions`."""
    graph, name = opened.run.graph, opened.run.graph.entities.names[entity]
    new = new_facts(graph, answered, own)[:MOST_NEW]
    for found in new:
        found["tail" if found["side"] == "head" else "head"] = name
    splits = {s: int((graph.split(s)[:, [0, 2]] == entity).any(1).sum()) for s in SPLITS}
    return {
        "run": opened.name,
        "name": name,
        "label": graph.entities.label(entity),
        "facts": int(opened.degree[entity]),
        "by_split": splits,
        "roles": [
            {
                "relation": graph.relations.names[role.relation],
                "label": graph.relations.label(role.relation),
                "side": role.side,
                "facts": role.facts,
            }
            for role in own
        ],
        "known": known_facts(graph, entity, own, FACTS),
        "new": new,
        "note": next((a.note for a in answered if a.note), ""),
        "nearest": nearest(opened, entity),
    }
