"""`relwalk models`: what each listed model is, how large, what it can express and how it is trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from relwalk.checks import DIM, check_whole
from relwalk.display import Shown
from relwalk.errors import RelWalkError
from relwalk.keywords import Keyword, option_keywords
from relwalk.models import MODELS, build_model
from relwalk.training.objectives import OBJECTIVES

ENTITIES, RELATIONS = 16, 4  # of the small models that are counted


@dataclass(frozen=True)
class Numbers:
    """How many numbers a model learns for an entity, for a relation, and for all of them together."""

    entity: int
    relation: int
    shared: int

    def __str__(self) -> str:
        shared = f", {self.shared:,} shared" if self.shared else ""
        return f"{self.entity:,} an entity, {self.relation:,} a relation{shared}"


@dataclass(frozen=True)
class ModelEntry:
    """What is known of one model. `numbers` are a reason in words where a model of that dimension cannot be built."""

    name: str
    title: str
    paper: str
    formula: str
    dim: int
    numbers: Numbers | str
    expresses: tuple[str, ...]
    objectives: tuple[str, ...]
    options: tuple[Keyword, ...]
    product: bool
    usual: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        counted = self.numbers if isinstance(self.numbers, Numbers) else None
        return {
            "name": self.name,
            "title": self.title,
            "paper": self.paper,
            "formula": self.formula,
            "dim": self.dim,
            "numbers_per_entity": counted.entity if counted else None,
            "numbers_per_relation": counted.relation if counted else None,
            "shared_numbers": counted.shared if counted else None,
            "reason": self.numbers if isinstance(self.numbers, str) else None,
            "expresses": list(self.expresses),
            "objectives": list(self.objectives),
            "options": [
                {"name": k.name, "about": k.words, "default": k.default, "choices": list(k.choices)}
                for k in self.options
            ],
            "product": self.product,
            "usual": self.usual,
        }

    def __str__(self) -> str:
        every = self.objectives == tuple(OBJECTIVES)
        facts = {
            "paper": self.paper,
            f"d = {self.dim}": str(self.numbers),
            "expresses": ", ".join(self.expresses) or "none of the patterns",
            "objectives": "all" if every else ", ".join(self.objectives),
            "usual": ", ".join(f"{name} {value}" for name, value in self.usual.items()),
            "options": ", ".join(option.name for option in self.options),
        }
        lines = [f"  {name:<12}{words}" for name, words in facts.items() if words]
        return "\n".join([f"{self.name:<14}{self.title}: {self.formula}", *lines])


@dataclass(frozen=True, repr=False)
class Catalogue(Shown):
    """Every listed model."""

    models: tuple[ModelEntry, ...]

    def as_dict(self) -> dict[str, Any]:
        return {"models": [entry.as_dict() for entry in self.models]}

    def summary(self) -> str:
        return ", ".join(entry.name for entry in self.models)

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.models))


def describe_models(dim: int = 128) -> Catalogue:
    """Every listed model, counted at this dimension."""
    check_whole("dim", dim, most=DIM)
    return Catalogue(tuple(_entry(name, dim) for name in MODELS))


def _entry(name: str, dim: int) -> ModelEntry:
    kind = MODELS[name]
    return ModelEntry(
        name=name,
        title=kind.__name__,
        paper=kind.paper,
        formula=kind.formula,
        dim=dim,
        numbers=_numbers(name, dim),
        expresses=kind.expresses,
        objectives=kind.objectives or tuple(OBJECTIVES),
        options=tuple(option_keywords(kind).values()),
        product=kind.is_product_with({}),
        usual=dict(kind.usual),
    )


def _numbers(name: str, dim: int) -> Numbers | str:
    """Counted, from small models that differ in one entity or in one relation."""
    try:
        least = _learned(name, ENTITIES, RELATIONS, dim)
        entity = _learned(name, ENTITIES + 1, RELATIONS, dim) - least
        relation = _learned(name, ENTITIES, RELATIONS + 1, dim) - least
    except RelWalkError as error:
        return str(error)
    return Numbers(entity, relation, least - ENTITIES * entity - RELATIONS * relation)


def _learned(name: str, entities: int, relations: int, dim: int) -> int:
    """The numbers of a model of this size."""
    model = build_model(name, entities, relations, dim, seed=0, options={})
    return sum(weights.numel() for weights in model.parameters())
