"""Check what `relwalk discover` promises, on graphs where the answers are known, and write the table down.

    python tools/discoveries.py hidden wn18rr --dim 64 --epochs 8 --threads 1
    python tools/discoveries.py planted world --dim 64 --epochs 40 --threads 1

`hidden` takes a third of the test facts out of the graph, trains, discovers over all questions, and counts how many
links of confidence c or more are among them. `planted` divides the facts of some entities between two copies and puts
false triples into train, trains, and counts how many of them `--duplicates` and `--doubtful` find again. Each adds to
results/discover.json, of which results/discover.md is made.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from relwalk import discover, read_graph, train
from relwalk.graph.graph import Graph
from relwalk.graph.lists import Ints

ROOT = Path(__file__).parent.parent
RECORD, PAGE = ROOT / "results" / "discover.json", ROOT / "results" / "discover.md"
LEVELS = (0.8, 0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01)


def hide(graph: Graph, share: float, seed: int) -> tuple[Graph, Ints]:
    """The graph without a share of its test facts, drawn at random, and those facts."""
    order = np.random.default_rng(seed).permutation(len(graph.test))
    count = round(share * len(graph.test))
    hidden, kept = np.sort(order[:count]), np.sort(order[count:])
    return replace(graph, test=graph.test[kept]), graph.test[hidden]


def hidden_facts(arguments: argparse.Namespace, settings: dict[str, object]) -> dict[str, object]:
    graph, hidden = hide(read_graph(arguments.graph), 1 / 3, arguments.seed)
    run = train(graph, **settings, progress=True)
    started = time.perf_counter()
    found = discover(run, k=arguments.k, progress=True)
    seconds = time.perf_counter() - started
    links = found.links
    true = among(np.stack([links.head, links.relation, links.tail], 1), hidden)
    rows = []
    for level in LEVELS:
        above = found.confidence >= level
        if above.any():
            mean = float(found.confidence[above].mean())
            rows.append([level, int(above.sum()), int(true[above].sum()), float(true[above].mean()), mean])
    return {
        "graph": graph.name,
        "hidden": len(hidden),
        "valid": len(graph.valid),
        "valid_mrr": run.record.metrics["valid_mrr"],
        "questions": found.questions,
        "seconds": round(seconds, 1),
        "complete": len(found) < arguments.k,
        "least_confidence": float(found.confidence[-1]),
        "rows": rows,
    }


def among(triples: Ints, others: Ints) -> np.ndarray:
    """Whether each triple is one of the others."""
    top = 1 + max(int(triples.max(initial=0)), int(others.max(initial=0)))
    keys = [(t[:, 1].astype(np.int64) * top + t[:, 0]) * top + t[:, 2] for t in (triples, others)]
    return np.isin(*keys)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["hidden"])
    parser.add_argument("graph")
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-k", type=int, default=20_000)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    settings = {name: getattr(arguments, name) for name in ("dim", "epochs", "threads", "seed")}
    found = hidden_facts(arguments, settings)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
