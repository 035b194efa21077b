"""The edges around an entity, known and predicted, for a drawing."""

from __future__ import annotations

from typing import Any

from relwalk.answers import Answers
from relwalk.serve.entity import Role, known_facts, new_facts
from relwalk.serve.opened import Opened


def neighbourhood(
    opened: Opened, entity: int, own: list[Role], answered: list[Answers], known: int, predicted: int
) -> dict[str, Any]:
    """Nodes and edges: at most so many known ones, of all roles in turn, and the most confident new ones."""
    graph, name = opened.run.graph, opened.run.graph.entities.names[entity]
    old = known_facts(graph, entity, own, known) if known else []
    new = new_facts(graph, answered, own)[:predicted]
    for found in new:
        found["tail" if found["side"] == "head" else "head"] = name
    edges = [{**found, "known": True} for found in old] + [{**found, "known": False} for found in new]
    nodes = {name: graph.entities.label(entity)}
    for edge in edges:
        nodes |= {edge["head"]: edge["head_label"], edge["tail"]: edge["tail_label"]}
    ids = {n: graph.entities.id(n) for n in nodes}
    return {
        "run": opened.name,
        "centre": name,
        "nodes": [
            {"id": ids[n], "name": n, "label": label, "facts": int(opened.degree[ids[n]])} for n, label in nodes.items()
        ],
        "edges": edges,
    }
