"""The one place where the stages meet: a graph in, a trained run out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from relwalk.errors import RelWalkError, RunError, TrainingDiverged, choose
from relwalk.evaluation.ranking import rank
from relwalk.files import write_atomically
from relwalk.graph.answers import SIDES
from relwalk.graph.graph import Graph
from relwalk.graph.lists import Ints
from relwalk.graph.read import read_graph
from relwalk.models import MODELS, Scorer
from relwalk.recipes import recipe as find_recipe
from relwalk.run import (
    CHECKPOINT,
    HISTORY,
    GraphRecord,
    ModelRecord,
    Run,
    RunRecord,
    create_run,
    finish_run,
    fresh_model,
    read_record,
    read_run_graph,
    write_record,
)
from relwalk.training.candidates import choose_candidates
from relwalk.training.checkpoint import restore_checkpoint, save_checkpoint
from relwalk.training.contrast import Contrast
from relwalk.training.likelihood import Likelihood
from relwalk.training.precision import choose_precision
from relwalk.training.settings import TrainingSettings
from relwalk.training.trainer import Observer, Task, Trainer


def train(
    graph: Graph | Any,
    *,
    recipe: str = "default",
    model: str | None = None,
    dim: int | None = None,
    options: Mapping[str, Any] | None = None,
    out: Path | str | None = None,
    force: bool = False,
    device: str = "cpu",
    observer: Observer | None = None,
    source: str = "",
    **training: Any,
) -> Run:
    """Train a model on a graph: a `Graph`, or whatever `read_graph` takes.

    A recipe sets what is not given; `training` overrides any field of `TrainingSettings`, `options` any option of
    the model. With `out`, the run is saved there as it goes, and `resume` can continue it after any interruption.
    """
    if not isinstance(graph, Graph):
        source = source or str(graph)[:200]
        graph = read_graph(graph)
    chosen = find_recipe(recipe, graph.name)
    kind = choose("model", model or chosen.model, MODELS)
    settings = make_settings({"lr": kind.lr, **chosen.training}, training)
    settings = _settle(settings, graph, "threads" in training, device)
    _refuse_conflicts(settings, {**chosen.options, **(options or {})})
    record = RunRecord(
        recipe=recipe,
        graph=GraphRecord(
            name=graph.name,
            source=source or graph.name,
            fingerprint=graph.fingerprint,
            entities=len(graph.entities),
            relations=len(graph.relations),
            notes=graph.notes,
        ),
        model=ModelRecord(
            name=model or chosen.model, dim=dim or chosen.dim, options={**chosen.options, **(options or {})}
        ),
        training=settings,
    )
    fresh = fresh_model(record, graph)  # before anything is written: a wrong option must leave no folder
    path = Path(out) if out is not None else None
    if path is not None:
        record = create_run(path, record, graph, force=force)
    return _carry_on(record, graph, fresh, path, device, observer, resume=False)


def resume(
    path: Path | str, *, epochs: int | None = None, device: str = "cpu", observer: Observer | None = None
) -> Run:
    """Continue an interrupted run from its last checkpoint, to the same weights as if it had not been; with
    `epochs`, train a finished run further."""
    path = Path(path)
    record, graph = read_record(path), read_run_graph(path)
    if not (path / CHECKPOINT).is_file():
        raise RunError(f"{path} has no checkpoint to continue from. Train again with --force.")
    if epochs is not None:
        training = make_settings(record.training.model_dump(), {"epochs": epochs})
        record = record.model_copy(update={"training": training, "status": "training"})
        write_record(path, record)
    further = epochs is not None
    model = fresh_model(record, graph)
    return _carry_on(record, graph, model, path, device, observer, resume=True, further=further)


def _settle(settings: TrainingSettings, graph: Graph, threads_given: bool, device: str) -> TrainingSettings:
    """Decide now what the machine or the graph would decide: a resumed run must not decide otherwise."""
    settled: dict[str, Any] = {} if threads_given else {"threads": torch.get_num_threads()}
    if settings.objective == "likelihood":
        settled["candidates_per_step"] = choose_candidates(settings.candidates_per_step, len(graph.entities))
        if settings.precision == "auto":
            settled["precision"] = str(choose_precision("auto", torch.device(device))).removeprefix("torch.")
    return settings.model_copy(update=settled)


def make_settings(defaults: Mapping[str, Any], given: Mapping[str, Any]) -> TrainingSettings:
    """Training settings from a recipe and what was said; a batch size and a number of batches replace each other."""
    merged = {**defaults, **given}
    _refuse_idle(merged, given)
    if given.get("batch_size") is not None and given.get("batches") is None:
        merged["batches"] = None
    if given.get("batches") is not None and given.get("batch_size") is None:
        merged["batch_size"] = None
    return TrainingSettings.model_validate(merged)


SAMPLING = ("sampler", "negatives", "avoid_known", "eta")  # say how false triples are drawn and used
SUMMING = (  # say how the sum over all entities is made, and what is asked
    "label_smoothing",
    "precision",
    "entity_dropout",
    "query_dropout",
    "relation_weight",
    "candidates_per_step",
)
PLATEAU = ("plateau_factor", "plateau_patience")


def _refuse_idle(settings: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """An option that would do nothing beside the others is a mistake, not a detail."""
    likelihood = settings.get("objective", "likelihood") == "likelihood"
    objective = settings.get("objective", "likelihood")
    for name in SAMPLING if likelihood else SUMMING:
        if given.get(name) is not None:
            cure = "Say --objective softmax" if likelihood else "Say --objective likelihood"
            raise RelWalkError(f"{name} means nothing to the objective {objective}. {cure}, or leave it out.")
    for name in PLATEAU:
        if given.get(name) is not None and settings.get("schedule") != "plateau":
            raise RelWalkError(f"{name} means nothing without a plateau. Say --schedule plateau, or leave it out.")


def _refuse_conflicts(settings: TrainingSettings, options: Mapping[str, Any]) -> None:
    """What cannot work together is said before anything is written."""
    if options.get("reciprocal") and settings.objective != "likelihood":
        raise RelWalkError(
            f"reciprocal relations need the objective likelihood; found {settings.objective}. Leave one of them out."
        )
    if settings.average_from is not None and settings.average_from > settings.epochs:
        raise RelWalkError(
            f"average_from is {settings.average_from}, after the last of {settings.epochs} epochs. Lower it."
        )
    if not settings.candidates_per_step:
        return
    if settings.label_smoothing:
        raise RelWalkError(
            "label_smoothing spreads answers over all entities, which a step with sampled candidates does not see. "
            "Leave it out, or say --candidates-per-step 0."
        )
    if settings.optimizer == "adam":
        raise RelWalkError(
            "adam moves every entity at every step, which sampled candidates are there to avoid. "
            "Say --optimizer adagrad or rowwise-adagrad, or --candidates-per-step 0."
        )


def _carry_on(
    record: RunRecord,
    graph: Graph,
    model: Scorer,
    path: Path | None,
    device: str,
    observer: Observer | None,
    *,
    resume: bool,
    further: bool = False,
) -> Run:
    settings = record.training
    torch.set_num_threads(settings.threads)
    trainer = Trainer(
        model.to(device),
        make_task(graph, settings, device),
        settings,
        validate=_validation_mrr(graph, settings),
        checkpoint=_checkpoint_into(path) if path is not None else None,
        observer=observer,
    )
    if resume and path is not None:
        restore_checkpoint(trainer, path / CHECKPOINT)
        if further:
            trainer.progress.validations_without_gain = 0  # asked to go on, also after an early stop
    try:
        progress = trainer.run()
    except TrainingDiverged as error:
        kept = f" The last good checkpoint is {path / CHECKPOINT}." if path is not None else ""
        raise TrainingDiverged(f"{error}{kept}") from error
    metrics = {"valid_mrr": progress.best_metric, "best_epoch": progress.best_epoch, "epochs": progress.epoch}
    model.eval()
    if path is not None:
        record = finish_run(path, record, model, metrics)
    else:
        record = record.model_copy(update={"status": "finished", "metrics": metrics})
    return Run(path, record, graph, model)


def make_task(graph: Graph, settings: TrainingSettings, device: str = "cpu") -> Task:
    """What the objective learns from: all entities, or sampled negatives."""
    return Likelihood(graph, settings, device) if settings.objective == "likelihood" else Contrast(graph, settings)


VALIDATION_SHARE = 0.02  # of the products of training; with comparing and counting under 5% of its time
VALIDATION_LEAST = 1000  # triples that are ranked in any case


def _validation_mrr(graph: Graph, settings: TrainingSettings) -> Any:
    """Filtered MRR over all entities on valid; nothing to select by when there is no valid."""
    if len(graph.valid) == 0:
        return None
    triples = _validation_triples(graph, settings)
    return lambda model: rank(model, graph, "valid", triples=triples).mrr


def _validation_triples(graph: Graph, settings: TrainingSettings) -> Ints:
    """All of valid, or as many triples, always the same, as can be ranked in a small part of the training's time.

    Likelihood makes three products of questions x candidates, ranking one of 2 x triples x entities.
    """
    if settings.objective != "likelihood":
        return graph.valid
    questions = sum(len(graph.known_in_train[side].keys) for side in SIDES)
    epochs = min(settings.validate_every, settings.epochs)  # between one validation and the next
    products = 3.0 * questions * (settings.candidates_per_step or len(graph.entities)) * epochs
    most = max(VALIDATION_LEAST, int(VALIDATION_SHARE * products / (2 * len(graph.entities))))
    if len(graph.valid) <= most:
        return graph.valid
    order = np.random.default_rng(settings.seed).permutation(len(graph.valid))
    return graph.valid[np.sort(order[:most])]


def _checkpoint_into(path: Path) -> Any:
    def save(trainer: Trainer) -> None:
        save_checkpoint(trainer, path / CHECKPOINT)
        lines = [json.dumps(record.as_dict()) + "\n" for record in trainer.progress.history]
        write_atomically(path / HISTORY, "".join(lines).encode())

    return save
