"""The one place where the stages meet: a graph in, a trained run out."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from relwalk.checks import check_seconds
from relwalk.config import Source, read_config
from relwalk.devices import find_device
from relwalk.errors import Interrupted, RelWalkError, RunError, TrainingDiverged
from relwalk.files import write_atomically
from relwalk.graph.graph import Graph
from relwalk.graph.lists import Ints
from relwalk.graph.read import read_graph
from relwalk.keywords import with_keywords
from relwalk.mapped import MEMORY, DiskRoom, Room, nearest_folder
from relwalk.models import (
    Model,
    Scorer,
)
from relwalk.models.tables import tables_in
from relwalk.planning import make_plan
from relwalk.progress import OnProgress, silent
from relwalk.runs.checkpoint import Progress, read_progress
from relwalk.runs.folder import CHECKPOINT, HISTORY, whole_run
from relwalk.runs.record import Change, RunRecord, read_record
from relwalk.runs.run import (
    Run,
    RunState,
    blueprint,
    fresh_model,
    load_run,
    read_run_graph,
    read_state,
    write_new,
)
from relwalk.sharded.processes import OneProcess, processes
from relwalk.together import ALONE
from relwalk.training.checkpoint import check_checkpoint
from relwalk.training.display import Observers, training_display
from relwalk.training.footprint import refuse_large_step
from relwalk.training.optimizers import copies_held
from relwalk.training.prepare import check_dropout
from relwalk.training.regularizers import check_regularizers
from relwalk.training.settings import TrainingSettings, make_settings
from relwalk.training.start import start_entities
from relwalk.training.stopping import StopRequest, stop_on
from relwalk.training.trainer import Observer, Task, Trainer

Stop = Callable[[], bool]  # asked between steps whether to stop


@with_keywords()
def train(
    graph: Graph | Any,
    *,
    recipe: str | None = None,
    model: Model | None = None,
    dim: int | None = None,
    config: Source | None = None,
    out: Path | str | None = None,
    force: bool = False,
    device: str = "cpu",
    on_disk: bool = False,
    observer: Observer | None = None,
    progress: bool | None = None,
    stop: Stop | None = None,
    source: str = "",
    **keywords: Any,
) -> Run:
    """Train a model on a graph: a `Graph`, or whatever `read_graph` takes.

    `model` is a name, or a class of one's own (`relwalk.testing.check_model` tries it). `config` has what is not given:
    a TOML file or a mapping of these keywords, or a run (its folder or run.json) to be repeated; a recipe sets the
    rest. With `out`, the run is saved there as it goes, and `resume` can continue it after any interruption; Ctrl-C
    saves the last whole step before `KeyboardInterrupt` goes on. With `force`, it takes the place of an earlier run
    when it is finished. With `on_disk` the vectors of entities, and what training keeps of that size, are in files
    beside `out` that are mapped into memory: for graphs that are larger than that, with the same bits, more slowly.
    `progress`: True shows it on standard error, a bar on a terminal or in a notebook, a line a
    minute elsewhere; False shows nothing; None is True where somebody watches. `stop` is asked between steps: once it
    says yes, all is saved and `Interrupted` raised. Processes that torchrun started train one model together, each with
    a part of its entities, and need `out`; the model of the run that they return is that part, of rank 0 the whole.
    """
    place, among = find_device(device), processes()
    if not isinstance(graph, Graph):
        source = source or str(graph)[:200]
        graph = read_graph(graph)
    record, kind, why = make_plan(graph, source or graph.name, recipe, model, dim, read_config(config), keywords, place)
    # Before anything is written: a wrong option must leave no folder.
    among.check(record, graph, place, out)
    if out is not None and among.goes_on(Path(out), record):
        return resume(out, model=kind, device=device, on_disk=on_disk, observer=observer, progress=progress, stop=stop)
    room = _room(on_disk, out, place)
    with among.making(len(graph.entities), whole=record.training.start_entities is not None), tables_in(room):
        fresh = fresh_model(record, graph, copies=copies_held(record.training, room), model=kind)
    check_dropout(fresh, record.training)
    check_regularizers(fresh, record.training)
    note = "\n".join(filter(None, (why, _start(fresh, graph, record.training, progress))))
    among.keep_part(fresh)
    task = among.task(graph, record.training, place)
    refuse_large_step(task, fresh)
    if out is None:
        return _Training(record, graph, fresh, task, place, observer, progress, stop, among, note=note).run()
    path, first = Path(out), record

    def write(folder: Path) -> None:
        nonlocal record
        record = write_new(folder, first, graph)

    with _saved_when_interrupted(path, stop) as asked, among.begin(path, write, force=force) as folder:
        own = record, graph, fresh, task, place, observer, progress, asked, among, path, folder, note, room
        run = _Training(*own).run()
    return run


def _room(on_disk: bool, out: Path | str | None, device: torch.device) -> Room:
    """Where there is room for tables: in memory, or in files beside the run."""
    if not on_disk:
        return MEMORY
    if out is None:
        raise RelWalkError("on_disk keeps tables in files beside the run: say where that goes (--out, out=).")
    if device.type != "cpu":
        raise RelWalkError(f"on_disk is for the memory of the CPU; found device {device}. Leave one of them out.")
    return DiskRoom(nearest_folder(Path(out)))


def _start(model: Scorer, graph: Graph, settings: TrainingSettings, progress: bool | None) -> str:
    """Entities at the vectors that they are to start from, and a sentence about it; none where they start at random."""
    if settings.start_entities is None:
        return ""
    return start_entities(model, graph, settings.start_entities, seed=settings.seed, progress=progress)


def resume(
    path: Path | str,
    *,
    epochs: int | None = None,
    budget: str | float | None = None,
    lr: float | None = None,
    relation_lr: float | None = None,
    threads: int | None = None,
    model: type[Scorer] | None = None,
    device: str = "cpu",
    on_disk: bool = False,
    observer: Observer | None = None,
    progress: bool | None = None,
    stop: Stop | None = None,
) -> Run:
    """Continue an interrupted run from its last checkpoint, to the same weights as if it had not been.

    With `epochs`, or `budget` where a time was given, train a finished run further; with `lr` or `relation_lr`, go on
    at another rate, also after training diverged; with `threads`, go on with as many, which changes rounding. A run
    that was to replace this one and is not finished comes first. `model` is the class of a run whose model is one's
    own; `on_disk`, `progress` and `stop` as in `train`.
    """
    path, place, among = whole_run(Path(path)), find_device(device), processes()
    room = _room(on_disk, path, place)
    seconds = None if budget is None else check_seconds("budget", budget)
    given = {"epochs": epochs, "budget": seconds, "lr": lr, "relation_lr": relation_lr, "threads": threads}
    changed = {name: value for name, value in given.items() if value is not None}
    with _saved_when_interrupted(path, stop) as asked, among.reopen(path) as folder:
        state = read_state(folder)
        record = read_record(folder)
        if record.model.compression is not None:
            raise RunError(
                f"{path} is compressed ({record.model.compression}): what training needs of its weights is gone. "
                "Resume the run that it was made from, and compress that again."
            )
        if state.status == "finished" and not changed:
            return load_run(folder, device=device, model=model)
        further = _with_changes(record, state, changed)  # a wrong value is told first
        _refuse_resume(path, folder, state, further.training, changed)
        graph = read_run_graph(folder, record)
        among.check(further, graph, place, path)
        plan = blueprint(folder, record, graph, model=model)
        if (folder / CHECKPOINT).is_file():
            check_checkpoint(folder / CHECKPOINT, record.owner(), plan, record.training)
        with among.making(len(graph.entities), whole=further.training.start_entities is not None), tables_in(room):
            fresh = fresh_model(further, graph, copies=copies_held(further.training, room), model=model)
        # A checkpoint has the start in it; a run that stopped before its first one begins anew.
        begun = (folder / CHECKPOINT).is_file()
        note = "" if begun else _start(fresh, graph, further.training, progress)
        among.keep_part(fresh)
        task = among.task(graph, further.training, place)
        own = further, graph, fresh, task, place, observer, progress, asked, among, path, folder, note, room
        return _Training(*own).run(resumed=True, further=bool({"epochs", "budget"} & set(changed)))


def _refuse_resume(
    path: Path, folder: Path, state: RunState, further: TrainingSettings, changed: Mapping[str, Any]
) -> None:
    """What cannot be gone on with, and why."""
    begun = (folder / HISTORY).is_file() or state.status == "finished"
    if begun and not (folder / CHECKPOINT).is_file():
        raise RunError(f"{folder} has no {CHECKPOINT} to continue from. Restore it, or train again with --force.")
    spent = read_progress(folder / CHECKPOINT).seconds if (folder / CHECKPOINT).is_file() else 0.0
    if state.status == "finished" and further.seconds <= spent:
        raise RelWalkError(
            f"{path} is finished, after {spent:.6g} seconds of training, which a budget of {further.seconds:g} ends. "
            f"Say --budget with more than that."
        )
    epochs = changed.get("epochs", state.epochs)
    if state.status == "finished" and epochs <= state.epoch:
        raise RelWalkError(
            f"{path} is finished, with {state.epoch} epochs: --epochs {epochs} adds none. Say more than {state.epoch}."
        )
    if epochs < state.epoch:
        raise RelWalkError(f"{path} has {state.epoch} epochs already. Say --epochs {state.epoch} or more.")
    if state.status == "diverged" and not {"lr", "relation_lr"} & set(changed):
        raise RelWalkError(
            f"{path} diverged, and would again: {state.reason} Go on at a lower rate: relwalk resume {path} --lr ..."
        )


def _with_changes(record: RunRecord, state: RunState, changed: Mapping[str, Any]) -> RunRecord:
    update: dict[str, Any] = {"status": "training", "reason": ""}
    if "budget" in changed and record.training.budget is None:
        raise RelWalkError("this training was begun without a budget, and cannot be given one now. Say --epochs.")
    if changed:
        update["training"] = make_settings(record.training.flat(), changed)
        update["changes"] = (*record.changes, Change(after_epoch=state.epoch, settings=dict(changed)))
    return record.model_copy(update=update)


@contextmanager
def _saved_when_interrupted(path: Path, stop: Stop | None) -> Iterator[Stop | None]:
    """Who asks to stop: the caller, or else Ctrl-C, which then becomes `KeyboardInterrupt` once all is saved."""
    if stop is not None or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield stop
        return
    with stop_on(signal.SIGINT) as request:
        try:
            yield request
        except Interrupted as error:
            raise KeyboardInterrupt(f"{error}; go on with: relwalk.resume({str(path)!r})") from None


@contextmanager
def _threads(count: int) -> Iterator[None]:
    """Within, torch has so many; then as many as the caller had."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@dataclass(frozen=True)
class _Training:
    """One training, from its record to a run. With a folder, it is saved there as it goes; it belongs to `path`."""

    record: RunRecord
    graph: Graph
    model: Scorer
    task: Task
    device: torch.device
    observer: Observer | None
    shown: bool | None  # whether progress is shown
    stop: Stop | None
    among: OneProcess
    path: Path | None = None
    folder: Path | None = None
    note: str = ""  # on where entities start
    room: Room = MEMORY

    def run(self, *, resumed: bool = False, further: bool = False) -> Run:
        with _threads(self.record.training.threads):
            return self._run(resumed=resumed, further=further)

    def _run(self, *, resumed: bool, further: bool) -> Run:
        settings = self.record.training
        triples = _validation_triples(self.graph, settings, self.task)
        trainer = Trainer(
            self.model.to(self.device),
            self.task,
            settings,
            validate=self._validation(triples),
            checkpoint=self._checkpoint if self.folder is not None else None,
            observer=self.observer,
            stop=self.stop,
            together=self.among.together,
            room=self.room,
        )
        if resumed and self.folder is not None:
            if (self.folder / CHECKPOINT).is_file():
                self.among.restore(trainer, self.folder / CHECKPOINT)
            if further:
                trainer.progress.validations_without_gain = 0  # asked to go on, also after an early stop
            self.among.write_record(self.folder, self.record)  # only now: a checkpoint that is refused changes nothing
        try:
            with training_display(self.shown if self.among.first else False, trainer) as display:
                if display is not None:
                    if self.note:
                        display.screen.say(self.note)
                    trainer.observer = Observers(self.observer, display)
                    trainer.validate = self._validation(triples, display.validation)
                progress = trainer.run()
        except TrainingDiverged as error:
            raise self._diverged(error) from error
        return self._finished(progress)

    def _finished(self, progress: Progress) -> Run:
        metrics = {"valid_mrr": progress.best_metric, "best_epoch": progress.best_epoch, "epochs": progress.epoch}
        if self.record.training.budget is not None:  # else it would be all that differs between two equal runs
            metrics["seconds"] = progress.seconds
        self.model.eval()
        record = self.among.finish(self.folder, self.record, self.model, self.graph, metrics)
        return Run(self.path, record, self.graph, self.model)

    def _diverged(self, error: TrainingDiverged) -> TrainingDiverged:
        """The same with what is left of it, which the record tells from now on."""
        if self.folder is None:
            return error
        diverged = self.record.model_copy(update={"status": "diverged", "reason": str(error)})
        self.among.write_record(self.folder, diverged)
        return TrainingDiverged(
            f"{error} The last good checkpoint is {self.folder / CHECKPOINT}: go on from it with "
            f"relwalk resume {self.path} --lr {self.record.training.lr / 10:g}"
        )

    def _checkpoint(self, trainer: Trainer) -> None:
        assert self.folder is not None
        self.among.save(trainer, self.folder / CHECKPOINT, self.record.owner())
        if self.among.first:
            lines = [json.dumps(record.as_dict()) + "\n" for record in trainer.progress.history]
            write_atomically(self.folder / HISTORY, "".join(lines).encode())

    def _validation(self, triples: Ints, report: OnProgress = silent) -> Callable[[Scorer], float] | None:
        """Filtered MRR over all entities on these triples; nothing to select by without any. A signal breaks it off."""
        if len(triples) == 0:
            return None

        def validate(model: Scorer) -> float:
            alone = self.among.together is ALONE  # several cannot break off: each at its own place
            with self.stop.breaking() if isinstance(self.stop, StopRequest) and alone else nullcontext():
                return self.among.rank(model, self.graph, "valid", triples=triples, progress=report).mrr

        return validate


def make_task(graph: Graph, settings: TrainingSettings, device: str | torch.device = "cpu") -> Task:
    """What is learned from, by the objective's name."""
    return OneProcess().task(graph, settings, torch.device(device))


VALIDATION_SHARE = 0.02  # of the products of training; with comparing and counting under 5% of its time
VALIDATION_LEAST = 2000  # triples that are ranked in any case
VALIDATION_BY_TIME = 2000  # triples that are ranked at most with a budget: for every model the same, however fast it is


def _validation_triples(graph: Graph, settings: TrainingSettings, task: Task) -> Ints:
    """All of valid, or as many triples, always the same, as can be ranked in a small part of the training's time.

    Ranking makes one product of 2 x triples x entities.
    """
    epochs = min(settings.validate_every, settings.epochs)  # between one validation and the next
    if settings.budget is not None:
        most = VALIDATION_BY_TIME
    elif task.products is None:
        most = len(graph.valid)
    else:
        most = max(VALIDATION_LEAST, int(VALIDATION_SHARE * task.products * epochs / (2 * len(graph.entities))))
    if len(graph.valid) <= most:
        return graph.valid
    order = np.random.default_rng(settings.seed).permutation(len(graph.valid))
    return graph.valid[np.sort(order[:most])]
