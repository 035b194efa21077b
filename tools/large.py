"""A graph of a million entities and ten million triples, from a TSV to a run and its answers: seconds, peak memory.

    python tools/large.py --epochs 1 --dim 64 --batch-size 4096

Entities stand on a ring; relation r leads from place i to i + shift_r plus a few places either way, so there is
something to learn. The command line does the work, in a process of its own, as a user would have it.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

from relwalk import load_run, predict, predict_many


def write_graph(path: Path, entities: int, relations: int, triples: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    head = rng.integers(entities, size=triples)
    relation = rng.integers(relations, size=triples)
    shift = rng.integers(entities, size=relations)
    tail = (head + shift[relation] + rng.integers(-5, 6, size=triples)) % entities
    frame = pl.DataFrame({"h": head, "r": relation, "t": tail}).unique(maintain_order=True)
    frame.select(
        pl.format("/m/{}", "h").alias("h"),
        pl.format("/relation/{}", "r").alias("r"),
        pl.format("/m/{}", "t").alias("t"),
    ).write_csv(path, separator="\t", include_header=False)


def ask(path: Path) -> dict[str, float]:
    """Milliseconds for the ten best answers to one question, after a first one that builds the index of known ones."""
    run = load_run(path)
    questions = [(run.graph.entities.names[i], run.graph.relations.names[0], None) for i in range(64)]
    predict(run, head=questions[0][0], relation=questions[0][1])
    times = []
    for head, relation, _ in questions[1:16]:
        started = time.perf_counter()
        predict(run, head=head, relation=relation)
        times.append(1e3 * (time.perf_counter() - started))
    started = time.perf_counter()
    list(predict_many(run, questions))
    batch = 1e3 * (time.perf_counter() - started) / len(questions)
    return {"one_question_ms": round(statistics.median(times), 1), "each_of_64_ms": round(batch, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--entities", type=int, default=1_000_000)
    parser.add_argument("--relations", type=int, default=50)
    parser.add_argument("--triples", type=int, default=10_000_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments, training = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as folder:
        source, run = Path(folder) / "ring.tsv", Path(folder) / "run"
        write_graph(source, arguments.entities, arguments.relations, arguments.triples, arguments.seed)
        command = [sys.executable, "-m", "relwalk", "train", str(source), "--out", str(run), "--json", *training]
        started = time.perf_counter()
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        seconds = time.perf_counter() - started
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
        history = [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]
        size = sum(path.stat().st_size for path in run.iterdir()) / 2**30
        answers = ask(run)
    print(
        json.dumps(
            {
                "entities": arguments.entities,
                "triples": arguments.triples,
                "options": training,
                "seconds": round(seconds, 1),
                "peak_gib": round(peak, 2),
                "run_gib": round(size, 2),
                "answers": answers,
                "history": history,
                **json.loads(done.stdout)["metrics"],
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()
