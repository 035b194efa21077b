"""`reproduce`: a table or figure of the paper made again, its values beside ours.

    records/<row>.json       the record of each row: figures by both protocols, settings, seed, commit, machine, cost
    figures/<row>-<target>.svg
    runs/<row>/              the run of each row, as `relwalk train` would leave it
    table2.md, .json, .html  and so for each target
    .work/                   while it is under way: the graphs, and what the processes are asked and tell

A row that is there is not made again, and one under way goes on from its last checkpoint: whatever interrupts it, the
same call goes on.
"""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relwalk.children import Stop, cause_of_death, folder_for, graph_for_children, run_child
from relwalk.errors import GraphError, RunError, choose
from relwalk.files import lock_folder, write_atomically
from relwalk.graph.graph import Graph
from relwalk.graph.read import read_graph
from relwalk.progress import Screen, open_screen
from relwalk.reproduction.parts import PARTS
from relwalk.reproduction.record import ResultRecord, read_result, write_result
from relwalk.reproduction.result import Reproduction
from relwalk.reproduction.rows import DATASETS, OF_A_SYSTEM, TARGETS, Row, plan
from relwalk.reproduction.write import write_reproduction
from relwalk.runs.folder import is_run, remove_run
from relwalk.runs.record import read_record

RECORDS, FIGURES, RUNS, WORK = "records", "figures", "runs", ".work"
OUT = Path("runs/reproduce")


def reproduce(
    target: str,
    graphs: str | Graph | Mapping[str, Graph] | None = None,
    *,
    recipe: str = "default",
    models: Sequence[str] | None = None,
    runs: Sequence[Path | str] = (),
    seeds: Sequence[int] = (0,),
    config: Mapping[str, Any] | Path | str | None = None,
    epochs: int | None = None,
    budget: str | float | None = None,
    dim: int | None = None,
    out: Path | str = OUT,
    results: Path | str | None = None,
    force: bool = False,
    progress: bool | None = None,
    stop: Stop | None = None,
) -> Reproduction:
    """Make "table2", "table3", "figure1" or "figure2" of the paper again, and put its values beside ours.

    `graphs` is one, or several by what they were read from; the paper's when left out. RelWalk is trained by `recipe`
    ("paper", "best" or "default"), the other systems of the table (`models`; all when left out) by what is usual for
    them, each with every one of `seeds` in a process of its own; `runs` are finished runs to take instead. `config` has
    settings as in `compare`; `epochs`, `budget` and `dim` hold for every row. A row that fails says why.

    All is kept in `out`, records and figures in `results` where that is given; an interrupted call goes on when it is
    made again, and rows that are there are not trained again, unless `force`. `progress` and `stop` as in `train`.
    """
    choose("target", target, dict.fromkeys(TARGETS))
    rows: list[Row] = []
    if not runs:
        chosen = _read(DATASETS[target] if graphs is None else graphs)
        for graph in chosen.values():
            if len(graph.test) == 0:
                raise GraphError(f"graph {graph.name!r} has no test triples to judge on. Give it a test split.")
        rows = plan(
            target,
            chosen,
            recipe=recipe,
            models=models,
            seeds=seeds,
            config=config,
            epochs=epochs,
            budget=budget,
            dim=dim,
        )
    with folder_for(out, "a reproduction") as folder, lock_folder(folder):
        place = Path(results) if results is not None else folder
        work = _Work(target, folder, place, open_screen(progress), stop)
        try:
            if force:
                work.clear(rows)
            records = [work.given(Path(run)) for run in runs] + work.all_rows(rows)
        finally:
            if work.screen is not None:
                work.screen.close()
        shutil.rmtree(folder / WORK, ignore_errors=True)
        return write_reproduction(Reproduction(target, tuple(records), str(folder)), folder, place / FIGURES)


def _read(graphs: str | Graph | Mapping[str, Graph] | Sequence[str]) -> dict[str, Graph]:
    """Graphs by what they are read from."""
    if isinstance(graphs, Mapping):
        return dict(graphs)
    if isinstance(graphs, Graph):
        return {graphs.name: graphs}
    return {source: read_graph(source) for source in ([graphs] if isinstance(graphs, str) else graphs)}


@dataclass
class _Work:
    """A reproduction under way."""

    target: str
    folder: Path
    results: Path  # of records and figures
    screen: Screen | None
    stop: Stop | None

    @property
    def part(self) -> str | None:
        return self.target if self.target in PARTS else None

    def clear(self, rows: Sequence[Row]) -> None:
        """Without what was there of these rows."""
        for row in rows:
            remove_run(self.folder / RUNS / row.name)
            self._file(row.name).unlink(missing_ok=True)

    def all_rows(self, rows: Sequence[Row]) -> list[ResultRecord]:
        """The record of every row, made or found, one after the other."""
        found = []
        for number, row in enumerate(rows, start=1):
            record = self._there(row)
            if record is None:
                self._say(f"{number} of {len(rows)}: {row.name}")
                record = self._made(row)
            else:
                self._say(f"{number} of {len(rows)}: {row.name} is there already")
            found.append(record)
        return found

    def given(self, path: Path) -> ResultRecord:
        """The record of a run that is there already."""
        record = read_record(path)
        if record.status != "finished":
            raise RunError(f"{path} is {record.status}: a record is about a whole training. Finish it: relwalk resume.")
        wanted = ResultRecord(
            dataset=record.graph.name,
            model=record.model.name,
            recipe=record.recipe,
            seed=record.training.seed,
            command=f"relwalk train {shlex.quote(record.graph.source)}",
        )
        self._say(f"the run {path}")
        return self._asked(wanted, path.name, {"run": str(path), "given": True})

    def _there(self, row: Row) -> ResultRecord | None:
        """The record of a row, if it is whole and has what the target needs."""
        path = self._file(row.name)
        if not path.is_file():
            return None
        found = read_result(path)
        same = found.graph is not None and found.graph.fingerprint == row.graph.fingerprint
        drawn = self.target == "table3" or (self.results / FIGURES / f"{row.name}-{self.target}.svg").is_file()
        part = found.theory.get(self.target)
        whole = self.part is None or (part is not None and (drawn or "absent" in part))
        return found if same and found.status == "finished" and whole else None

    def _made(self, row: Row) -> ResultRecord:
        wanted = ResultRecord(
            dataset=row.graph.name,
            model=row.model,
            recipe=row.recipe,
            seed=row.seed,
            asked=dict(row.asked),
            command=_command(row),
        )
        graph = graph_for_children(self.folder / WORK / f"graph-{row.graph.name}", row.graph)
        run = self.folder / RUNS / row.name
        run.parent.mkdir(parents=True, exist_ok=True)
        if is_run(run) and read_record(run, check_files=False).graph.fingerprint != row.graph.fingerprint:
            why = f"{run} was trained on another graph of that name. Choose another --out, or say --force."
            return self._kept(wanted.model_copy(update={"status": "failed", "reason": why}))
        return self._asked(wanted, row.name, {"run": str(run), "given": False, "source": row.source, **graph})

    def _asked(self, wanted: ResultRecord, name: str, about: Mapping[str, Any]) -> ResultRecord:
        """What a process of its own tells of a row, which is then written down."""
        work = self.folder / WORK
        work.mkdir(parents=True, exist_ok=True)
        result = work / f"{name}.result.json"
        result.unlink(missing_ok=True)
        request = {
            **about,
            "wanted": wanted.as_dict(),
            "part": self.part,
            "record": str(self._file(wanted.name)),
            "figures": str(self.results / FIGURES),
            "result": str(result),
            "progress": self.screen is not None,
        }
        path = work / f"{name}.json"
        write_atomically(path, json.dumps(request).encode())
        code = run_child("relwalk.reproduction.child", path, self.stop)
        if result.is_file():
            record = ResultRecord.model_validate(json.loads(result.read_bytes()))
        else:
            reason = f"{cause_of_death(code)}. The same command goes on from its last checkpoint"
            record = wanted.model_copy(update={"status": "failed", "reason": reason})
        return self._kept(record)

    def _kept(self, record: ResultRecord) -> ResultRecord:
        write_result(self.results / RECORDS, record)
        self._say(str(record))
        return record

    def _file(self, name: str) -> Path:
        return self.results / RECORDS / f"{name}.json"

    def _say(self, text: str) -> None:
        if self.screen is not None:
            self.screen.say(text)


def _command(row: Row) -> str:
    """What makes the row again by itself; empty where settings came from a file, which the record has then."""
    flags = {name: value for name, value in row.asked.items() if OF_A_SYSTEM.get(row.model, {}).get(name) != value}
    if not set(flags) <= {"epochs", "budget", "dim"}:
        return ""
    words = ["relwalk", "reproduce", "table2", "--dataset", row.source, "--models", row.model]
    words += ["--recipe", row.recipe, "--seeds", str(row.seed)]
    return shlex.join(words + [word for name, value in flags.items() for word in (f"--{name}", str(value))])
