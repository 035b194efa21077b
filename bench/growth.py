"""How cost grows: one synthetic graph in one process, and the exponents fitted over several.

Random triples over `entities` and `relations`; 512 test triples are ranked, then some steps of 1024 questions are
trained. Memory is what the process held at most while it did so, less what it held before. The address space is limited
to most of what the machine has free, so that what does not fit ends with a reason and not with the machine.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import statistics
import time
from collections.abc import Sequence

import numpy as np
from process import Row, emit, forget_peak, peak_mb

DIM, RELATIONS, ENTITIES = 64, 10, 10_000
SWEEPS: dict[str, tuple[int, ...]] = {
    "entities": (10_000, 100_000, 1_000_000),
    "dim": (64, 128, 256, 512),
    "relations": (10, 100, 1_000, 10_000),
}
COSTS = ("step_seconds", "query_seconds", "training_mb", "ranking_mb")
TEST = 512
STEPS, PATIENCE = 8, 8.0  # steps measured, unless they take longer than this many seconds


def points() -> list[tuple[str, Row]]:
    """(what grows, the size): the point that all sweeps share comes first."""
    base = {"entities": ENTITIES, "dim": DIM, "relations": RELATIONS}
    found: list[tuple[str, Row]] = [("base", base)]
    for name, values in SWEEPS.items():
        found += [(name, {**base, name: value}) for value in values if value != base[name]]
    return found


def exponents(rows: Sequence[tuple[str, Row]]) -> dict[str, Row]:
    """The slope of log cost over log size, for every sweep and cost; None where fewer than two points are there."""
    found: dict[str, Row] = {}
    for sweep in SWEEPS:
        good = [row for name, row in rows if name in ("base", sweep) and "error" not in row]
        sizes = np.array([row[sweep] for row in good], float)
        found[sweep] = {"points": len(good)}
        for cost in COSTS:
            values = np.array([row[cost] for row in good], float)
            usable = values > 0
            enough = int(usable.sum()) >= 2
            slope = np.polyfit(np.log(sizes[usable]), np.log(values[usable]), 1)[0] if enough else None
            found[sweep][cost] = None if slope is None else round(float(slope), 2)
    return found


def synthetic(entities: int, relations: int) -> object:
    """Two random triples an entity and two a relation, at least 50,000: every batch is a full one."""
    from relwalk.graph.graph import Graph
    from relwalk.graph.vocabulary import Vocabulary

    rng = np.random.default_rng(0)
    count = max(50_000, 2 * entities, 2 * relations)

    def triples(n: int) -> np.ndarray:
        ends = rng.integers(0, entities, (2, n), dtype=np.int32)
        return np.stack([ends[0], rng.integers(0, relations, n, dtype=np.int32), ends[1]], axis=1)

    return Graph(
        name="synthetic",
        entities=Vocabulary("entity", tuple(f"e{i}" for i in range(entities))),
        relations=Vocabulary("relation", tuple(f"r{i}" for i in range(relations))),
        train=triples(count),
        test=triples(TEST),
    )


def limit_memory(share: float = 0.85) -> None:
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (int(share * free) + (4 << 30),) * 2)  # torch maps some GB it never uses


def measure(entities: int, dim: int, relations: int, threads: int) -> Row:
    from ours import Enough, fresh, fresh_trainer

    from relwalk.evaluation.ranking import rank

    graph = synthetic(entities, relations)
    graph.known, graph.known_in_train  # noqa: B018  made before anything is timed
    model = fresh(graph, dim)
    held = forget_peak()
    rank(model, graph, "test")
    ranking_mb = peak_mb() - held
    started = time.perf_counter()
    rank(model, graph, "test")
    query = (time.perf_counter() - started) / (2 * TEST)
    del model
    held = forget_peak()

    times: list[float] = []
    began = last = time.perf_counter()

    class Watch:
        def step(self, *_: object) -> None:
            nonlocal last
            now = time.perf_counter()
            times.append(now - last)
            last = now
            if len(times) >= 2 * STEPS or (len(times) >= 2 and now - began > PATIENCE):
                raise Enough

        def epoch(self, *_: object) -> None:
            pass

    trainer = fresh_trainer(graph, dim, 1024, threads, Watch())
    began = last = time.perf_counter()
    with contextlib.suppress(Enough):
        trainer.run()
    measured = times[len(times) // 2 :]
    return {
        "entities": entities,
        "dim": dim,
        "relations": relations,
        "step_seconds": statistics.median(measured),
        "measured_steps": len(measured),
        "query_seconds": query,
        "ranking_mb": round(ranking_mb, 1),
        "training_mb": round(peak_mb() - held, 1),
        "task": type(trainer.task).__name__,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure one point of growth")
    parser.add_argument("--entities", type=int, default=ENTITIES)
    parser.add_argument("--dim", type=int, default=DIM)
    parser.add_argument("--relations", type=int, default=RELATIONS)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    limit_memory()
    import torch

    torch.set_num_threads(arguments.threads)
    emit(measure(arguments.entities, arguments.dim, arguments.relations, arguments.threads))


if __name__ == "__main__":
    main()
