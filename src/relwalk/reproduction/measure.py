"""A run becomes a record: it is ranked by both protocols, and judged where its graph ships false triples."""

from __future__ import annotations

import json
import shlex
import subprocess
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import relwalk
from relwalk.errors import RelWalkError, RunError
from relwalk.evaluation.classification import ClassificationResult, classify
from relwalk.evaluation.comparison import RULES
from relwalk.evaluation.ranking import rank
from relwalk.machine import this_machine
from relwalk.planning import plan
from relwalk.progress import Progress
from relwalk.reproduction.record import Cost, Figures, Machine, Metrics, ResultRecord, Settings, check_recipe
from relwalk.runs.folder import HISTORY
from relwalk.runs.run import Run

SHORT = ("mrr", "mr", "hits@1", "hits@3", "hits@10", "queries")  # of each relation
NO_DEPARTURE = ("threads", "checkpoint_seconds")  # change how long it takes, and nothing that is learned
PLACES = 6  # decimals of the figures of relations


def measure_run(
    run: Run,
    command: str = "",
    *,
    commit: str | None = None,
    peak_bytes: int | None = None,
    asked: Mapping[str, Any] | None = None,
    recipe: str | None = None,
    note: str = "",
    progress: Progress = None,
) -> ResultRecord:
    """The record of a finished run, all of its test triples ranked by both protocols.

    `command` is what made it, one that takes its settings from the record when left empty; `commit` and `peak_bytes`
    are known only to who trained it. `asked` is where it departs from its recipe, found out when left out; `recipe` is
    a name of one's own for the settings that it has.
    """
    if run.record.status != "finished":
        raise RunError(f"{run.path} is {run.state}: a record is about a whole training. Finish it: relwalk resume.")
    listed = check_recipe(recipe) if recipe is not None else run.record.recipe
    started = time.perf_counter()
    ranked = {rule: rank(run, candidates=rule, progress=progress) for rule in RULES}  # type: ignore[arg-type]
    ranking_seconds = time.perf_counter() - started
    record, figures = run.record, run.record.metrics
    if asked is None:
        asked = departures(run) if recipe is None else {}
    metrics: dict[str, Any] = {rule: found.as_dict()["metrics"] for rule, found in ranked.items()}
    by_relation = {
        rule: {name: _short(row["both"]) for name, row in found.as_dict()["by_relation"].items()}
        for rule, found in ranked.items()
    }
    if run.graph.test_negatives is not None:
        judged = classify(run, combine=True, progress=progress)
        metrics["classification"] = _classified(judged)
        by_relation["classification"] = {name: _rounded(row) for name, row in judged.as_dict()["by_relation"].items()}
    found = ResultRecord(
        dataset=run.graph.name,
        model=record.model.name,
        recipe=listed,
        seed=record.training.seed,
        command=command,
        asked=dict(asked),
        note=note,
        commit=commit,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=record.versions,
        machine=Machine(**this_machine(), threads=record.training.threads),
        graph=record.graph,
        settings=Settings(dim=record.model.dim, options=dict(record.model.options), training=record.training.flat()),
        cost=Cost(
            **_times(run),
            epochs=int(figures["epochs"] or 0),
            best_epoch=None if figures["best_epoch"] is None else int(figures["best_epoch"]),
            ranking_seconds=round(ranking_seconds, 2),
            peak_bytes=peak_bytes,
            numbers=sum(weight.numel() for weight in run.model.parameters()),
        ),
        metrics=Metrics(valid_mrr=figures["valid_mrr"], **metrics),
        by_relation=by_relation,
    )
    again = f"relwalk train {shlex.quote(record.graph.source)} --config {found.name}.json"
    return found.model_copy(update={"command": command or again})


def departures(run: Run) -> dict[str, Any]:
    """Where the settings of a run are not what its recipe says today, by the names of flags."""
    record = run.record
    try:
        usual = plan(run.graph, recipe=record.recipe, model=record.model.name, seed=record.training.seed)
    except RelWalkError as error:  # a recipe that is no longer known, or a model of one's own
        return {"settings": str(error)}
    ours, theirs = ({"dim": r.model.dim, **r.model.options, **r.training.flat()} for r in (record, usual))
    return {name: value for name, value in ours.items() if name not in NO_DEPARTURE and theirs.get(name) != value}


def _short(row: Mapping[str, float | int]) -> Figures:
    return _rounded({name: row[name] for name in SHORT})


def _rounded(row: Mapping[str, float | int]) -> Figures:
    return {name: round(value, PLACES) for name, value in row.items()}


def _classified(judged: ClassificationResult) -> Figures:
    return {name: value for name, value in judged.as_dict().items() if isinstance(value, float | int)}


def _times(run: Run) -> dict[str, float]:
    """Seconds of training by the history that a saved run keeps."""
    path = run.path / HISTORY if run.path is not None else None
    if path is None or not path.is_file():
        return {}
    epochs = [json.loads(line) for line in path.read_text().splitlines()]
    return {
        "seconds": round(sum(epoch["seconds"] for epoch in epochs), 2),
        "validation_seconds": round(sum(epoch["validation_seconds"] or 0.0 for epoch in epochs), 2),
        "median_epoch_seconds": round(median(epoch["seconds"] for epoch in epochs), 3),
    }


def source_commit() -> str | None:
    """The commit that this code is of, with a + where its files differ from it; None where it is in no repository."""
    package = Path(relwalk.__file__).parent
    root = package.parents[1]
    if not (root / ".git").exists() or package.parent.name != "src":
        return None
    try:
        commit = _git(root, "rev-parse", "HEAD")
        return commit + "+" * bool(_git(root, "status", "--porcelain", "--", "src"))
    except (OSError, subprocess.CalledProcessError):
        return None


def _git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()
