"""What all trainings have in common, each with its default and its bounds, and how a setting is declared.

A setting is one line: from it come the keyword argument of `relwalk.train`, the flag of `relwalk train` with its help,
the name in a --config file and the value in run.json. `panel` is where the help shows it, `first` puts it on top.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, Self

import torch
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from relwalk.checks import MOST, SEEDS, THREADS, check_seconds
from relwalk.models.base import Scorer
from relwalk.space import Between, Search

Panel = Literal["Model", "Objective", "Optimization", "Output"]


def setting(
    default: Any,
    words: str,
    *,
    panel: Panel = "Optimization",
    first: bool = False,
    flags: tuple[str, ...] = (),
    otherwise: str = "",
    search: Search | None = None,
    **bounds: Any,
) -> Any:
    """A field with all that is said of it. `flags` when --its-name will not do; `otherwise` is the default in words;
    `search` is what `relwalk tune` tries."""
    extra: Any = {"panel": panel, "first": first, "flags": list(flags), "otherwise": otherwise, "search": search}
    return Field(default, description=words, json_schema_extra=extra, **bounds)


class Settings(BaseModel):
    """Values that are checked when made, and not changed afterwards."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Named(Settings):
    """Settings that belong to one choice by name, and to no other."""

    name: str

    def __str__(self) -> str:
        return self.name


class ObjectiveSettings(Named):
    """What an objective can be told."""

    def resolved(self, model: type[Scorer], options: Mapping[str, Any], entities: int, device: torch.device) -> Self:
        """The same with all decided that is left to the model, the graph's size or the machine."""
        return self


class CommonSettings(Settings):
    """What every training can be told, whatever its objective and schedule."""

    l2: float = setting(
        0.15,
        "weight of ||h||² + ||t||² of the triples of a step, divided by d for RelWalk",
        panel="Objective",
        otherwise="by graph",
        search=Between(0.001, 0.5, "log"),
        ge=0,
    )
    n3: float = setting(
        0.0, "weight of Σ|h|³ + Σ|t|³ (and |r|³), divided by d^1.5 for RelWalk", panel="Objective", ge=0
    )
    dura: float = setting(
        0.0,
        "weight of ||h||² + ||t||² + ||Mᵀh||² + ||M t||², M the relation's form (bilinear models), divided by d for "
        "RelWalk",
        panel="Objective",
        ge=0,
    )
    decay_end: float = setting(
        1.0,
        "what l2, n3 and dura are multiplied with at the end of training: they fall to it geometrically, and patience "
        "has no end unless it is said",
        panel="Objective",
        otherwise="1, or by graph",
        search=Between(0.02, 1.0, "log"),
        gt=0,
        le=1,
    )
    entity_dropout: float = setting(
        0.0,
        "share of the given entity's coordinates that is dropped",
        panel="Model",
        otherwise="0, or by graph",
        search=Between(0.0, 0.4),
        ge=0,
        lt=1,
    )
    query_dropout: float = setting(
        0.0,
        "share of the question's coordinates that is dropped",
        panel="Model",
        search=Between(0.0, 0.4),
        ge=0,
        lt=1,
    )
    start_entities: str | None = setting(
        None,
        "vectors that entities start from: a file by name (.npz, .safetensors, word2vec text), the folder of a run, or "
        "deepwalk, node2vec or rdf2vec",
        panel="Model",
        otherwise="random",
    )

    optimizer: Literal["sgd", "adagrad", "rowwise-adagrad", "adam"] = setting("adagrad", "what moves the free weights")
    lr: float = setting(
        1.0,
        "learning rate of the entities",
        first=True,
        otherwise="by model and optimizer",
        search=Between(0.1, 4.0, "log", times=True),
        gt=0,
    )
    relation_lr: float | None = setting(
        None, "learning rate of the relations", otherwise="0.3 for rotations, else lr", gt=0
    )
    clip: float | None = setting(None, "longest gradient of all free weights together", gt=0)
    warmup: float = setting(0.0, "epochs over which the rates rise from 0", ge=0)
    average_from: int | None = setting(None, "epoch from which the weights of all epochs are averaged", ge=1, le=MOST)

    epochs: int = setting(
        100, "passes over train, at most", first=True, otherwise="by graph, or no end with a budget", ge=1, le=MOST
    )
    budget: str | float | None = setting(
        None,
        "time of its steps after which training stops, as 90s, 10m, 1h or seconds; validation is not counted, and "
        "schedules follow that time. How many steps it is depends on the clock: the same seed may end with other bits",
    )
    batch_size: int | None = setting(
        1024,
        "questions (likelihood, bce) or true triples a step",
        first=True,
        otherwise="1024, fewer on a small graph",
        search=Between(128, 4096, "powers"),
        ge=1,
        le=MOST,
    )
    batches: int | None = setting(None, "steps an epoch, instead of a batch size", ge=1, le=MOST)
    validate_every: int = setting(
        10,
        "epochs between two validations",
        otherwise="by graph; with a budget 1, but not before a 20th of it has passed",
        ge=1,
        le=MOST,
    )
    patience: int = setting(
        5,
        "validations without a better figure before training stops",
        otherwise="5, or no end with a budget or a decay that falls",
        ge=1,
        le=MOST,
    )
    seed: int = setting(0, "of everything random; the same seed gives the same bits", first=True, ge=0, lt=SEEDS)
    threads: int = setting(1, "CPU threads; the same number gives the same bits", otherwise="all", ge=1, le=THREADS)
    checkpoint_seconds: float = setting(30.0, "least time between two checkpoints", panel="Output", ge=0)

    @property
    def seconds(self) -> float:
        """What its steps may take: the budget, or no end."""
        return math.inf if self.budget is None else float(self.budget)

    @field_validator("budget", mode="before")
    @classmethod
    def _budget_in_seconds(cls, value: Any) -> float | None:
        return None if value is None else check_seconds("budget", value)

    @model_validator(mode="after")
    def _one_batch_rule(self) -> Self:
        if (self.batch_size is None) == (self.batches is None):
            raise ValueError("give either batch_size or batches, not both and not neither")
        return self
