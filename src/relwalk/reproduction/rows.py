"""The rows of a table of the paper: which systems, each with what is asked of its training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from relwalk.checks import check_seconds, check_seed, check_whole
from relwalk.comparing import plan_rows
from relwalk.errors import RelWalkError, choose
from relwalk.graph.graph import Graph
from relwalk.models import MODELS
from relwalk.recipes import RECIPES
from relwalk.report.paper import PAPER_TABLE
from relwalk.reproduction.record import result_name

TARGETS = ("table2", "table3", "figure1", "figure2")
DATASETS = {"table2": ("fb15k-237", "wn18rr", "fb13"), **dict.fromkeys(TARGETS[1:], ("wn18rr",))}  # of the paper
# What belongs to a system beside its model: CP-N3 is CP with the nuclear 3-norm, which is usual here, and these.
OF_A_SYSTEM: dict[str, dict[str, Any]] = {"cp": {"reciprocal": True}}


@dataclass(frozen=True)
class Row:
    """One training of a table: of a model on a graph, by a recipe and a seed."""

    graph: Graph
    source: str  # that it was read from
    model: str
    recipe: str
    seed: int
    asked: Mapping[str, Any] = field(default_factory=dict)  # where it departs from the recipe

    @property
    def name(self) -> str:
        return result_name(self.graph.name, self.model, self.recipe, self.seed, self.asked)


def plan(
    target: str,
    graphs: Mapping[str, Graph],
    *,
    recipe: str = "default",
    models: Sequence[str] | None = None,
    seeds: Sequence[int] = (0,),
    config: Mapping[str, Any] | Path | str | None = None,
    epochs: int | None = None,
    budget: str | float | None = None,
    dim: int | None = None,
) -> list[Row]:
    """The rows of a target, RelWalk first. Recipes speak of RelWalk; another system has what is usual for it.

    `graphs` are by what they were read from. `models` are all systems of the table when left out; only RelWalk has
    what Table 3 and the figures show.
    """
    choose("target", target, dict.fromkeys(TARGETS))
    choose("recipe", recipe, RECIPES)
    common: dict[str, Any] = {}
    if epochs is not None:
        common["epochs"] = check_whole("epochs", epochs)
    if budget is not None:
        common["budget"] = check_seconds("budget", budget)
    if not seeds or len(set(seeds)) < len(seeds):
        raise RelWalkError(f"seeds is {list(seeds)}; expected numbers, each once")
    rows = []
    for source, graph in graphs.items():
        names = list(models) if models is not None else systems(graph) if target == "table2" else ["relwalk"]
        for name in names:
            choose("model", name, MODELS)
        for row in plan_rows(sorted(names, key=lambda name: name != "relwalk"), config, dim):
            settings = {key: value for key, value in row.asked.items() if key != "model"}
            model = row.asked["model"]
            if "recipe" in settings:
                raise RelWalkError("the recipe is one for all rows. Say --recipe, and leave it out of --config.")
            asked = {**OF_A_SYSTEM.get(model, {}), **settings, **common}
            used = recipe if model == "relwalk" else "default"
            rows += [Row(graph, source, model, used, check_seed(seed), asked) for seed in seeds]
    return rows


def systems(graph: Graph) -> list[str]:
    """The models of the paper's table for a graph; for one that it does not have, of the table for such a task."""
    own = [row.model for row in PAPER_TABLE if row.dataset == graph.name]
    alike = "fb13" if graph.test_negatives is not None else "wn18rr"
    return own or [row.model for row in PAPER_TABLE if row.dataset == alike]
