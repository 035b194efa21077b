"""Write down what a run reaches on test, with everything needed to make the figure again.

    python tools/record.py runs/fb15k-237 results/fb15k-237.json --command "relwalk train fb15k-237 --epochs 30"

Ranks the test set over all entities and under the paper's argument rule, and adds the settings, the training time
and the machine. Records of classification are added where the graph ships false triples.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from pathlib import Path

import torch

from relwalk.evaluation.classification import classify
from relwalk.evaluation.ranking import rank
from relwalk.runs.run import Run, load_run


def machine() -> str:
    """The processor and the threads, in words."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    flags = next((line for line in lines if line.startswith("flags")), "")
    vector = "AVX-512" if " avx512f" in flags else "AVX2" if " avx2" in flags else "no AVX2"
    brain = "bfloat16" if "avx512_bf16" in flags or "amx_bf16" in flags else "no bfloat16"
    return f"{os.cpu_count()} cores of {names[0] if names else platform.machine()} ({vector}, {brain})"


def record(run: Run, command: str) -> dict[str, object]:
    history = [json.loads(line) for line in (Path(str(run.path)) / "history.jsonl").read_text().splitlines()]
    found: dict[str, object] = {
        "command": command,
        "machine": machine(),
        "threads": torch.get_num_threads(),
        "settings": json.loads(
            run.record.model_dump_json(include={"model", "training", "recipe", "versions", "graph"})
        ),
        "run": run.record.metrics,
        "training_seconds": round(sum(epoch["seconds"] for epoch in history), 1),
        "validation_seconds": round(sum(epoch["validation_seconds"] or 0 for epoch in history), 1),
        "median_epoch_seconds": sorted(epoch["seconds"] for epoch in history)[len(history) // 2],
    }
    for candidates in ("all", "argument"):
        started = time.perf_counter()
        result = rank(run.model, run.graph, "test", candidates=candidates)
        seconds = time.perf_counter() - started
        keep = ("protocol", "metrics", "queries", "unseen_triples")
        found[candidates] = {key: result.as_dict()[key] for key in keep} | {"ranking_seconds": round(seconds, 2)}
    if run.graph.test_negatives is not None:
        found["classification"] = classify(run.model, run.graph).as_dict()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--command", required=True, help="what made the run")
    arguments = parser.parse_args()
    found = record(load_run(arguments.run), arguments.command)
    arguments.out.write_text(json.dumps(found, indent=1) + "\n")
    for candidates in ("all", "argument"):
        figures = found[candidates]["metrics"]["both"]["realistic"]
        print(candidates, {name: round(value, 4) for name, value in figures.items()})


if __name__ == "__main__":
    main()
