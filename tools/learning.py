"""Does a sample of candidates, do several processes learn what the exact likelihood of one process learns?

    python tools/learning.py                                        5,000 entities: minutes; writes results/learning.*
    python tools/learning.py --entities 1000000 --candidates 8192 --batch 4096 --ways sampled sharded --out runs/million

Entities are of kinds, a few of each, and the kinds stand on a ring. Relation r leads from an entity of kind k to any
entity of kind k + shift_r: relations compose, and where one leads from an entity is told by the triples of its kind. A
graph of any size has as many triples for each kind and relation, so that it can be learned as well, and the best that
anybody can do on it is known: to tell the right kind, and to guess within it (`oracle`).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relwalk.graph.answers import SIDES
from relwalk.graph.graph import Graph
from relwalk.graph.vocabulary import Vocabulary
from relwalk.graph.write import write_graph
from relwalk.machine import machine_in_words

WAYS = {
    "exact": "one process, all entities in every step",
    "sampled": "one process, drawn candidates",
    "sharded": "two processes, drawn candidates",
}
HELD = 3000  # triples of valid and of test
RESULTS = Path(__file__).resolve().parent.parent / "results"


def kinds_on_a_ring(entities: int, relations: int, kind: int, each: int, seed: int, held: int = HELD) -> Graph:
    """A graph of kinds with `kind` entities, and `each` triples for every entity as a head.

    `held` of the triples are valid, and as many test.
    """
    rng = np.random.default_rng(seed)
    kinds = entities // kind
    shift = rng.choice(np.arange(1, kinds), relations, replace=False)
    head = np.repeat(np.arange(entities), each)
    relation = rng.integers(relations, size=len(head))
    tail = (head % kinds + shift[relation]) % kinds + kinds * rng.integers(kind, size=len(head))
    rows = np.unique(np.stack([head, relation, tail], 1), axis=0).astype(np.int32)
    rng.shuffle(rows)
    return Graph(
        name=f"kinds-{entities}",
        entities=Vocabulary("entity", tuple(f"e{i}" for i in range(entities))),
        relations=Vocabulary("relation", tuple(f"r{i}" for i in range(relations))),
        train=rows[2 * held :],
        valid=rows[:held],
        test=rows[held : 2 * held],
    )


def oracle(graph: Graph, kind: int) -> float:
    """The expected filtered MRR on test of one who knows the kinds and guesses within them: of m answers that are left,
    each is as likely to come first, and 1/rank is (1 + 1/2 + ... + 1/m) / m in the mean."""
    means: NDArray[np.float64] = np.cumsum(1 / np.arange(1, kind + 1)) / np.arange(1, kind + 1)
    found = []
    for side in SIDES:
        given = graph.test[:, 0 if side == "tail" else 2]
        known = graph.known[side].lookup(given, graph.test[:, 1]).lengths  # the true answer among them
        found.append(means[kind - known])
    return float(np.mean(found))


def learn(way: str, graph: Path, out: Path, settings: dict[str, object], candidates: int) -> dict[str, Any]:
    """Train and evaluate by the command line, one way: its MRR on test."""
    words = [*(str(word) for pair in settings.items() for word in pair), "--no-hidden"]
    words += ["--candidates-per-step", str(0 if way == "exact" else candidates)]
    torchrun = ["-m", "torch.distributed.run", "--nproc-per-node", "2"] if way == "sharded" else []
    start = [sys.executable, *torchrun, "-m", "relwalk"]
    subprocess.run([*start, "train", str(graph), "--out", str(out), "--force", *words], check=True, stdout=sys.stderr)
    said = subprocess.run([*start, "evaluate", str(out), "--json"], check=True, stdout=subprocess.PIPE, text=True)
    history = [json.loads(line) for line in (out / "history.jsonl").read_text().splitlines()]
    figures = json.loads(said.stdout.splitlines()[-1])
    return {
        "mrr": round(figures["metrics"]["both"]["realistic"]["mrr"], 4),
        "epochs": len(history),
        "command": " ".join(["relwalk train", *words]),
    }


def markdown(found: dict[str, Any]) -> str:
    lines = [
        "# Does it learn there?",
        "",
        f"`{found['command']}`, on {found['machine']}: {found['graph']}. Filtered MRR on test, both sides, seed "
        f"{found['seed']}; the best possible is {found['oracle']:.4f}, by one who knows which relation leads to which "
        "kind and guesses within it.",
        "",
        "| trained by | candidates a step | test MRR | of the best possible |",
        "|---|---:|---:|---:|",
    ]
    for way, row in found["ways"].items():
        drawn = "all" if way == "exact" else f"{found['candidates']:,}"
        lines.append(f"| {WAYS[way]} | {drawn} | {row['mrr']:.4f} | {row['mrr'] / found['oracle']:.1%} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--entities", type=int, default=5000)
    parser.add_argument("--relations", type=int, default=8)
    parser.add_argument("--kind", type=int, default=8, help="entities of a kind")
    parser.add_argument("--each", type=int, default=16, help="triples of an entity as a head")
    parser.add_argument("--dim", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=16)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--lr", type=float, default=1.0)
    parser.add_argument("--l2", type=float, default=0.3)
    parser.add_argument("--candidates", type=int, default=512)
    parser.add_argument("--threads", type=int, default=2, help="of a process by itself; two have half of them each")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--folder", type=Path, help="where graph and runs are kept; else they are removed")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where learning.json and learning.md go")
    a = parser.parse_args()
    entities = a.entities // a.kind * a.kind
    graph = kinds_on_a_ring(entities, a.relations, a.kind, a.each, a.seed)
    settings: dict[str, object] = {"--model": "relwalk", "--dim": a.dim, "--epochs": a.epochs, "--batch-size": a.batch}
    settings |= {"--lr": a.lr, "--l2": a.l2, "--decay-end": 1.0, "--blocks": 1, "--schedule": "cosine"}
    settings |= {"--entity-dropout": 0.0, "--validate-every": max(1, a.epochs // 4), "--seed": a.seed}
    found: dict[str, Any] = {
        "command": " ".join(["python tools/learning.py", *sys.argv[1:]]),
        "machine": machine_in_words(),
        "graph": str(graph),
        "seed": a.seed,
        "candidates": a.candidates,
        "oracle": oracle(graph, a.kind),
        "ways": {},
    }
    with ExitStack() as stack:
        folder = a.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        write_graph(graph, folder / "graph", "libkge", force=True)
        for way in a.ways:
            threads = max(1, a.threads // 2) if way == "sharded" else a.threads
            own = {**settings, "--threads": threads}
            found["ways"][way] = learn(way, folder / "graph", folder / way, own, a.candidates)
            print(way, found["ways"][way], file=sys.stderr)
    a.out.mkdir(parents=True, exist_ok=True)
    (a.out / "learning.json").write_text(json.dumps(found, indent=1) + "\n")
    (a.out / "learning.md").write_text(markdown(found))
    print(markdown(found))


if __name__ == "__main__":
    main()
