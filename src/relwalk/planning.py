"""What a training will be: the recipe, what suits the model and the graph's shape, and what was said by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from relwalk.checks import DIM, check_whole
from relwalk.config import Config
from relwalk.errors import RelWalkError
from relwalk.graph.graph import Graph
from relwalk.keywords import sort_out
from relwalk.models import (
    Model,
    RelWalk,
    Scorer,
    build_model,
    check_options,
    fitting_options,
    is_reciprocal,
    model_class,
    model_name,
)
from relwalk.recipes import recipe as find_recipe
from relwalk.runs.record import GraphRecord, ModelRecord, RunRecord
from relwalk.shapes import Shape, explain, often
from relwalk.training.all_entities import AllEntitiesSettings
from relwalk.training.candidates import choose_candidates
from relwalk.training.prepare import check_dropout
from relwalk.training.regularizers import check_regularizers
from relwalk.training.settings import OWNERS, TrainingSettings, fitting, resolve_settings

REGULARIZERS = ("l2", "n3", "dura")


def plan(
    graph: Graph,
    *,
    recipe: str | None = None,
    model: Model | None = None,
    dim: int | None = None,
    **keywords: Any,
) -> RunRecord:
    """What `train` would do when told the same: every choice made, and what does not fit together refused.

    Of the model a very small one is built, for what only a model can tell.
    """
    record, kind, _ = make_plan(graph, graph.name, recipe, model, dim, Config(), keywords, torch.device("cpu"))
    small = build_model(kind, 2, 1, record.model.dim, seed=0, options=record.model.options)
    check_dropout(small, record.training)
    check_regularizers(small, record.training)
    return record


def make_plan(
    graph: Graph,
    source: str,
    recipe: str | None,
    model: Model | None,
    dim: int | None,
    config: Config,
    keywords: Mapping[str, Any],
    device: torch.device,
) -> tuple[RunRecord, type[Scorer], str]:
    """The record of a training with every choice made, the class of its model, and what the graph's shape chose."""
    if model is None and config.unlisted:
        raise RelWalkError(f"that run has a model of its own, {config.unlisted}. Give its class: model=...")
    recipe = recipe if recipe is not None else config.recipe or "default"
    chosen = find_recipe(recipe, graph.name)
    model = model if model is not None else config.model or chosen.model
    kind = model_class(model)
    training, own = sort_out({**config.given, **keywords}, kind)
    dim = dim if dim is not None else config.dim
    size = check_whole("dim", dim, most=DIM) if dim is not None else None
    suited = _usual(kind, training, own, len(graph.entities)) if chosen.usual and not config.training else {}
    shape = chosen.shaped if suited and kind is RelWalk else None
    if shape is not None:
        hidden = own.get("hidden", own.get("orthogonality") != "soft")  # of relations that are exactly orthogonal
        suited |= _unless_said(shape(Shape.from_graph(graph), size, hidden), training)
    size = size if size is not None else suited.get("dim", chosen.dim)
    usual, usual_options = sort_out({name: value for name, value in suited.items() if name != "dim"}, kind)
    options = {**fitting_options(kind, {**chosen.options, **usual_options, **config.options}), **own}
    check_options(model, options)
    defaults = {**chosen.training, **usual, **config.training}
    settings = resolve_settings(defaults, training, kind, options, graph, device)
    if options.get("reciprocal") is None and is_reciprocal(kind, options) and not _over_all_entities(settings):
        options["reciprocal"] = False  # which false triples do not go with
    _refuse_conflicts(settings, kind, options)
    record = RunRecord(
        recipe=recipe,
        graph=GraphRecord(
            name=graph.name,
            source=source,
            fingerprint=graph.fingerprint,
            entities=len(graph.entities),
            relations=len(graph.relations),
            notes=graph.notes,
        ),
        model=ModelRecord(name=model_name(model), listed=isinstance(model, str), dim=size, options=options),
        training=settings,
    )
    return record, kind, explain(Shape.from_graph(graph), size, options, settings) if shape is not None else ""


def _usual(kind: type[Scorer], given: Mapping[str, Any], own: Mapping[str, Any], entities: int) -> dict[str, Any]:
    """How a model is trained when nothing else is said: another objective or optimiser needs other settings.

    So does a setting of another objective, drawn candidates, which Adam does not go with, or inverse relations, which
    false triples do not go with. Who says a regularizer means that one alone, and that it does not fall. Label
    smoothing is over all entities.
    """
    fits = {"objective": kind.objectives[0]} if kind.objectives else {}
    usual = {"objective": "likelihood", "optimizer": "adagrad", **fits, **kind.usual}
    same = all(given.get(name, usual[name]) == usual[name] for name in ("objective", "optimizer"))
    same = same and len(fitting(given, {**usual, **given})) == len(given)
    if own.get("reciprocal"):
        same = same and issubclass(OWNERS["objective"][usual["objective"]], AllEntitiesSettings)
    drawn = choose_candidates(given.get("candidates_per_step"), entities)
    if not same or (drawn and usual["optimizer"] == "adam"):
        return {}
    if given.get("label_smoothing"):
        usual.pop("candidates_per_step", None)
    if set(REGULARIZERS) & set(given):
        usual.pop("decay_end", None)
        usual |= dict.fromkeys(REGULARIZERS, 0.0)
    return usual


def _unless_said(shaped: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """What a graph's shape asks for, without what follows from something that was said.

    Who says a weight decay means that one: it does not fall. Who says a budget has epochs without end, and validations
    by time. The patience of a path is that of neither. A rate goes with the number of steps, and so does a batch. Label
    smoothing is over all entities.
    """
    left_out: set[str] = set()
    if set(REGULARIZERS) & set(given):
        left_out |= {*REGULARIZERS, "decay_end", "patience"}
    if given.get("budget") is not None:
        left_out |= {"epochs", "validate_every", "patience"}
    if given.get("batch_size") is not None:
        left_out |= {"lr"}
    if given.get("label_smoothing"):
        left_out |= {"candidates_per_step"}
    kept = {name: value for name, value in shaped.items() if name not in left_out}
    if isinstance(epochs := given.get("epochs"), int) and "validate_every" in kept:
        kept["validate_every"] = often(epochs)
    return kept


def _refuse_conflicts(settings: TrainingSettings, kind: type[Scorer], options: Mapping[str, Any]) -> None:
    """What cannot work together is said before anything is written."""
    if kind.objectives is not None and settings.objective.name not in kind.objectives:
        raise RelWalkError(
            f"the objective {settings.objective} does not fit {kind.__name__}. Say --objective "
            f"{' or '.join(kind.objectives)}, or take another --model."
        )
    if is_reciprocal(kind, options) and not _over_all_entities(settings):
        raise RelWalkError(
            f"reciprocal relations need the objective likelihood or bce; found {settings.objective}. "
            "Leave one of them out."
        )
    if settings.average_from is not None and settings.average_from > settings.epochs:
        raise RelWalkError(
            f"average_from is {settings.average_from}, after the last of {settings.epochs} epochs. Lower it."
        )
    if settings.average_from is not None and kind.grows:
        raise RelWalkError(
            f"average_from takes the mean of weights that are there in every epoch, and {kind.__name__} gets more of "
            "them as it is trained. Leave it out."
        )
    sampled = isinstance(settings.objective, AllEntitiesSettings) and settings.objective.candidates_per_step
    if sampled and settings.optimizer == "adam":
        raise RelWalkError(
            "adam moves every entity at every step, which sampled candidates are there to avoid. "
            "Say --optimizer adagrad or rowwise-adagrad, or --candidates-per-step 0."
        )


def _over_all_entities(settings: TrainingSettings) -> bool:
    return isinstance(settings.objective, AllEntitiesSettings)
