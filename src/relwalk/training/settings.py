"""Every choice of a training: the common ones, its objective with its own, its schedule with its own.

Nested in run.json, `{"lr": 1.0, "objective": {"name": "margin", "margin": 5.0, ...}, ...}`, and flat wherever somebody
writes them, `objective="margin", margin=5.0`: `TrainingSettings` takes both, and `flat` gives the second.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import torch
from pydantic import SerializeAsAny, field_validator, model_validator

from relwalk.checks import MOST
from relwalk.errors import RelWalkError, choose
from relwalk.faults import settings_errors
from relwalk.graph.graph import Graph
from relwalk.models.base import Scorer
from relwalk.space import Among
from relwalk.training.common import CommonSettings, Named, ObjectiveSettings, setting
from relwalk.training.likelihood import LikelihoodSettings
from relwalk.training.negative_sampling import KBGAN, GeneratorSettings
from relwalk.training.objectives import OBJECTIVES
from relwalk.training.rates import usual_rate
from relwalk.training.schedule import SCHEDULES, Constant, Schedule

# What is chosen by name and then has settings of its own.
OWNERS: dict[str, dict[str, type[Named]]] = {
    "objective": {name: objective.Settings for name, objective in OBJECTIVES.items()},
    "schedule": {**SCHEDULES},
}
BY_TIME = {"epochs": MOST, "patience": MOST, "validate_every": 1}  # unless said otherwise, with a budget
ON_A_PATH = {"patience": MOST}  # unless said otherwise, with a decay that falls: its end gets its chance
INSTEAD = (("batch_size", "batches"), ("margin", "eta"))  # each says the same as the other in another way


class TrainingSettings(CommonSettings):
    """How a model is trained. Saved with the run, read back and checked on load."""

    objective: SerializeAsAny[ObjectiveSettings] = setting(
        LikelihoodSettings(name="likelihood"), "what a step minimises", panel="Objective", first=True
    )
    schedule: SerializeAsAny[Schedule] = setting(
        Constant(name="constant"),
        "how the rates fall: not, to 0 over all epochs, or when validation stops improving",
        search=Among(("constant", "cosine")),
    )

    @model_validator(mode="before")
    @classmethod
    def _each_to_its_owner(cls, values: Any) -> Any:
        return nested(values) if isinstance(values, Mapping) else values

    @field_validator("objective", "schedule", mode="before")
    @classmethod
    def _made_by_its_name(cls, value: Any, info: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        return choose(info.field_name, cast(str, value.get("name")), OWNERS[info.field_name]).model_validate(value)

    @property
    def falls(self) -> bool:
        """Whether rates or decay fall over the whole of it, so that a longer one is another from the start."""
        return self.decay_end != 1.0 or self.schedule.falls

    def flat(self) -> dict[str, Any]:
        """Every setting by the name that a keyword, a flag or a file has for it."""
        found = self.model_dump(exclude=set(OWNERS))
        for kind in OWNERS:
            own = getattr(self, kind).model_dump()
            found |= {kind: own.pop("name"), **own}
        return found


def nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Flat names, each under what it belongs to. One that does not belong to what was chosen is refused."""
    values = dict(flat)
    for kind, choices in OWNERS.items():
        said = values.get(kind, TrainingSettings.model_fields[kind].default.name)
        if isinstance(said, str):
            own = own_names(choose(kind, said, choices))
            values[kind] = {"name": said, **{name: values.pop(name) for name in own if name in values}}
            _refuse_idle(kind, said, own, values)
    return values


def own_names(settings: type[Named]) -> list[str]:
    """What settings of one choice can be told, beside its name."""
    return [name for name in settings.model_fields if name != "name"]


def _refuse_idle(kind: str, said: str, own: list[str], left: Mapping[str, Any]) -> None:
    """An option that would do nothing beside the others is a mistake, not a detail."""
    for name in left:
        others = [other for other, settings in OWNERS[kind].items() if name in own_names(settings)]
        if others:
            has = ", ".join(own) if own else "no settings of its own"
            raise RelWalkError(
                f"{name} means nothing to the {kind} {said}, which has {has}. "
                f"Say --{kind} {' or '.join(others)}, or leave it out."
            )


def fitting(flat: Mapping[str, Any], chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Flat settings without those that belong to another objective, schedule or sampler than is chosen."""
    found = dict(flat)
    for kind, choices in OWNERS.items():
        said = chosen.get(kind, TrainingSettings.model_fields[kind].default.name)
        others = {name for settings in choices.values() for name in own_names(settings)}
        own = own_names(choose(kind, said, choices))
        found = {name: value for name, value in found.items() if name in own or name not in others}
    if chosen.get("sampler") != KBGAN:
        found = {name: value for name, value in found.items() if name not in GeneratorSettings._fields}
    return found


def make_settings(defaults: Mapping[str, Any], given: Mapping[str, Any]) -> TrainingSettings:
    """Settings from what a recipe or an earlier run has and from what was said, both flat.

    What was said takes the place of what says the same in another way. What was said must belong to the objective and
    the schedule; of the rest, what does not is left out.
    """
    kept = fitting(defaults, {**defaults, **given})
    for pair in INSTEAD:
        for name, other in (pair, pair[::-1]):
            if given.get(name) is not None and given.get(other) is None:
                kept[other] = None
    kept = {name: value for name, value in kept.items() if value is not None or name in TrainingSettings.model_fields}
    with settings_errors():
        return TrainingSettings.model_validate({**kept, **given})


def resolve_settings(
    defaults: Mapping[str, Any],
    given: Mapping[str, Any],
    model: type[Scorer],
    options: Mapping[str, Any],
    graph: Graph,
    device: torch.device,
) -> TrainingSettings:
    """All of a training decided, here and once, from a recipe or an earlier run and what was said: the record holds it,
    and a resumed run does not decide anew."""
    said = {**defaults, **given}
    unsaid = {"threads": torch.get_num_threads(), **(BY_TIME if said.get("budget") is not None else {})}
    if said.get("decay_end", 1.0) != 1.0:
        unsaid |= ON_A_PATH
    settings = make_settings({**unsaid, **defaults}, given)
    objective = settings.objective.resolved(model, options, len(graph.entities), device)
    settings = settings.model_copy(update={"objective": objective})
    if "lr" in said:
        return settings
    return settings.model_copy(update={"lr": usual_rate(model.lr, settings, settings.objective)})
