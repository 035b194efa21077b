"""What a training by several machines takes, computed: memory, traffic and time of an epoch of RelWalk.

    python tools/sharded_cost.py            the table of docs/sharded.md
    python tools/sharded_cost.py --network 25 --speed 400

A step of B questions sends, from each of W processes: the rows of its questions and their slopes (all-to-all), its
queries (all-gather) and the slopes of all (reduce-scatter), a maximum and two sums for each question (all-reduce), and
the factors of its rotations (all-gather). `step_bytes` adds them up, and a test holds it to what a step really sends.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

FLOAT = 4  # bytes
CANDIDATES = 8192  # that a step of a large graph draws
SPEED = 93.5  # GFLOP/s of training on 2 cores: half of the 187 that the README's benchmark found
NETWORK = 10.0  # Gbit/s, assumed
PASSES = 3  # products of a question and a candidate: scores, slopes of the query, slopes of the key
HELD = 3  # rows of an entity: its vector, Adagrad's sums, the best vector so far


class Shape(NamedTuple):
    """The size of a graph, as published; its questions are twice its triples at most."""

    entities: int
    relations: int
    triples: int


GRAPHS = {
    "Wikidata5M": Shape(4_594_485, 822, 20_614_279),
    "ogbl-wikikg2": Shape(2_500_604, 535, 16_109_182),
    "Freebase86m": Shape(86_054_151, 14_824, 304_727_650),
}


class Cost(NamedTuple):
    """Of one process, in an epoch."""

    memory: float  # GB
    traffic: float  # GB sent
    products: float  # seconds
    network: float  # seconds


def step_bytes(batch: int, dim: int, processes: int) -> float:
    """What one process sends in a step, if no two of its questions are about the same entity."""
    others, own = (processes - 1) / processes, batch / processes
    rows = 2 * own * others * dim
    queries = (processes - 1) * own * (dim + 1) + others * batch * (dim + 1)
    sums = 2 * others * 3 * batch
    factors = (processes - 1) * own * (2 * dim + 1)
    return FLOAT * (rows + queries + sums + factors)


def cost(graph: Shape, dim: int, batch: int, processes: int, speed: float, network: float) -> Cost:
    questions = 2 * graph.triples
    held = FLOAT * HELD * (graph.entities * dim / processes + graph.relations * dim**2 * 2 / HELD)
    operations = 2 * PASSES * questions * CANDIDATES * (dim + 8)
    traffic = questions / batch * step_bytes(batch, dim, processes)
    return Cost(held / 1e9, traffic / 1e9, operations / processes / speed / 1e9, traffic * 8 / network / 1e9)


def table(dim: int, batch: int, speed: float, network: float) -> list[str]:
    lines = ["| graph | machines | memory of each, GB | sent by each, GB | products, min | network, min |"]
    lines += ["|---|---:|---:|---:|---:|---:|"]
    for name, graph in GRAPHS.items():
        for processes in (1, 8, 64):
            found = cost(graph, dim, batch, processes, speed, network)
            figures = (found.memory, found.traffic, found.products / 60, found.network / 60)
            lines.append(f"| {name} | {processes} | " + " | ".join(f"{figure:,.1f}" for figure in figures) + " |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--batch", type=int, default=4096)
    parser.add_argument("--speed", type=float, default=SPEED, help="GFLOP/s of each machine")
    parser.add_argument("--network", type=float, default=NETWORK, help="Gbit/s of each machine")
    arguments = parser.parse_args()
    print("\n".join(table(**vars(arguments))))


if __name__ == "__main__":
    main()
