"""What a judgement is about: a run, or a model with a graph."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from relwalk.errors import RelWalkError
from relwalk.graph.graph import Graph
from relwalk.models.base import Scorer


@runtime_checkable
class Trained(Protocol):
    """A model with the graph it learned: a `Run` is one."""

    @property
    def model(self) -> Scorer: ...
    @property
    def graph(self) -> Graph: ...


def model_and_graph(trained: Scorer | Trained, graph: Graph | None, verb: str) -> tuple[Scorer, Graph]:
    """The model and the graph of `verb(run)` or of `verb(model, graph)`."""
    if graph is not None and not isinstance(graph, Graph):
        raise RelWalkError(f"{verb}: the second argument is {graph!r}; expected a Graph. Say split={graph!r}?")
    if isinstance(trained, Scorer):
        if graph is None:
            raise RelWalkError(f"{verb}: found a model without a graph. Say {verb}(model, graph), or {verb}(run).")
        return trained, graph
    if not isinstance(trained, Trained):
        raise RelWalkError(f"{verb}: found {type(trained).__name__}; expected a run, or a model and a graph.")
    return trained.model, graph if graph is not None else trained.graph
