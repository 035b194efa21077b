"""Every setting of a training as a keyword, from the one place where it is declared: fields of settings, options of
models. The signature and the words of `relwalk.train`, the flags of `relwalk train` and the names that a file of
settings may have are all made from these."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeVar, get_args

from pydantic.fields import FieldInfo

from relwalk.errors import RelWalkError, UnknownChoice
from relwalk.models import MODELS, OPTIONS, Scorer, model_options
from relwalk.space import Search
from relwalk.training.common import CommonSettings
from relwalk.training.settings import OWNERS, TrainingSettings, own_names

Function = TypeVar("Function", bound=Callable[..., Any])
SIGNS = {"ge": "from", "gt": "above", "le": "to", "lt": "below"}
UNBOUNDED = 2**31 - 1  # an upper bound from here on is no news


@dataclass(frozen=True)
class Keyword:
    """One setting: what it is called, what it takes and what it means."""

    name: str
    annotation: Any
    default: Any
    words: str
    panel: str = "Model"
    first: bool = False  # among those that people use first
    flags: tuple[str, ...] = ()  # on the command line, when not --its-name
    choices: tuple[str, ...] = ()
    bounds: str = ""
    otherwise: str = ""  # the default in words, where it depends
    owners: tuple[str, ...] = ()  # the objectives, schedules or models that alone have it
    search: Search | None = None  # what `relwalk tune` tries of it

    @property
    def sentence(self) -> str:
        """What it means, who has it, its bounds and its default."""
        default = self.otherwise or (str(self.default) if self.default not in (None, False) else "")
        owners = f"only {', '.join(self.owners)}" if self.owners else ""
        more = "; ".join(part for part in (owners, self.bounds, default and f"default {default}") if part)
        words = f"{self.words}: {', '.join(self.choices)}" if self.choices else self.words
        return f"{words} ({more})" if more else words

    def parameter(self) -> inspect.Parameter:
        return inspect.Parameter(
            self.name, inspect.Parameter.KEYWORD_ONLY, default=self.default, annotation=self.annotation
        )


@cache
def training_keywords() -> Mapping[str, Keyword]:
    """Every setting of a training: the common ones, and those of each objective and schedule."""
    found = {}
    for kind, choices in OWNERS.items():
        field = TrainingSettings.model_fields[kind]
        chosen = _from_field(kind, field)
        found[kind] = replace(chosen, annotation=str, default=field.default.name, choices=tuple(choices))
        for name, settings in choices.items():
            for own in own_names(settings):
                known = found.get(own) or _from_field(own, settings.model_fields[own])
                found[own] = replace(known, owners=(*known.owners, name))
    return found | {name: _from_field(name, field) for name, field in CommonSettings.model_fields.items()}


@cache
def option_keywords(model: type[Scorer] | None = None) -> Mapping[str, Keyword]:
    """Every option that the model has, or some model."""
    found: dict[str, Keyword] = {}
    for name, kind in MODELS.items() if model is None else [("", model)]:
        for option, p in model_options(kind).items():
            known = found.get(option) or _from_option(p)
            found[option] = replace(known, owners=(*known.owners, name))
    return {name: replace(k, owners=() if len(k.owners) == len(MODELS) else k.owners) for name, k in found.items()}


def all_keywords() -> dict[str, Keyword]:
    return {**training_keywords(), **option_keywords()}


def _from_field(name: str, field: FieldInfo) -> Keyword:
    extra: Any = field.json_schema_extra
    more = {**extra, "flags": tuple(extra["flags"])}
    choices = _choices(field.annotation)
    words = field.description or ""
    return Keyword(name, field.annotation, field.default, words, **more, choices=choices, bounds=_bounds(field))


def _from_option(option: inspect.Parameter) -> Keyword:
    return Keyword(
        option.name,
        option.annotation,
        option.default,
        OPTIONS.get(option.name, ""),
        choices=_choices(option.annotation),
    )


def _bounds(field: FieldInfo) -> str:
    """Within which numbers, in words."""
    found = []
    for bound in field.metadata:
        for sign, word in SIGNS.items():
            limit = getattr(bound, sign, None)
            if limit is not None and abs(limit) < UNBOUNDED:
                found.append(f"{word} {limit:,}")
    return ", ".join(found)


def _choices(annotation: Any) -> tuple[str, ...]:
    return tuple(part for part in get_args(annotation) if isinstance(part, str))


def sort_out(keywords: Mapping[str, Any], model: type[Scorer]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings of a training and the options of its model; a word that is neither is refused."""
    training, options = training_keywords(), option_keywords(model)
    for name in keywords:
        if name in training or name in options:
            continue
        if name in (others := option_keywords()):
            has = f"which has {', '.join(options)}"
            raise RelWalkError(
                f"{name} means nothing to the model {model.__name__}, {has}. "
                f"Say --model {' or '.join(others[name].owners)}, or leave it out."
            )
        raise UnknownChoice("setting of a training", name, [*training, *options])
    return (
        {name: value for name, value in keywords.items() if name in training},
        {name: value for name, value in keywords.items() if name in options},
    )


def with_parameters(function: Function, more: Iterable[inspect.Parameter]) -> Function:
    """In place of the function's ** argument its signature shows these parameters."""
    signature = inspect.signature(function, eval_str=True)
    own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    function.__signature__ = signature.replace(parameters=[*own, *more])  # type: ignore[attr-defined]
    return function


def with_keywords(*, without: Container[str] = ()) -> Callable[[Function], Function]:
    """The signature shows every keyword, the docstring says what each means; but for those that it has already."""

    def decorate(function: Function) -> Function:
        training = {name: keyword for name, keyword in training_keywords().items() if name not in without}
        options = option_keywords()
        function.__doc__ = "\n\n".join(
            [
                inspect.cleandoc(function.__doc__ or ""),
                "How it is trained, unless the recipe says otherwise:\n" + _listed(training.values()),
                "Options of the model:\n" + _listed(options.values()),
            ]
        )
        return with_parameters(function, [keyword.parameter() for keyword in {**training, **options}.values()])

    return decorate


def _listed(keywords: Iterable[Keyword]) -> str:
    rows = {keyword.name: keyword.sentence for keyword in keywords}
    width = max(map(len, rows)) + 2
    return "\n".join(
        textwrap.fill(f"{name:{width}}{text}", 100, initial_indent="  ", subsequent_indent=" " * (width + 2))
        for name, text in rows.items()
    )
