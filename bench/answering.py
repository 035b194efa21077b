"""A process that answers questions by name: what it takes beyond `import torch`, and how long an answer takes.

    python bench/answering.py ask --data runs/wn18rr      the run, and questions one after the other
    python bench/answering.py graph --data runs/wn18rr    its graph, and no model

Nothing else is imported than answers need. The peak that `import torch` leaves is told as `torch_mb`.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

import torch
from process import emit, peak_mb

TORCH = peak_mb()  # before anything of relwalk
QUESTIONS = 20


def ask(folder: Path) -> None:
    from relwalk import load_run, predict
    from relwalk.models.compressed import held_bytes

    run, times = load_run(folder), []
    for i in range(1 + QUESTIONS):
        started = time.perf_counter()
        predict(run, head=run.graph.entities.names[i], relation=run.graph.relations.names[0])
        times.append(1e3 * (time.perf_counter() - started))
    told = {"ms_a_question": statistics.median(times[1:]), "held_bytes": held_bytes(run.model)}
    emit({**told, "torch_mb": round(TORCH, 1), "beyond_torch_mb": round(peak_mb() - TORCH, 1)})


def graph_alone(folder: Path) -> None:
    from relwalk.runs.record import read_record
    from relwalk.runs.run import read_run_graph

    graph = read_run_graph(folder, read_record(folder))
    graph.entities.id(graph.entities.names[0])
    emit({"known": len(graph.known["tail"].keys), "torch_mb": round(TORCH, 1)})


WORK = {"ask": ask, "graph": graph_alone}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", choices=WORK)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    WORK[arguments.work](arguments.data)


if __name__ == "__main__":
    main()
