"""What a search tries: all that the settings of a training, its objective and its model declare, but for what was given
by hand and what does not fit the graph."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any

from relwalk.errors import RelWalkError
from relwalk.graph.graph import Graph
from relwalk.models import MODELS, Scorer, model_options
from relwalk.planning import plan
from relwalk.runs.record import RunRecord
from relwalk.space import Among, Between, Search
from relwalk.training.common import CommonSettings
from relwalk.training.settings import INSTEAD, OWNERS, TrainingSettings, own_names


@dataclass(frozen=True)
class Space:
    """What is searched, and around what."""

    searched: dict[str, Search]
    usual: dict[str, Any]  # what the default recipe has of it; None where that is left to the model
    left_out: dict[str, str]  # what does not fit, and why
    default: RunRecord  # the default recipe, with what was given by hand


def search_space(graph: Graph, fixed: Mapping[str, Any]) -> Space:
    """The space for a graph. `fixed` is what was given by hand: settings, options, and model, recipe and dim."""
    default = plan(graph, **fixed)
    kind = MODELS[default.model.name]
    given = {*fixed, *(other for pair in INSTEAD for other in pair if set(pair) & set(fixed))}
    declared = {**declared_settings(default.training, given), **kind.searched()}
    values = usual_values(default, kind)
    searched, left_out = {}, {}
    for name, search in declared.items():
        if search is None or name in given:
            continue
        if isinstance(search, Between) and search.times:
            search = search.around(values[name])
        found, reason = _fitting(graph, fixed, name, search)
        if found is not None:
            searched[name] = found
        else:
            left_out[name] = reason
    return Space(searched, {name: values.get(name) for name in searched}, left_out, default)


def declared_settings(training: TrainingSettings, given: Container[str]) -> dict[str, Search | None]:
    """What the settings declare that a training with this objective and this schedule has.

    Where objective or schedule are searched themselves, what belongs to one of them stays as it is.
    """
    found = {name: _declared(CommonSettings, name) for name in CommonSettings.model_fields}
    for kind, choices in OWNERS.items():
        found[kind] = _declared(TrainingSettings, kind)
        settings = choices[getattr(training, kind).name]
        if found[kind] is None or kind in given:
            found |= {name: _declared(settings, name) for name in own_names(settings)}
    return found


def _declared(settings: Any, name: str) -> Search | None:
    found: Search | None = settings.model_fields[name].json_schema_extra["search"]
    return found


def usual_values(record: RunRecord, kind: type[Scorer]) -> dict[str, Any]:
    """Every setting and option of a training by name, and dim."""
    options = {name: option.default for name, option in model_options(kind).items()}
    return {**options, **record.model.options, **record.training.flat(), "dim": record.model.dim}


def _fitting(graph: Graph, fixed: Mapping[str, Any], name: str, search: Search) -> tuple[Search | None, str]:
    """What can be tried of a setting beside what is fixed; None and the reason where that is nothing."""
    fits, reason = [], "there is nothing to choose"
    for value in search.ends():
        try:
            plan(graph, **{**fixed, name: value})
            fits.append(value)
        except RelWalkError as error:
            reason = str(error)
    if isinstance(search, Between):
        return (search if len(fits) == 2 else None), reason
    return (Among(tuple(fits)) if len(fits) > 1 else None), reason
