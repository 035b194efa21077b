"""`tune`: search for the settings of a model on a graph, in the time there is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from relwalk.checks import check_seconds, check_seed, check_whole
from relwalk.children import Child, Stop, cause_of_death, folder_for, graph_for_children
from relwalk.config import Source, read_config
from relwalk.errors import GraphError, Interrupted, RefusedOverwrite, RelWalkError, choose
from relwalk.evaluation.comparison import RULES, graph_facts
from relwalk.evaluation.metrics import RankMetrics
from relwalk.evaluation.ranking import rank
from relwalk.evaluation.tuning import Trial, Tuning, best_of
from relwalk.files import lock_folder, write_atomically
from relwalk.graph.graph import Graph
from relwalk.graph.read import read_graph
from relwalk.keywords import all_keywords, with_keywords
from relwalk.machine import this_machine
from relwalk.models import MODELS
from relwalk.progress import Screen, open_screen
from relwalk.report.tuning import write_tuning
from relwalk.runs.record import software_versions
from relwalk.runs.run import load_run
from relwalk.tuning.display import TuningDisplay
from relwalk.tuning.folder import (
    BEST,
    GRAPH,
    PAGE,
    TUNE,
    WAIT,
    Session,
    Study,
    StudyFolder,
    space_as_dict,
)
from relwalk.tuning.sampler import find_optuna, importance
from relwalk.tuning.space import search_space

MOST_JOBS = 256
DEATHS = 2  # processes that end before they take a trial, one after the other, after which it is no use


@with_keywords(without=("budget",))
def tune(
    graph: Graph | Any,
    *,
    budget: str | float = "1h",
    model: str | None = None,
    trials: int | None = None,
    jobs: int = 1,
    recipe: str | None = None,
    dim: int | None = None,
    config: Source | None = None,
    out: Path | str | None = None,
    force: bool = False,
    progress: bool | None = None,
    stop: Stop | None = None,
    source: str = "",
    **keywords: Any,
) -> Tuning:
    """Search for the settings with which a model has the highest MRR on valid, and rank test with the best one.

    `budget` is the time of all of it, validation included, as "90s", "10m", "1h" or seconds; `trials` how many
    trainings it may be, at most, else what the time allows. The first is the default recipe; what the settings, the
    objective and the model declare is then tried by Optuna (`pip install 'relwalk[tune]'`). What is given here as to
    `train`, or in `config` (a TOML file or a mapping), is fixed and not searched. A trial that is behind half of the
    others ends early; one that fails is a row with the reason.

    With `out`, all is kept there: trials, tune.json, tune.html, best.toml for `train(config=...)`, and the run of the
    best trial. The same call goes on with it after an interruption, or with more time; made in several processes at
    once, they share the work, as `jobs` processes of one call do. `force` begins again where another search is in the
    way. `progress` and `stop` as in `train`.
    """
    seconds, jobs = check_seconds("budget", budget), check_whole("jobs", jobs, most=MOST_JOBS)
    limits = {"budget": seconds, "trials": None if trials is None else check_whole("trials", trials)}
    fixed = _fixed(config, {"model": model, "recipe": recipe, "dim": dim, **keywords})
    find_optuna()
    if not isinstance(graph, Graph):
        source = source or str(graph)[:200]
        graph = read_graph(graph)
    if len(graph.valid) == 0:
        raise GraphError(f"graph {graph.name!r} has no valid triples to choose settings by. Give it a valid split.")
    study = _study(graph, source or graph.name, fixed)
    with folder_for(out, "a search") as place:
        folder = StudyFolder(place)
        study = _begun(folder, study, graph, force=force)
        limits |= {"processes": jobs, "threads": max(1, torch.get_num_threads() // jobs)}
        with ExitStack() as held:
            screen = open_screen(progress)
            if screen is not None:
                held.callback(screen.close)
            _work(folder, study, limits, jobs, screen, stop)
            return _result(folder, study, limits, None if out is None else str(out))


def _fixed(config: Source | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """What was given by hand, in the arguments and in a file, as JSON has it."""
    found = read_config(config)
    if found.training:
        raise RelWalkError(
            f"{config} is a run, whose settings are all decided: nothing would be searched. Give a TOML file of those "
            "that are to be fixed."
        )
    whole = {"model": found.model, "recipe": found.recipe, "dim": found.dim}
    said = {**whole, **found.given, **{name: value for name, value in given.items() if value is not None}}
    fixed = {name: value for name, value in said.items() if value is not None}
    if "budget" in found.given:
        raise RelWalkError("budget is that of the whole search. Say --budget instead of it in a file.")
    if fixed.get("model") is not None:
        choose("model", fixed["model"], MODELS)  # a class of one's own could not be found by other processes
    known = [*whole, *all_keywords()]
    for name in fixed:
        if name not in known:
            choose("setting of a training", name, dict.fromkeys(known))
    check_seed(fixed.get("seed", 0))
    result: dict[str, Any] = json.loads(json.dumps(fixed, default=str))
    return result


def _study(graph: Graph, source: str, fixed: dict[str, Any]) -> Study:
    space = search_space(graph, fixed)
    if not space.searched:
        raise RelWalkError("every setting that could be searched was given by hand. Leave some of them out.")
    return Study(
        graph=graph_facts(graph, source),
        model=space.default.model.name,
        fixed=fixed,
        usual=space.usual,
        left_out=space.left_out,
        seed=space.default.training.seed,
        notes=graph.notes,
        machine=this_machine(),
        versions=software_versions(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        space=space_as_dict(space.searched),
    )


def _begun(folder: StudyFolder, wanted: Study, graph: Graph, *, force: bool) -> Study:
    """The search to go on with: the one in the folder, if it is the one that is wanted."""
    with lock_folder(folder.path, wait=WAIT):
        if force and folder.exists():
            _refuse_at_work(folder)
            folder.clear()
        if folder.exists():
            found = folder.read_study()
            difference = found.differs(wanted)
            if difference is not None:
                raise RelWalkError(
                    f"{folder.path} holds another search: {difference}. Choose another --out, or say --force "
                    "(force=True) to begin again there."
                )
            wanted = found
        elif others := sorted(p.name for p in folder.path.iterdir() if not p.name.startswith(".")):
            raise RefusedOverwrite(folder.path, f"or move away what is in it ({others[0]!r} is no part of a search)")
        else:
            folder.write_study(wanted)  # first: what is missing beside it is made by the next call
        folder.make_places()
        graph_for_children(folder.path / GRAPH, graph)
        return wanted


def _refuse_at_work(folder: StudyFolder) -> None:
    if not folder.trials_path.is_dir():
        return
    with folder.locked():
        at_work = folder.at_work(folder.trials())
    if at_work:
        raise RelWalkError(
            f"process {at_work[0].process} is at trial {at_work[0].number} of {folder.path}. End it first, or choose "
            "another --out."
        )


def _work(
    folder: StudyFolder, study: Study, limits: Mapping[str, Any], jobs: int, screen: Screen | None, stop: Stop | None
) -> None:
    """Start the processes, watch them, and put others in the place of those that die."""
    session, deaths = Session(folder), 0
    request = folder.path / f".request-{session.file.stem}.json"
    write_atomically(request, json.dumps({"folder": str(folder.path.absolute()), "limits": limits}).encode())
    display = TuningDisplay(screen, study, limits["budget"]) if screen is not None else None
    children = [Child("relwalk.tuning.child", request) for _ in range(jobs)]
    try:
        while children:
            if stop is not None and stop():
                raise Interrupted(0)
            children[0].ended()
            for child in [child for child in children if child.ended(0) is not None]:
                children.remove(child)
                if (code := child.end()) == 0:
                    continue
                deaths = 0 if _bury(folder, child) else deaths + 1
                if deaths >= DEATHS:
                    raise RelWalkError(f"no trial could begin: {cause_of_death(code)}")
                children.append(Child("relwalk.tuning.child", request))
            session.beat()
            if display is not None and display.due():
                display.show(folder.trials(), folder.spent())
    finally:
        for child in children:
            child.process.stdin.close()  # type: ignore[union-attr]  # all are told first
        for child in children:
            child.end()
        session.beat(now=True)
        request.unlink(missing_ok=True)
    if display is not None:
        display.show(folder.trials(), folder.spent())


def _bury(folder: StudyFolder, child: Child) -> bool:
    """A trial whose process died has failed; whether there was one."""
    own = f"{child.process.pid} on "
    lost = [t for t in folder.trials() if t.status == "running" and t.process.startswith(own)]
    for trial in lost:
        folder.end(replace(trial, status="failed", reason=cause_of_death(child.process.returncode)))
    return bool(lost)


def _result(folder: StudyFolder, study: Study, limits: Mapping[str, Any], out: str | None) -> Tuning:
    """What was found, in files too. Test is ranked once nobody works on it any more."""
    with folder.locked():
        trials = folder.trials()
        folder.keep_best(trials)
        elsewhere = len(folder.at_work(trials))
    best = best_of(trials)
    found = Tuning(
        graph=study.graph,
        model=study.model,
        budget=limits["budget"],
        spent=folder.spent(),
        seed=study.seed,
        fixed=study.fixed,
        space=study.searched,
        left_out=study.left_out,
        trials=tuple(trials),
        test=_tested(folder, best) if best is not None and not elsewhere else {},
        importance=importance(study.searched, trials),
        elsewhere=elsewhere,
        machine=study.machine,
        versions=study.versions,
        created=study.created,
        path=out,
        settings_file=str(folder.path / BEST) if out is not None and best is not None else None,
        run=str(folder.run(best.number)) if out is not None and best is not None else None,
    )
    text = json.dumps(found.as_dict(), ensure_ascii=False, indent=1)
    write_atomically(folder.path / TUNE, (text + "\n").encode("utf-8", "replace"))
    write_atomically(folder.path / PAGE, write_tuning(found).encode("utf-8", "replace"))
    return found


def _tested(folder: StudyFolder, best: Trial) -> dict[str, RankMetrics]:
    """The figures of the chosen run on test, by both protocols."""
    run = load_run(folder.run(best.number))
    if len(run.graph.test) == 0:
        return {}
    return {rule: rank(run, candidates=rule, progress=False).metrics() for rule in RULES}  # type: ignore[arg-type]
