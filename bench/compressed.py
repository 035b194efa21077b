"""A compressed run beside the whole one: ranking the test set, and answering questions about a million entities.

    python bench/compressed.py make --data FOLDER --graph wn18rr   FOLDER/whole and FOLDER/small, of random vectors
    python bench/compressed.py rank --data FOLDER/small            the test set
    python bench/compressed.py all                                 answers about a million entities, by itself

Each is a process of its own, with a memory peak of its own. Answers are those of `bench/answering.py`; what the model
takes is their peak less that of the graph alone.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from process import Row, emit, launch

from relwalk.evaluation.ranking import rank as rank_split
from relwalk.graph.graph import Graph
from relwalk.graph.read import read_graph
from relwalk.graph.vocabulary import Vocabulary
from relwalk.models.compressed import Compression, held_bytes
from relwalk.models.compressor import Compressor
from relwalk.runs.record import GraphRecord, ModelRecord, RunRecord
from relwalk.runs.run import Run, fresh_model, load_run
from relwalk.training.settings import TrainingSettings

RELATIONS, TRIPLES = 8, 1000
MILLION = 1_000_000


def large_graph(entities: int) -> Graph:
    """So many entities, and a few triples about them: the model is what is to be large."""
    rng = np.random.default_rng(0)
    triples = np.stack([rng.integers(n, size=TRIPLES) for n in (entities, RELATIONS, entities)], 1).astype(np.int32)
    names = Vocabulary("entity", tuple(f"e{i}" for i in range(entities)))
    relations = Vocabulary("relation", tuple(f"r{i}" for i in range(RELATIONS)))
    return Graph("large", names, relations, triples[:900], triples[900:950], triples[950:])


@torch.no_grad()
def make(arguments: argparse.Namespace) -> None:
    """A run as if it were trained, of random vectors, and the same compressed."""
    graph = read_graph(arguments.graph) if arguments.graph else large_graph(arguments.entities)
    about = GraphRecord(
        name=graph.name,
        source="",
        fingerprint=graph.fingerprint,
        entities=len(graph.entities),
        relations=len(graph.relations),
    )
    model = ModelRecord(name="relwalk", dim=arguments.dim)
    record = RunRecord(status="finished", graph=about, model=model, training=TrainingSettings())
    whole = Run(None, record, graph, fresh_model(record, graph).eval()).save(arguments.data / "whole")
    started = time.perf_counter()
    how = Compression(
        method="eig", rank=arguments.dim // 4, around="signs", precision="int8", entities=arguments.entity_format
    )
    small = Compressor(whole.model)(how)
    seconds = time.perf_counter() - started
    described = record.model_copy(update={"model": model.model_copy(update={"compression": how})})
    Run(None, described, graph, small).save(arguments.data / "small")
    emit(
        {"whole_bytes": held_bytes(whole.model), "small_bytes": held_bytes(small), "seconds": seconds, "how": str(how)}
    )


def rank(arguments: argparse.Namespace) -> None:
    run, times = load_run(arguments.data), []
    for _ in range(1 + arguments.repeat):
        started = time.perf_counter()
        rank_split(run)
        times.append(time.perf_counter() - started)
    emit({"first_seconds": times[0], "seconds": statistics.median(times[1:]), "repeats": times[1:]})


def serving(folder: Path, threads: int, limit: float, *more: object) -> Row:
    """The memory that answers about many entities take, from the whole model and from the small one."""
    made = launch("compressed.py", ("make", "--data", folder, *more), threads=threads, timeout=limit)
    if "error" in made:
        return made
    rows = {
        name: launch("answering.py", (work, "--data", folder / place), threads=threads, timeout=limit)
        for name, work, place in (("graph", "graph", "small"), ("whole", "ask", "whole"), ("small", "ask", "small"))
    }
    for name in ("whole", "small"):
        if "error" not in rows[name] and "error" not in rows["graph"]:
            rows[name]["model_mb"] = round(rows[name]["peak_mb"] - rows["graph"]["peak_mb"], 1)
    return {"made": made, **rows}


def all_of_it(arguments: argparse.Namespace) -> None:
    more = ("--entities", arguments.entities, "--dim", arguments.dim, "--entity-format", arguments.entity_format)
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(serving(Path(folder), arguments.threads, 600.0, *more), indent=1))


WORK = {"make": make, "rank": rank, "all": all_of_it}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("work", choices=WORK)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--graph")
    parser.add_argument("--entities", type=int, default=MILLION)
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--entity-format", default="int8")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    WORK[arguments.work](arguments)


if __name__ == "__main__":
    main()
