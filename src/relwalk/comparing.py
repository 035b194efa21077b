"""`compare`: several models, each trained for the same time in a process of its own, and one table of what they reach.

    compare.json     settings, machine, versions, and of each model figures, cost and learning curve
    compare.html     the same as a page
    <name>/          the run of each model, as `relwalk train` would leave it
    .work/           while it is under way: the graph, and what the processes are asked and tell

compare.json is there before the first run begins, and written again after each model: whatever interrupts it, the same
call goes on with it.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from relwalk.checks import check_seconds, check_seed, check_whole
from relwalk.children import Stop, cause_of_death, folder_for, graph_for_children, run_child
from relwalk.config import WHOLE, read_toml
from relwalk.errors import GraphError, RefusedOverwrite, RelWalkError, RunError, UnknownChoice, choose
from relwalk.evaluation.comparison import Compared, Comparison, graph_facts, read_compared, read_comparison
from relwalk.files import lock_folder, write_atomically
from relwalk.graph.graph import Graph
from relwalk.graph.read import read_graph
from relwalk.keywords import all_keywords
from relwalk.machine import this_machine
from relwalk.models import MODELS
from relwalk.progress import Screen, duration, open_screen
from relwalk.report.comparison import write_comparison
from relwalk.runs.folder import is_run, remove_run
from relwalk.runs.record import software_versions

COMPARE, COMPARE_PAGE, WORK = "compare.json", "compare.html", ".work"
SAME_FOR_ALL = ("budget", "seed")  # what makes it a comparison
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")  # of a model: it is a folder as well


def compare(
    graph: Graph | Any,
    *,
    models: Sequence[str] | None = None,
    budget: str | float = "10m",
    dim: int | None = None,
    config: Mapping[str, Any] | Path | str | None = None,
    out: Path | str | None = None,
    seed: int = 0,
    force: bool = False,
    progress: bool | None = None,
    stop: Stop | None = None,
    source: str = "",
) -> Comparison:
    """Train models for the same time on a graph, rank test with each by both protocols, and put them side by side.

    `models` are names, all listed ones when left out; `budget` is the time of training that each has, as "90s", "10m",
    "1h" or seconds: validation, at most 20 times on at most 2,000 triples, and the ranking of test are not counted.
    `config`, a mapping or a TOML file, has settings for all models at its top, and a table for a model that needs its
    own; a table with `model = ...` may have any name. Everything else is what is usual for a model.

    With `out`, runs, compare.json and compare.html are kept there, and an interrupted comparison goes on when the same
    call is made again. A model that fails is a row with the reason. `force` begins again where another comparison is in
    the way. `progress` and `stop` as in `train`.
    """
    seconds, seed = check_seconds("budget", budget), check_seed(seed)
    if not isinstance(graph, Graph):
        source = source or str(graph)[:200]
        graph = read_graph(graph)
    if len(graph.test) == 0:
        raise GraphError(f"graph {graph.name!r} has no test triples to compare models on. Give it a test split.")
    rows = plan_rows(models, config, dim)
    wanted = Comparison(
        graph=graph_facts(graph, source or graph.name),
        budget=seconds,
        seed=seed,
        models=rows,
        machine=this_machine(),
        versions=software_versions(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        path=None if out is None else str(out),
    )
    with folder_for(out, "a comparison") as folder, lock_folder(folder):
        comparison = _begun(folder, wanted, force=force)
        _write(folder, comparison)
        work = _Work(folder, graph, comparison, open_screen(progress), stop)
        try:
            return work.done()
        finally:
            if work.screen is not None:
                work.screen.close()


def plan_rows(
    models: Sequence[str] | None, config: Mapping[str, Any] | Path | str | None, dim: int | None
) -> tuple[Compared, ...]:
    """A row for each model with what is asked of it. What no model could be told is refused."""
    names = list(MODELS) if models is None else list(models)
    known = all(isinstance(name, str) for name in names)
    if isinstance(models, str) or not names or not known or len(set(names)) < len(names):
        raise RelWalkError(f"models is {models!r}; expected names of models, each once: {', '.join(MODELS)}")
    values = config if isinstance(config, Mapping) else read_toml(Path(config)) if config is not None else {}
    tables = {name: value for name, value in values.items() if isinstance(value, Mapping)}
    common = {name: value for name, value in values.items() if name not in tables}
    if dim is not None:
        common["dim"] = check_whole("dim", dim)
    _check_names(common, [name for name in WHOLE if name != "model"])
    for name, table in tables.items():
        if name not in names and name not in MODELS and "model" not in table:
            raise UnknownChoice("table of settings", name, names)
        _check_names(table, WHOLE)
    return tuple(_row(name, {**common, **tables.get(name, {})}) for name in names)


def _check_names(settings: Mapping[str, Any], beside: Sequence[str]) -> None:
    for name in settings:
        if name in SAME_FOR_ALL:
            raise RelWalkError(f"{name} is the same for all models of a comparison. Say --{name} instead.")
        if name not in (known := [*beside, *all_keywords()]):
            raise UnknownChoice("setting of a comparison", name, known)


def _row(name: Any, given: Mapping[str, Any]) -> Compared:
    choose("model", given.get("model", name), MODELS)
    if not NAME.fullmatch(name) or name in (COMPARE, COMPARE_PAGE):
        raise RelWalkError(f"{name!r} cannot name a folder. Take letters, digits, dots, dashes and underscores.")
    asked = {"model": name, **given}
    return Compared(name, json.loads(json.dumps(asked, default=str)))  # as compare.json will have it


def _begun(folder: Path, wanted: Comparison, *, force: bool) -> Comparison:
    """The comparison to go on with: the one in the folder with what it has, if it is the one that is wanted."""
    if not (folder / COMPARE).exists():
        for row in wanted.models:
            if (folder / row.name).exists():
                raise RefusedOverwrite(folder / row.name, "or move it away: it is no part of a comparison")
        return wanted
    try:
        found = read_comparison(folder / COMPARE)
        difference = _difference(found, wanted)
    except RunError as error:
        if not force:
            raise
        found, difference = wanted, str(error)
    if difference is None:
        have = {row.name: row for row in found.models if row.status == "finished" and is_run(folder / row.name)}
        return replace(wanted, models=tuple(have.get(row.name, row) for row in wanted.models), created=found.created)
    if not force:
        raise RelWalkError(
            f"{folder} holds another comparison: {difference}. Choose another --out, or say --force (force=True) to "
            "begin again there."
        )
    for row in found.models:
        remove_run(folder / row.name)
    shutil.rmtree(folder / WORK, ignore_errors=True)
    return wanted


def _difference(found: Comparison, wanted: Comparison) -> str | None:
    """In what a comparison is not the one that is wanted, which may have more models; None: in nothing."""
    pairs: list[tuple[str, Any, Any]] = [
        ("graph", found.graph.fingerprint[:12], wanted.graph.fingerprint[:12]),
        ("budget", found.budget, wanted.budget),
        ("seed", found.seed, wanted.seed),
    ]
    asked = {row.name: row.asked for row in wanted.models}
    pairs += [(f"model {row.name}", row.asked, asked.get(row.name, "left out")) for row in found.models]
    return next((f"its {what} is {there}, now {now}" for what, there, now in pairs if there != now), None)


def _write(folder: Path, comparison: Comparison) -> None:
    text = json.dumps(comparison.as_dict(), indent=1, ensure_ascii=False)
    write_atomically(folder / COMPARE, (text + "\n").encode("utf-8", "replace"))


@dataclass
class _Work:
    """A comparison under way."""

    folder: Path
    graph: Graph
    comparison: Comparison
    screen: Screen | None
    stop: Stop | None

    def done(self) -> Comparison:
        """Every model that waits, one after the other; then the page."""
        total = len(self.comparison.models)
        for number, row in enumerate(self.comparison.models, start=1):
            if row.status == "finished":
                self._say(f"{number} of {total}: {row.name} is there already")
                continue
            self._say(f"{number} of {total}: {row.name}, {duration(self.comparison.budget)} of training")
            self._take(self._attempt(row))
        page = write_comparison(self.comparison)
        write_atomically(self.folder / COMPARE_PAGE, page.encode("utf-8", "replace"))
        shutil.rmtree(self.folder / WORK, ignore_errors=True)
        return self.comparison

    def _say(self, text: str) -> None:
        if self.screen is not None:
            self.screen.say(text)

    def _take(self, found: Compared) -> None:
        rows = tuple(found if row.name == found.name else row for row in self.comparison.models)
        self.comparison = replace(self.comparison, models=rows)
        _write(self.folder, self.comparison)
        if found.status == "failed":
            self._say(f"{found.name} failed: {found.reason}")

    def _attempt(self, row: Compared) -> Compared:
        """What came of a model in a process of its own."""
        result = self.folder / WORK / f"{row.name}.result.json"
        result.unlink(missing_ok=True)
        code = _run(self._request(row, result), self.stop)
        if result.is_file():
            return read_compared(result)
        return replace(
            row, status="failed", reason=f"{cause_of_death(code)}. The same command goes on from its last checkpoint"
        )

    def _request(self, row: Compared, result: Path) -> Path:
        """The file that tells a process what to do."""
        content = {
            "name": row.name,
            "asked": row.asked,
            "budget": self.comparison.budget,
            "seed": self.comparison.seed,
            **graph_for_children(self.folder / WORK / "graph", self.graph),
            "source": self.comparison.graph.source,
            "run": str(self.folder / row.name),
            "result": str(result),
            "progress": self.screen is not None,
        }
        path = self.folder / WORK / f"{row.name}.json"
        write_atomically(path, json.dumps(content).encode())
        return path


def _run(request: Path, stop: Stop | None) -> int:
    return run_child("relwalk.comparing_child", request, stop)
