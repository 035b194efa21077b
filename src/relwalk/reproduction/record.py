"""A result as a JSON file: what a run reaches on test, and all that is needed to make the figures again.

    dataset, model, recipe, seed           which result it is
    command, settings, graph               how it is made: `relwalk train DATASET --config RECORD.json` does it again
    commit, versions, machine, cost        by what, where, and what it took
    metrics.all.both.realistic.mrr         ranking by each protocol, side and rule for ties
    metrics.classification.accuracy        true or false, on a graph that ships false triples
    by_relation.all.<relation>.mrr         the same of each relation
    theory.table3, theory.figure2, ...     what `relwalk reproduce` measured beside

What is not known is null. `schema()` is the JSON schema.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from relwalk.checks import MOST, shown
from relwalk.display import Shown
from relwalk.errors import RelWalkError, RunError
from relwalk.evaluation.records import read_json, told
from relwalk.files import write_atomically
from relwalk.progress import duration
from relwalk.runs.record import GraphRecord

FORMAT, VERSION = "relwalk-record", 1
LONGEST_NAME = 40  # characters that say where a recipe was departed from; more become a short hash
NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
CURE = "Restore it, or make it again by its command."

Value = bool | int | float | str | None
Figures = dict[str, float | int]
Sides = dict[str, dict[str, Figures]]  # side -> rule for ties -> figure


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Settings(_Part):
    """All that was decided before the first step."""

    dim: int = Field(ge=1)
    options: dict[str, Value] = Field(default_factory=dict, description="of the model")
    training: dict[str, Value] = Field(default_factory=dict, description="by the names of the flags")


class Machine(_Part):
    """Where it ran."""

    processor: str
    instructions: str | None = None
    cores: int | None = None
    threads: int | None = None
    system: str | None = None


class Cost(_Part):
    """What the training took; null where it was not measured."""

    epochs: int | None = None
    best_epoch: int | None = None
    seconds: float | None = Field(default=None, description="of training steps")
    validation_seconds: float | None = None
    median_epoch_seconds: float | None = None
    ranking_seconds: float | None = Field(default=None, description="of test, by both protocols")
    peak_bytes: int | None = Field(default=None, description="the most memory that its process held")
    numbers: int | None = Field(default=None, description="that were learned")


class Metrics(_Part):
    """Figures on test, and of valid the one that chose the epoch."""

    valid_mrr: float | None = None
    all: Sides | None = Field(default=None, description="candidates: all entities, the standard protocol")
    argument: Sides | None = Field(
        default=None, description="candidates: those of the relation's argument, the paper's"
    )
    classification: Figures | None = Field(default=None, description="one threshold per relation, from valid")


class ResultRecord(_Part, Shown):
    """One result. A training that failed has a reason, and no figures."""

    format: Literal["relwalk-record"] = "relwalk-record"
    version: Literal[1] = 1
    status: Literal["finished", "failed"] = "finished"
    reason: str = ""
    dataset: str
    model: str
    recipe: str
    seed: int
    command: str
    asked: dict[str, Any] = Field(default_factory=dict, description="where it departs from its recipe")
    note: str = ""
    commit: str | None = Field(default=None, description="of the code that trained; + where files differed from it")
    created: str | None = None
    versions: dict[str, str] = Field(default_factory=dict)
    machine: Machine | None = None
    graph: GraphRecord | None = None
    settings: Settings | None = None
    cost: Cost = Cost()
    metrics: Metrics = Metrics()
    by_relation: dict[str, dict[str, Figures]] = Field(
        default_factory=dict, description="protocol -> relation -> figures of both sides"
    )
    theory: dict[str, Any] = Field(default_factory=dict, description="table3, figure1, figure2")

    @property
    def name(self) -> str:
        """The name of its file, without .json."""
        return result_name(self.dataset, self.model, self.recipe, self.seed, self.asked)

    @property
    def recipe_words(self) -> str:
        """The recipe, and where it was departed from."""
        limited = {name: value for name, value in self.asked.items() if value != MOST}  # not what time alone limits
        return ", ".join([self.recipe, *(f"{name} {_in_words(name, value)}" for name, value in limited.items())])

    def figure(self, rule: str, name: str = "mrr", *, side: str = "both", ties: str = "realistic") -> float | None:
        """A figure of a ranking; None where it was not made."""
        found: Sides | None = getattr(self.metrics, rule)
        return None if found is None else float(found[side][ties][name])

    @property
    def accuracy(self) -> float | None:
        """Of triple classification by the plain score."""
        return self.judged("accuracy")

    def judged(self, name: str) -> float | None:
        """A figure of triple classification; None where it was not made."""
        found = (self.metrics.classification or {}).get(name)
        return None if found is None else float(found)

    def as_dict(self) -> dict[str, Any]:
        return self.model_dump(mode="json")

    def summary(self) -> str:
        figures = [f"MRR {mrr:.3f} ({rule})" for rule in ("all", "argument") if (mrr := self.figure(rule)) is not None]
        if self.accuracy is not None:
            figures.append(f"accuracy {self.accuracy:.4f}")
        return f"{self.name}: {', '.join(figures) or self.reason or 'no figures'}"

    __str__ = summary
    __repr__ = Shown.__repr__


def _in_words(name: str, value: Any) -> str:
    if name == "budget" and isinstance(value, int | float):
        return duration(value)
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def result_name(dataset: str, model: str, recipe: str, seed: int, asked: Mapping[str, Any]) -> str:
    """What a result is called: the same for the same request, another for another."""
    departed = "-".join(f"{name}-{value}" for name, value in sorted(asked.items()))
    if len(departed) > LONGEST_NAME or not set(departed) <= NAME_CHARACTERS:
        departed = hashlib.sha256(departed.encode()).hexdigest()[:8]
    whole = "-".join(filter(None, [dataset, model, recipe, departed, str(seed)]))
    return "".join(c if c in NAME_CHARACTERS else "_" for c in whole)  # it is a file as well


def check_recipe(name: str) -> str:
    """A name of one's own for settings, if it can be a part of a file's name."""
    if not 0 < len(name) <= LONGEST_NAME or not set(name) <= NAME_CHARACTERS:
        raise RelWalkError(
            f"recipe is {shown(name)}; expected a name of at most {LONGEST_NAME} letters, digits, dots, dashes and "
            "underscores"
        )
    return name


def read_result(path: Path) -> ResultRecord:
    """A record from its file, checked."""
    content = read_json(path, "record", CURE)
    if content.get("format") != FORMAT or content.get("version") != VERSION:
        raise RunError(f'{path} was not written by this relwalk: expected "format": "{FORMAT}", version {VERSION}.')
    with told(path, "record", CURE):
        return ResultRecord.model_validate(content)


def read_results(folder: Path) -> tuple[ResultRecord, ...]:
    """All records of a folder, by name."""
    return tuple(read_result(path) for path in sorted(folder.glob("*.json")))


def write_result(folder: Path, record: ResultRecord) -> Path:
    """Write a record under its own name; the path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{record.name}.json"
    write_atomically(path, (as_json(record.as_dict()) + "\n").encode("utf-8", "replace"))
    return path


def schema() -> dict[str, Any]:
    """What a record must look like, as JSON schema."""
    return ResultRecord.model_json_schema()


def as_json(value: Any, depth: int = 0) -> str:
    """Indented JSON in which an object or a list of plain values is one line: a record has hundreds of those."""
    if not isinstance(value, Mapping | list) or all(_is_plain(item) for item in _items(value)):
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    named = isinstance(value, Mapping)
    start, end = "{}" if named else "[]"
    inner = " " * (depth + 1)
    parts = (
        [f"{json.dumps(name, ensure_ascii=False)}: {as_json(item, depth + 1)}" for name, item in value.items()]
        if isinstance(value, Mapping)
        else [as_json(item, depth + 1) for item in value]
    )
    return f"{start}\n{inner}" + f",\n{inner}".join(parts) + f"\n{' ' * depth}{end}"


def _items(value: Mapping[str, Any] | list[Any]) -> Iterable[Any]:
    return value.values() if isinstance(value, Mapping) else value


def _is_plain(value: Any) -> bool:
    return not isinstance(value, Mapping | list) or not value
