"""A saved run: a folder of JSON, TSV and safetensors that holds everything needed to use the model.

    run.json                settings, seed, versions, graph, protocol, figures, checksums of the other files
    weights.safetensors     the learned weights
    graph.safetensors       the triples of each split, as ids
    entities.tsv            id, name, label
    relations.tsv           id, name, label
    history.jsonl           one line per epoch
    checkpoint.safetensors  where training stands, for `relwalk resume`

of a training by several processes with a file of rows from each beside the last two (`shard_files`).

Everything is checked on load, sizes before anything of that size is made; nothing in it can run code.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from relwalk.checks import MOST
from relwalk.devices import find_device
from relwalk.display import Shown, caption, html_table
from relwalk.errors import RelWalkError, RunError
from relwalk.evaluation.probabilities import Probabilities
from relwalk.files import sha256
from relwalk.graph.graph import Graph
from relwalk.memory import available_memory
from relwalk.models import MODELS, Model, Scorer, build_model, model_class
from relwalk.models.compressed import compressed_blank
from relwalk.models.keys import KeyCache
from relwalk.models.tables import EntityTable, only_rows, set_rows
from relwalk.runs.checkpoint import best_weights, check_weights, read_progress
from relwalk.runs.folder import CHECKPOINT, RECORD, WEIGHTS, begin
from relwalk.runs.graph_files import GRAPH_FILES, read_graph_files, write_graph_files
from relwalk.runs.record import ModelRecord, RunRecord, read_record, write_record
from relwalk.runs.shard_files import INDEX, Wanted, put_in_place, whole_header, whole_tensors
from relwalk.runs.tensor_file import Spec, check_specs

FIRST_NAMES = {"entity": "entity.weight", "base.entity": "base.entity.weight"}  # of weights in format 1
CHEAP = 1 << 26  # numbers, a quarter of a gigabyte: a model of so many is built without a second thought
NONE = torch.zeros(0, dtype=torch.long)
KEYS = 4  # times the weights: memory that is to be free for keys of all entities to be kept


@dataclass(frozen=True)
class RunState:
    """How far a training came."""

    status: Literal["finished", "unfinished", "diverged"]
    epoch: int  # the last whole one
    epochs: int  # asked for, at most; `checks.MOST` with a budget of time alone
    reason: str = ""

    def as_dict(self) -> dict[str, Any]:
        return {"status": self.status, "epoch": self.epoch, "epochs": self.epochs}

    def __str__(self) -> str:
        reason = f" ({self.reason})" if self.reason else ""
        asked = "" if self.epochs == MOST else f" of {self.epochs}"
        return f"{self.status}: epoch {self.epoch}{asked}{reason}"


@dataclass(frozen=True, eq=False, repr=False)
class Run(Shown):
    """A model with the graph it was trained on. `state` says whether its training is finished."""

    path: Path | None
    record: RunRecord
    graph: Graph
    model: Scorer
    epoch: int | None = None  # the last whole one, of a training that is not finished

    @property
    def state(self) -> RunState:
        return _state(self.record, self.epoch)

    @property
    def probabilities(self) -> Probabilities | None:
        """What its scores mean, as fitted on valid when its training ended; None: it is not calibrated."""
        return self.record.probabilities

    @property
    def uncalibrated(self) -> str | None:
        """Why its scores mean no more than the model says; None when they were fitted."""
        if self.probabilities is not None:
            return None
        if len(self.graph.valid) == 0:
            return "the graph has no valid triples"
        if self.record.status != "finished":
            return "its training is not finished"
        if self.record.reason:
            return self.record.reason
        return "it was saved by an earlier relwalk; train it again"

    @cached_property
    def keys(self) -> KeyCache:
        """The keys of all entities, made once and used by every prediction."""
        return KeyCache(self.model)

    def save(self, path: Path | str, *, force: bool = False) -> Run:
        """Keep a run that was trained without `out`, or a copy of one; the same run with its place."""
        if self.record.status != "finished":
            raise RelWalkError(f"{self} cannot be saved: its training is not finished. Go on with relwalk.resume.")
        place, record = Path(path), self.record.model_copy(update={"files": {}})

        def write(folder: Path) -> None:
            nonlocal record
            record = finish_run(folder, write_new(folder, record, self.graph), self.model, record.metrics)

        with begin(place, write, force=force):
            pass  # all of it is written at once
        return replace(self, path=place, record=record)

    def __str__(self) -> str:
        where = self.path if self.path is not None else "(not saved)"
        state = "finished" if self.record.status == "finished" else self.state
        return f"{where}: {self.record.model} on {self.graph} ({state})"

    def summary(self) -> str:
        where, model, graph, status, *figures = self._facts().values()
        return ", ".join([f"{where}: {model} on {graph}", status, *figures])

    def _repr_html_(self) -> str:
        return caption("relwalk run") + html_table(("", ""), list(self._facts().items()))

    def _facts(self) -> dict[str, str]:
        metrics = self.record.metrics
        facts = {
            "run": str(self.path) if self.path is not None else "not saved",
            "model": str(self.record.model),
            "graph": self.graph.name,
            "status": self.record.status,
        }
        if metrics.get("valid_mrr") is not None:
            facts["figures"] = f"valid MRR {metrics['valid_mrr']:.4f} at epoch {metrics.get('best_epoch')}"
        return facts

    @property
    def outlook(self) -> str | None:
        """What validation says of more epochs: stopped early, or still improving; None where it says nothing."""
        metrics, training = self.record.metrics, self.record.training
        compressed = self.record.model.compression is not None
        if self.record.status != "finished" or metrics.get("valid_mrr") is None or compressed:
            return None
        epochs, best = (int(metrics.get(name) or 0) for name in ("epochs", "best_epoch"))
        by_time = (metrics.get("seconds") or 0.0) >= training.seconds
        if epochs < training.epochs and not by_time:
            return f"stopped early at epoch {epochs}, best {best}"
        if best == epochs > training.validate_every:  # better than the validation before it
            name, twice = ("budget", f"{2 * training.seconds:g}") if by_time else ("epochs", str(2 * epochs))
            if self.path is None:
                return f"still improving: train again with {name} = {twice}"
            if training.falls:  # what fell to the end would rise again
                return f"still improving: train again with --{name} {twice}"
            return f"still improving: relwalk resume {shlex.quote(str(self.path))} --{name} {twice}"
        return None


def write_new(path: Path, record: RunRecord, graph: Graph) -> RunRecord:
    """The first files of a run, and last the record that vouches for them."""
    write_graph_files(path, graph)
    record = record.model_copy(update={"files": {name: sha256(path / name) for name in GRAPH_FILES}})
    write_record(path, record)
    return record


def finish_run(path: Path, record: RunRecord, model: Scorer, metrics: Mapping[str, Any]) -> RunRecord:
    """Write the weights, then the record that vouches for them: a crash in between leaves an unfinished run."""
    write_weights(path, model.state_dict())
    return finish_record(path, record, metrics)


def write_weights(path: Path, tensors: Mapping[str, Tensor], metadata: dict[str, str] | None = None) -> None:
    """The learned weights; the metadata have the index of the files of rows that belong to them, if there are any."""
    put_in_place(path / WEIGHTS, tensors, metadata, (metadata or {}).get(INDEX))


def finish_record(path: Path, record: RunRecord, metrics: Mapping[str, Any]) -> RunRecord:
    """Let the record vouch for the weights."""
    files = record.files | {WEIGHTS: sha256(path / WEIGHTS)}
    record = record.model_copy(update={"status": "finished", "metrics": dict(metrics), "files": files})
    write_record(path, record)
    return record


def load_run(
    path: Path | str,
    *,
    device: str = "cpu",
    anyway: bool = False,
    model: type[Scorer] | None = None,
    making: Callable[[int], AbstractContextManager[None]] | None = None,
    keep_part: Callable[[Scorer], Wanted | None] = lambda model: None,
) -> Run:
    """A run from its folder. An unfinished one comes with the best weights of its last checkpoint, and its `state`
    says so; one that diverged is refused, unless `anyway`. One of a model that is not listed needs its class: no code
    is imported because a folder names it. The rows of a large one are mapped from its file, and read when they are
    needed. One of several processes may `keep_part` of the entities' rows, and be `making` no others."""
    path, place = Path(path), find_device(device)
    record = read_record(path)
    graph = read_run_graph(path, record)
    if record.status == "diverged" and not anyway:
        raise RunError(
            f"{path} diverged: {record.reason} Train it at a lower rate (relwalk resume {path} --lr "
            f"{record.training.lr / 10:g}), or say --anyway (anyway=True) to use its last good checkpoint."
        )
    plan = blueprint(path, record, graph, model=model)
    _check_weights(path, record, plan)
    epoch = read_progress(path / CHECKPOINT).epoch if record.status != "finished" else None
    large, coded = next(plan.parameters()).is_meta, record.model.compression is not None
    mapped = large and not coded and making is None
    with making(len(graph.entities)) if making is not None else only_rows(NONE) if mapped else nullcontext():
        loaded = fresh_model(record, graph, copies=0 if mapped else 1, model=model) if large else plan
    weights = _read_weights(path, record, keep_part(loaded))
    if mapped:
        _prepare_rows(loaded, weights, mapped=place.type == "cpu" and not _has_room(weights))
    loaded.load_state_dict(weights, assign=True)  # as they are mapped from the file: what is not asked for is not read
    return Run(path, record, graph, loaded.to(place).eval(), epoch)


def _has_room(weights: Mapping[str, Tensor]) -> bool:
    """Whether there is room in memory for the keys of all entities, which make answers faster, and much beside them."""
    room = available_memory()
    return room is not None and KEYS * sum(t.numel() * t.element_size() for t in weights.values()) <= room


def _prepare_rows(model: Scorer, weights: Mapping[str, Tensor], *, mapped: bool) -> None:
    """Give the tables of a model as many rows as their weights have; `mapped` ones are gone through by blocks."""
    for name, table in model.named_modules():
        if isinstance(table, EntityTable):
            set_rows(table, torch.empty_like(weights[f"{name}.weight"], device="meta"), mapped=mapped)


def read_state(path: Path) -> RunState:
    """How far a run came, from its record and the header of its checkpoint."""
    record = read_record(path, check_files=False)
    has_checkpoint = (path / CHECKPOINT).is_file()
    return _state(record, read_progress(path / CHECKPOINT).epoch if has_checkpoint else 0)


def _state(record: RunRecord, epoch: int | None) -> RunState:
    if record.status == "finished":
        epochs = record.training.epochs
        return RunState("finished", int(record.metrics.get("epochs") or epochs), epochs)
    status: Literal["unfinished", "diverged"] = "diverged" if record.status == "diverged" else "unfinished"
    return RunState(status, epoch or 0, record.training.epochs, record.reason)


def fresh_model(record: RunRecord, graph: Graph, *, copies: int = 1, model: type[Scorer] | None = None) -> Scorer:
    """The model of a run before its first step; refused when `copies` of it do not fit into memory.

    `model` is its class, needed when it is not a listed one. A compressed one has room for its weights, and none yet.
    """

    def build(entities: int) -> Scorer:
        return build_model(
            _kind(record.model, model),
            entities,
            len(graph.relations),
            record.model.dim,
            seed=record.training.seed,
            options=record.model.options,
            copies=copies,
        )

    how = record.model.compression
    return build(len(graph.entities)) if how is None else compressed_blank(build, len(graph.entities), how)


def _kind(record: ModelRecord, model: type[Scorer] | None) -> Model:
    """What builds the model of a record. A class that is given must be the one it names."""
    if model is None and record.listed:
        return record.name
    if model is None:
        name = record.name.rpartition(":")[2]
        raise RunError(
            f"it has a model of its own, {record.name}, and nothing is imported because a folder names it. "
            f"Give the class in Python: model={name}"
        )
    names = (record.name, record.name.rpartition(":")[2])
    if model_class(model) is MODELS.get(record.name) or (not record.listed and model.__qualname__ in names):
        return model
    raise RunError(f"it has the model {record.name}; found model={model.__qualname__}. Give that one.")


def blueprint(path: Path, record: RunRecord, graph: Graph, *, model: type[Scorer] | None = None) -> Scorer:
    """The model to compare files with, by the names, types and shapes of its weights.

    A large one has no numbers (the device "meta"), whatever a damaged record promises. To build that way costs a second
    of imports, so others are simply built.
    """
    relations, dim, how = 2 * len(graph.relations), record.model.dim, record.model.compression
    entities = len(graph.entities) if how is None or how.entities is None else 1  # of codes, a row is built
    most = 2 * (entities * dim + relations * dim**2)  # of any model here
    try:
        with nullcontext() if most < CHEAP else torch.device("meta"):
            return fresh_model(record, graph, model=model)
    except RunError as error:
        raise RunError(f"{path / RECORD}: {error}") from error
    except (RelWalkError, RuntimeError, TypeError, ValueError, OverflowError) as error:
        what = f"the model {record.model.name} of dim {record.model.dim} with {record.model.options or 'no options'}"
        raise RunError(f"{path / RECORD}: {what} cannot be built ({error}). Restore it, or train again.") from error


def _check_weights(path: Path, record: RunRecord, plan: Scorer) -> None:
    """Refuse weights that are not there, or whose header does not fit the plan of the model."""
    if record.status != "finished":
        if not (path / CHECKPOINT).is_file():
            raise RunError(
                f"{path} has no weights yet: its training stopped before the first checkpoint. "
                f"Go on with: relwalk resume {path}"
            )
        return check_weights(path / CHECKPOINT, record.owner(), plan)
    if WEIGHTS not in record.files:
        raise RunError(f"{path / RECORD} does not vouch for {WEIGHTS}. Restore it, or train again.")
    names = _names(record)
    found = {names.get(name, name): spec for name, spec in whole_header(path / WEIGHTS)[1].items()}
    check_specs(path / WEIGHTS, found, {name: Spec.from_tensor(t) for name, t in plan.state_dict().items()})


def _read_weights(path: Path, record: RunRecord, wanted: Wanted | None) -> dict[str, Tensor]:
    """The weights of a run, or the rows of them that are wanted, after `_check_weights`."""
    if record.status != "finished":
        return best_weights(path / CHECKPOINT, wanted)
    names = _names(record)
    return {names.get(name, name): tensor for name, tensor in whole_tensors(path / WEIGHTS, wanted).items()}


def _names(record: RunRecord) -> dict[str, str]:
    """What weights are called now that an earlier format called otherwise."""
    return FIRST_NAMES if record.version == 1 else {}


def read_run_graph(path: Path, record: RunRecord) -> Graph:
    """The graph as the run keeps it; `read_record` must have checked its files."""
    for name in GRAPH_FILES:
        if name not in record.files:
            raise RunError(f"{path / RECORD} does not vouch for {name}. Restore it, or train again.")
    graph = read_graph_files(path, record.graph.name, record.graph.notes)
    if graph.fingerprint != record.graph.fingerprint:
        raise RunError(f"{path} holds another graph than its record names. Restore it, or train again.")
    fitted = record.probabilities
    if fitted is not None and fitted.relations != len(graph.relations):
        raise RunError(
            f"{path / RECORD}: probabilities of {fitted.relations:,} relations; the graph has "
            f"{len(graph.relations):,}. Restore it, or train again."
        )
    return graph
