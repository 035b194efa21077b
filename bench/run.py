"""How fast training and ranking are, and how near the machine's limit. Run by `make bench`.

Everything is measured in one process, so that figures can be compared with each other: the peak of the matrix unit
first, then the median step of an epoch and the ranking of the whole filtered test set, at d = 100 and batches of 1024
questions. The floating-point operations counted are those of the products that the mathematics needs: three of
rows x entities x d for training, one for ranking.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))
from record import machine
from relwalk.evaluation.ranking import rank
from relwalk.graph.graph import Graph
from relwalk.graph.read import read_graph
from relwalk.models import build_model
from relwalk.training.likelihood import Likelihood
from relwalk.training.settings import TrainingSettings
from relwalk.training.trainer import Trainer

DIM, BATCH = 100, 1024


def seconds(work: Callable[[], object], repeat: int) -> list[float]:
    work()
    times = []
    for _ in range(repeat):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return times


def product_peak(dtype: torch.dtype) -> float:
    """Operations per second of the best square product, of the largest size that is not slow."""
    size, best = 128, 0.0
    while size <= 2048:
        a, b = torch.randn(size, size).to(dtype), torch.randn(size, size).to(dtype)
        out = torch.empty(size, size, dtype=dtype)
        fastest = min(seconds(partial(torch.mm, a, b, out=out), 5))
        best = max(best, 2 * size**3 / fastest)
        if fastest > 0.05:  # the next size would take eight times as long, or far more where the type is emulated
            break
        size *= 2
    return best


def training(graph: Graph, steps: int) -> dict[str, float]:
    """The median step of a training by likelihood, and what an epoch of such steps takes."""
    settings = TrainingSettings(batch_size=BATCH, threads=torch.get_num_threads())
    model = build_model("relwalk", len(graph.entities), len(graph.relations), DIM, seed=0, options={})
    task = Likelihood(graph, settings)
    trainer = Trainer(model, task, settings)
    generator = torch.Generator().manual_seed(0)
    times = []
    for number, batch in enumerate(task.batches(generator)):
        started = time.perf_counter()
        trainer._step(batch, generator, 1, number)
        times.append(time.perf_counter() - started)
        if number >= steps:
            break
    step = statistics.median(times[steps // 3 :])
    quartiles = statistics.quantiles(times[steps // 3 :], n=4)
    return {
        "rows": len(task.given),
        "step_seconds": step,
        "step_spread": (quartiles[2] - quartiles[0]) / step,
        "epoch_seconds": step * len(task.given) / BATCH,
        "operations": 6.0 * len(task.given) * len(graph.entities) * DIM,
    }


def ranking(graph: Graph) -> dict[str, float]:
    """The whole filtered test set, both sides."""
    model = build_model("relwalk", len(graph.entities), len(graph.relations), DIM, seed=0, options={})
    times = seconds(lambda: rank(model, graph, "test"), 3)
    operations = 2.0 * 2 * len(graph.test) * len(graph.entities) * DIM
    return {"seconds": min(times), "operations": operations}


def measure(names: list[str], steps: int) -> dict[str, object]:
    peaks = {str(t).removeprefix("torch."): product_peak(t) for t in (torch.float32, torch.bfloat16)}
    found: dict[str, object] = {
        "machine": machine(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "peak_gflops": {name: round(peak / 1e9, 1) for name, peak in peaks.items()},
        "graphs": {},
    }
    best = max(peaks.values())
    for name in names:
        graph = read_graph(name)
        trained, ranked = training(graph, steps), ranking(graph)
        trained["share_of_best_peak"] = trained["operations"] / trained["epoch_seconds"] / best
        ranked["share_of_float32_peak"] = ranked["operations"] / ranked["seconds"] / peaks["float32"]
        found["graphs"][name] = {"training": trained, "ranking": ranked}
    return found


def table(found: dict[str, object]) -> str:
    lines = [f"{found['machine']}, {found['threads']} threads; products at best (GFLOP/s): {found['peak_gflops']}"]
    lines.append(f"{'graph':12}{'epoch s':>9}{'of peak':>9}{'rank test s':>13}{'of float32 peak':>17}")
    for name, row in found["graphs"].items():
        t, r = row["training"], row["ranking"]
        lines.append(
            f"{name:12}{t['epoch_seconds']:>9.2f}{t['share_of_best_peak']:>9.0%}"
            f"{r['seconds']:>13.2f}{r['share_of_float32_peak']:>17.0%}"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "graphs", nargs="*", default=["wn18rr", "fb15k-237"] if os.environ.get("RELWALK_DATA") else ["world"]
    )
    parser.add_argument("--steps", type=int, default=40, help="training steps that are timed")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results.json")
    arguments = parser.parse_args()
    found = measure(arguments.graphs, arguments.steps)
    arguments.out.write_text(json.dumps(found, indent=1) + "\n")
    print(table(found))


if __name__ == "__main__":
    main()
