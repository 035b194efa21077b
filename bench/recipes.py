"""Does the default recipe do without a search? It and 30 random trials, on eleven graphs that it was not made on.

    python bench/recipes.py [--quick] [--graphs terms-100,...]     writes results/recipes.json and results/recipes.md

Both train RelWalk over all entities; the default is `relwalk.train(graph)`, a trial has a constant decay and constant
rates, with lr, dura, dim and entity dropout drawn at random, at most 100 epochs and a patience of 5 validations. The
best trial is the one with the best valid MRR. Whole, it takes some hours of one core; `--quick` makes 3 trials. What is
there already is not made again: it can be stopped and gone on with, and `--again` forgets it.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from machine import describe, in_words  # noqa: E402
from tools.subgraphs import MADE, cut  # noqa: E402

from relwalk import rank, read_graph, train  # noqa: E402
from relwalk.graph.graph import Graph  # noqa: E402

TRIALS, QUICK = 30, 3
NEAR = 0.01  # of the best trial's test MRR
RESULTS = HERE.parent / "results"

# Seeds and sizes that no setting was chosen on, `world` aside, and dealings-20, by which `shapes.MANY` was found.
GRAPHS: dict[str, Callable[[], Graph]] = {
    "dealings-20": lambda: MADE["dealings"](20, 11),
    "terms-80": lambda: MADE["terms"](80, 11),
    "types-120": lambda: MADE["types"](120, 11),
    "types-300": lambda: MADE["types"](300, 12),
    "fb-dense-150": lambda: cut(read_graph("fb15k-237"), 150, seed=11),
    "fb-dense-500": lambda: cut(read_graph("fb15k-237"), 500, seed=12),
    "fb-thin-1000": lambda: cut(read_graph("fb15k-237"), 1000, share=0.3, seed=13),
    "fb-snowball-1500": lambda: cut(read_graph("fb15k-237"), 1500, how="snowball", seed=11),
    "wn-snowball-2000": lambda: cut(read_graph("wn18rr"), 2000, how="snowball", seed=11),
    "fb13-dense-1500": lambda: cut(read_graph("fb13"), 1500, seed=11),
    "world": lambda: read_graph("world"),
}


def drawn(random: np.random.Generator) -> dict[str, Any]:
    """The settings of a trial."""
    return {
        "lr": float(np.exp(random.uniform(np.log(0.2), np.log(2)))),
        "dura": float(np.exp(random.uniform(np.log(0.002), np.log(0.4)))),
        "dim": int(random.choice([64, 128, 256])),
        "entity_dropout": float(random.choice([0.0, 0.1, 0.2, 0.3, 0.4])),
    }


def measured(graph: Graph, threads: int, **settings: Any) -> dict[str, Any]:
    """One training: valid and test MRR over all entities, filtered, both sides."""
    started = time.perf_counter()
    run = train(graph, threads=threads, progress=False, seed=0, **settings)
    seconds = time.perf_counter() - started
    figures = {split: round(rank(run, split=split).mrr, 4) for split in ("valid", "test")}  # type: ignore[arg-type]
    return {**figures, "epochs": run.record.metrics["epochs"], "seconds": round(seconds, 1), "settings": settings}


def searched(graph: Graph, threads: int, trials: int, done: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """So many trials, those that were made already among them."""
    random, found = np.random.default_rng(0), list(done[:trials])
    for number in range(trials):
        settings = drawn(random)
        if number >= len(found):
            constant = {"decay_end": 1.0, "schedule": "constant", "epochs": 100, "validate_every": 5, "patience": 5}
            found.append(measured(graph, threads, blocks=1, batch_size=1024, **constant, **settings))
    return found


def record(name: str, threads: int, trials: int, earlier: dict[str, Any]) -> dict[str, Any]:
    graph = GRAPHS[name]()
    default = earlier.get("default") or measured(graph, threads)
    tried = searched(graph, threads, trials, earlier.get("trials", []))
    best = max(tried, key=lambda trial: trial["valid"])
    sizes = {"entities": len(graph.entities), "relations": len(graph.relations), "train": len(graph.train)}
    return {**sizes, "default": default, "best": best, "trials": tried}


def table(records: dict[str, Any]) -> str:
    """What was measured, as a page."""
    rows = []
    for name, found in records["graphs"].items():
        own, best = found["default"], found["best"]
        rows.append(
            f"| {name} | {found['entities']:,} | {found['relations']:,} | {found['train']:,} | {own['valid']:.3f} | "
            f"{own['test']:.3f} | {own['seconds']:.0f} | {best['valid']:.3f} | {best['test']:.3f} | "
            f"{sum(t['seconds'] for t in found['trials']):.0f} | {len(found['trials'])} |"
        )
    graphs = records["graphs"].values()
    near = sum(g["default"]["test"] >= g["best"]["test"] - NEAR for g in graphs)
    return "\n".join(
        [
            "# The default recipe beside a search",
            "",
            f"`{records['command']}` on {records['machine']}, {records['threads']} threads, seed 0, float32. MRR over "
            "all entities, filtered, both sides. A trial draws lr, dura, dim and entity dropout at random and keeps "
            f"them constant; the best is chosen on valid. {records['note']}".rstrip(),
            "",
            f"On {near} of {len(graphs)} graphs the default's test MRR is above the best trial's less {NEAR}.",
            "",
            "| graph | entities | relations | train | default valid | test | seconds | best trial valid | test | "
            "seconds of all | trials |",
            "|---|---|---|---|---|---|---|---|---|---|---|",
            *rows,
            "",
        ]
    )


def _measuring(arguments: list[str]) -> list[str]:
    """Those that say what is measured: neither a place nor a note."""
    beside = {i + k for i, word in enumerate(arguments) if word in ("--out", "--note") for k in (0, 1)}
    return [word for i, word in enumerate(arguments) if i not in beside]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} trials instead of {TRIALS}")
    parser.add_argument("--graphs", default=",".join(GRAPHS), help="some of them, by name")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--again", action="store_true", help="forget what was measured before")
    parser.add_argument("--note", default="", help="what should be known of the figures")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    path = given.out / "recipes.json"
    earlier = json.loads(path.read_text()) if path.is_file() and not given.again else {}
    records = {
        "command": shlex.join(["python", "bench/recipes.py", *_measuring(sys.argv[1:])]),
        "note": given.note or earlier.get("note", ""),
        "machine": in_words(describe()),
        "threads": given.threads,
        "graphs": earlier.get("graphs", {}),
    }
    for name in given.graphs.split(","):
        trials = QUICK if given.quick else TRIALS
        records["graphs"][name] = record(name, given.threads, trials, records["graphs"].get(name, {}))
        path.write_text(json.dumps(records, indent=1) + "\n")
        (given.out / "recipes.md").write_text(table(records))
        own, best = (records["graphs"][name][kind] for kind in ("default", "best"))
        print(f"{name}: default {own['valid']} / {own['test']}, best of the trials {best['valid']} / {best['test']}")


if __name__ == "__main__":
    main()
