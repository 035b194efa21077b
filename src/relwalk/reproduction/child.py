"""A program of its own, run by `reproduce` for each row: trains or goes on with one run, and tells its record.

Memory and crashes are then the row's own. When the process that started it is gone, it saves its last step and ends.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from relwalk.children import answer_request, peak_memory, train_or_go_on, words_of
from relwalk.errors import Interrupted, RelWalkError
from relwalk.files import write_atomically
from relwalk.reproduction.measure import measure_run, source_commit
from relwalk.reproduction.parts import PARTS
from relwalk.reproduction.record import ResultRecord, read_result
from relwalk.runs.folder import is_run
from relwalk.runs.graph_files import read_graph_files
from relwalk.runs.run import Run, load_run, read_state
from relwalk.training.stopping import StopRequest


def _attempt(asked: dict[str, Any], stop: StopRequest) -> ResultRecord:
    """The record of a row: its figures, or why there are none."""
    wanted = ResultRecord.model_validate(asked["wanted"])
    try:
        return _record(asked, wanted, stop)
    except Interrupted:
        raise
    except RelWalkError as error:
        reason = str(error)
    except Exception as error:  # one row's fault is not the end of the table
        reason = words_of(error)
    cost = wanted.cost.model_copy(update={"peak_bytes": peak_memory()})
    return wanted.model_copy(update={"status": "failed", "reason": reason, "cost": cost})


def _record(asked: dict[str, Any], wanted: ResultRecord, stop: StopRequest) -> ResultRecord:
    path, given = Path(asked["run"]), asked["given"]
    there = is_run(path) and read_state(path).status == "finished"
    run = load_run(path) if given else _trained(asked, wanted, path, stop)
    with stop.breaking():
        record = _earlier(Path(asked["record"]), run) if there else None
        if record is None:
            record = measure_run(
                run,
                "" if given else wanted.command,
                asked=None if given else wanted.asked,
                commit=None if there else source_commit(),
                peak_bytes=None if there else peak_memory(),
                progress=asked["progress"],
            )
        return _with_part(record, run, asked) if asked["part"] else record


def _trained(asked: dict[str, Any], wanted: ResultRecord, path: Path, stop: StopRequest) -> Run:
    """The run, trained or trained further to its end."""
    settings = {"model": wanted.model, "recipe": wanted.recipe, "seed": wanted.seed, "source": asked["source"]}
    return train_or_go_on(
        path,
        lambda: read_graph_files(Path(asked["graph"]), asked["graph_name"], tuple(asked["notes"])),
        settings | wanted.asked,
        stop=stop,
        progress=asked["progress"],
    )


def _earlier(path: Path, run: Run) -> ResultRecord | None:
    """The record that was made of this run before, to be added to."""
    if not path.is_file():
        return None
    found = read_result(path)
    same = found.settings is not None and found.settings.training == run.record.training.flat()
    same = same and found.graph is not None and found.graph.fingerprint == run.graph.fingerprint
    return found if same and found.status == "finished" and found.metrics.all is not None else None


def _with_part(record: ResultRecord, run: Run, asked: dict[str, Any]) -> ResultRecord:
    """The record with what a table or figure measures, or with why that does not apply."""
    drawing = None
    try:
        found, drawing = PARTS[asked["part"]](run, asked["progress"])
    except RelWalkError as error:
        found = {"absent": str(error)}
    if drawing is not None:
        folder = Path(asked["figures"])
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{record.name}-{asked['part']}.svg"
        write_atomically(file, (drawing + "\n").encode())
    return record.model_copy(update={"theory": {**record.theory, asked["part"]: found}})


if __name__ == "__main__":
    sys.exit(answer_request(Path(sys.argv[1]), _attempt))
