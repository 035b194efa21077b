"""A program of its own, run by `comparing` for each model: trains or goes on with one run, ranks test, tells a result.

Memory and crashes are then the model's own. When the process that started it is gone, it saves its last step and ends.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from relwalk.errors import Interrupted, RelWalkError
from relwalk.evaluation.comparison import RULES, Compared, Moment
from relwalk.evaluation.ranking import rank
from relwalk.experiment import resume, train
from relwalk.files import lock_folder, write_atomically
from relwalk.runs.folder import HISTORY, is_run, settle
from relwalk.runs.graph_files import read_graph_files
from relwalk.runs.run import Run
from relwalk.training.memory import keep_freed_memory
from relwalk.training.stopping import StopRequest, stop_on

STDIN = 0
GRACE = 60.0  # seconds to save and end, once it is alone
PATIENCE = 30.0  # seconds for an earlier process, left alone, to be done with the run's folder


def main(request: Path) -> int:
    """0 when the result is written, be it a failure; 1 when it was asked to stop before there was one."""
    asked = json.loads(request.read_bytes())
    keep_freed_memory()
    with stop_on(signal.SIGTERM) as stop:
        threading.Thread(target=_end_when_alone, daemon=True).start()
        try:
            row = _attempt(asked, stop)
        except Interrupted:
            return 1
    write_atomically(Path(asked["result"]), json.dumps(row.as_dict()).encode())
    return 0


def _end_when_alone() -> None:
    """Standard input is a pipe that the parent holds open and never writes to: it ends when the parent does."""
    while os.read(STDIN, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE)
    os._exit(1)


def _attempt(asked: dict[str, Any], stop: StopRequest) -> Compared:
    """What came of a model: its figures, or why there are none."""
    row = Compared(asked["name"], asked["asked"])
    try:
        run = _trained(asked, stop)
        return _measured(row, run, stop, progress=asked["progress"])
    except Interrupted:
        raise
    except RelWalkError as error:
        return replace(row, status="failed", reason=str(error), peak_bytes=peak_memory())
    except Exception as error:  # one model's fault is not the end of the comparison
        words = " ".join(str(error).split())[:400]
        return replace(row, status="failed", reason=f"{type(error).__name__}: {words}", peak_bytes=peak_memory())


def _trained(asked: dict[str, Any], stop: StopRequest) -> Run:
    """The run, trained or trained further, until its time is over."""
    path = Path(asked["run"])
    if path.is_dir():
        with lock_folder(path, wait=PATIENCE):
            pass
        settle(path)
    if is_run(path):
        return resume(path, stop=stop, progress=asked["progress"])
    graph = read_graph_files(Path(asked["graph"]), asked["graph_name"], tuple(asked["notes"]))
    return train(
        graph,
        **asked["asked"],
        budget=asked["budget"],
        seed=asked["seed"],
        out=path,
        source=asked["source"],
        stop=stop,
        progress=asked["progress"],
    )


def _measured(row: Compared, run: Run, stop: StopRequest, *, progress: bool) -> Compared:
    started = time.perf_counter()
    with stop.breaking():
        test = {rule: rank(run, candidates=rule, progress=progress).metrics() for rule in RULES}  # type: ignore[arg-type]
    ranking_seconds = time.perf_counter() - started
    epochs = [json.loads(line) for line in (Path(str(run.path)) / HISTORY).read_text().splitlines()]
    metrics, weights = run.record.metrics, list(run.model.parameters())
    return replace(
        row,
        status="finished",
        dim=run.record.model.dim,
        settings={**run.record.training.flat(), **run.record.model.options},
        test=test,
        valid_mrr=metrics["valid_mrr"],
        best_epoch=int(metrics["best_epoch"] or 0),
        epochs=int(metrics["epochs"] or 0),
        seconds=sum(epoch["seconds"] for epoch in epochs),
        validation_seconds=sum(epoch["validation_seconds"] or 0.0 for epoch in epochs),
        ranking_seconds=ranking_seconds,
        peak_bytes=peak_memory(),
        numbers=sum(w.numel() for w in weights),
        bytes=sum(w.numel() * w.element_size() for w in weights),
        curve=_curve(epochs),
    )


def _curve(epochs: list[dict[str, Any]]) -> tuple[Moment, ...]:
    """The epochs that were validated, by the time of training until then."""
    seconds, curve = 0.0, []
    for epoch in epochs:
        seconds += epoch["seconds"]
        if epoch["metric"] is not None:
            curve.append(Moment(seconds, epoch["epoch"], epoch["loss"], epoch["metric"]))
    return tuple(curve)


def peak_memory() -> int | None:
    """The most bytes that this process ever held; None where the system does not say.

    Not `getrusage`, which on Linux begins with what the process that started this one held.
    """
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        return None


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
