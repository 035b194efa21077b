"""A program of its own, run by `comparing` for each model: trains or goes on with one run, ranks test, tells a result.

Memory and crashes are then the model's own. When the process that started it is gone, it saves its last step and ends.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from relwalk.children import answer_request, peak_memory, train_or_go_on, words_of
from relwalk.errors import Interrupted, RelWalkError
from relwalk.evaluation.comparison import RULES, Compared, curve_of
from relwalk.evaluation.ranking import rank
from relwalk.runs.folder import HISTORY
from relwalk.runs.graph_files import read_graph_files
from relwalk.runs.run import Run
from relwalk.training.stopping import StopRequest


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
        return replace(row, status="failed", reason=words_of(error), peak_bytes=peak_memory())


def _trained(asked: dict[str, Any], stop: StopRequest) -> Run:
    """The run, trained or trained further, until its time is over."""
    settings = {**asked["asked"], "budget": asked["budget"], "seed": asked["seed"], "source": asked["source"]}
    return train_or_go_on(
        Path(asked["run"]),
        lambda: read_graph_files(Path(asked["graph"]), asked["graph_name"], tuple(asked["notes"])),
        settings,
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
        curve=curve_of(epochs),
    )


if __name__ == "__main__":
    sys.exit(answer_request(Path(sys.argv[1]), _attempt))
