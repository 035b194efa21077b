"""Accuracy against theory: how well a training predicts, and how far its vectors are from what the theorem asks.

    python tools/frontier.py                                   world: minutes; writes results/frontier.*
    python tools/frontier.py GRAPH --dims 64 256 --decays 1 0.3 0.1 0.03

The paper's model is trained by likelihood with one weight decay after the other, from one that holds the vectors short
to one that lets them grow. Of each training: MRR, the length of the vectors, how far Z is from constant, and how far
log p(h, t | R) of the theorem is from what a Monte Carlo of the walk gives.

What to expect of Z: for c uniform on the sphere, eᵀc is normal with variance v = ||e||² / d, nearly. Were the entities'
directions independent, Z = Σ exp(eᵀc) had the relative variance (exp(v) - 1) / n: it is constant while v stays well
below log n.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any

import torch

import relwalk
from relwalk.graph.graph import Graph
from relwalk.machine import machine_in_words
from relwalk.theory.analyse import analyse

RESULTS = Path(__file__).resolve().parent.parent / "results"
DECAYS = (0.6, 0.5, 0.45, 0.4, 0.35, 0.3, 0.2, 0.1, 0.03)


def measure(graph: Graph, dim: int, decay: float, epochs: int, seed: int, threads: int) -> dict[str, Any]:
    """One training, and what holds of it."""
    run = relwalk.train(
        graph,
        dim=dim,
        blocks=1,
        hidden=False,
        relation_bias=False,
        candidates_per_step=0,
        l2=decay,
        entity_dropout=0.0,
        schedule="cosine",
        epochs=epochs,
        validate_every=max(1, epochs // 10),
        seed=seed,
        threads=threads,
    )
    with torch.no_grad():
        variance = run.model.vectors().square().sum(1).mean().item() / dim  # of eᵀc, in the mean
    found = {
        name: part.as_dict() for name, part in analyse(run, parts=("concentration", "theorem"), seed=seed).parts.items()
    }
    spread, theorem = found["concentration"]["relations"][0]["head"]["all"], found["theorem"]
    ranks = {split: relwalk.rank(run.model, graph, split).as_dict() for split in ("valid", "test")}
    return {
        "dim": dim,
        "l2": decay,
        **{f"{split}_mrr": ranks[split]["metrics"]["both"]["realistic"]["mrr"] for split in ranks},
        "variance": variance,
        "z_spread": spread["relative"]["value"],
        "z_spread_expected": math.sqrt(math.expm1(variance) / len(graph.entities)),
        "theorem": theorem["theorem"]["both"],
        "sphere": theorem["exact"]["both"],
    }


def markdown(found: dict[str, Any]) -> str:
    lines = [
        "# Accuracy against theory",
        "",
        f"`{found['command']}`, on {found['machine']}: {found['graph']}; {found['epochs']} epochs, seed "
        f"{found['seed']}. The paper's model (one block, no bias) with exact orthogonality, trained by likelihood over "
        "all entities with the weight decay of its row. MRR: filtered, all entities, both sides. v: the mean of "
        f"‖e‖² / d; log n is {found['log_entities']:.1f}. Spread of Z: its standard deviation over its mean, and what "
        "vectors of that length with independent directions would have. Errors in nats, root mean square and largest: "
        "of the theorem's log p(h, t | R), and of the same with the exact mean over the sphere, against a Monte Carlo "
        "of the walk, true and random triples.",
        "",
        "| d | l2 | valid MRR | test MRR | v | spread of Z | expected | slope | error | largest | on the sphere |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in found["rows"]:
        theorem = row["theorem"]
        cells = [
            f"{row['dim']}",
            f"{row['l2']:g}",
            f"{row['valid_mrr']:.3f}",
            f"{row['test_mrr']:.3f}",
            f"{row['variance']:.2f}",
            f"{row['z_spread']:.3f}",
            f"{row['z_spread_expected']:.3f}",
            f"{theorem['slope']:.2f}",
            f"{theorem['rmse']:.3f}",
            f"{theorem['largest_error']:.2f}",
            f"{row['sphere']['rmse']:.3f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graph", nargs="?", default="world")
    parser.add_argument("--dims", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--decays", type=float, nargs="+", default=list(DECAYS))
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULTS, help="where frontier.json and frontier.md go")
    a = parser.parse_args()
    graph = relwalk.read_graph(a.graph)
    found: dict[str, Any] = {
        "command": " ".join(["python tools/frontier.py", *sys.argv[1:]]),
        "machine": machine_in_words(),
        "graph": str(graph),
        "log_entities": math.log(len(graph.entities)),
        "epochs": a.epochs,
        "seed": a.seed,
        "rows": [],
    }
    for dim in a.dims:
        for decay in a.decays:
            found["rows"].append(measure(graph, dim, decay, a.epochs, a.seed, a.threads))
            print(json.dumps(found["rows"][-1]), file=sys.stderr, flush=True)
    a.out.mkdir(parents=True, exist_ok=True)
    (a.out / "frontier.json").write_text(json.dumps(found, indent=1) + "\n")
    (a.out / "frontier.md").write_text(markdown(found))
    print(markdown(found))


if __name__ == "__main__":
    main()
