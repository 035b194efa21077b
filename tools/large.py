r"""A large graph, from a TSV to a run and its answers: seconds, peak memory, triples a second.

    python tools/large.py --epochs 1 --dim 64 --batch-size 4096
    python tools/large.py --shape wikidata5m --epochs 1 --dim 128 --batch-size 4096 --optimizer rowwise-adagrad \
        --on-disk

Of the shape "ring", a million entities and ten million triples unless said otherwise: entities stand on a ring;
relation r leads from place i to i + shift_r plus a few places either way, so there is something to learn. Of the shape
"wikidata5m" the numbers are those of Wikidata5M, and so are the tails of its degrees, heavy for tails and relations,
light for heads: `wikidata_like` says how. The command line does the work, in a process of its own, as a user would have
it; what is not known here is an option of `relwalk train`. `--folder` keeps graph and run.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from relwalk import load_run, predict, predict_many

Longs = NDArray[np.int64]
ROWS = 1 << 21  # lines written at a time
POLL = 0.05  # seconds between two looks at a process


class Shape(NamedTuple):
    entities: int
    relations: int
    triples: int


SHAPES = {"ring": Shape(1_000_000, 50, 10_000_000), "wikidata5m": Shape(4_800_000, 822, 21_000_000)}


def ring(shape: Shape, rng: np.random.Generator) -> tuple[Longs, Longs, Longs]:
    """Heads, relations and tails of a graph on a ring, all drawn uniformly."""
    head = rng.integers(shape.entities, size=shape.triples)
    relation = rng.integers(shape.relations, size=shape.triples)
    shift = rng.integers(shape.entities, size=shape.relations)
    tail = (head + shift[relation] + rng.integers(-5, 6, size=shape.triples)) % shape.entities
    return head, relation, tail


def wikidata_like(shape: Shape, rng: np.random.Generator) -> tuple[Longs, Longs, Longs]:
    """Heads, relations and tails with heavy-tailed degrees.

    Every entity is a head at least once, and the rest of the heads fall off slowly (a power of 1/2); relations fall off
    as 1/rank. A relation has its own favourites among the tails: the k-th comes up as 1/k, so that a few entities have
    a large part of all its triples, as countries and professions have. Half of the time they are the same for all
    heads, and among the first hundredth of all entities; else those of the head's kind, one of 64: that is what there
    is to learn.
    """
    entities, relations, triples = shape
    order = rng.permutation(entities)
    drawn = (entities * rng.random(max(0, triples - entities)) ** 2).astype(np.int64)  # density 1 / 2√(entities x)
    head = np.concatenate([np.arange(min(entities, triples)), drawn])
    relation = _zipf(relations, triples, rng)
    favourite = _zipf(entities, triples, rng)
    first = rng.integers(entities, size=(relations, 65))
    first[:, 64] //= 100
    kind = np.where(rng.random(triples) < 0.5, head % 64, 64)
    tail = (first[relation, kind] + favourite) % entities
    return order[head], relation, order[tail]


MAKERS = {"ring": ring, "wikidata5m": wikidata_like}


def _zipf(count: int, size: int, rng: np.random.Generator) -> Longs:
    """Numbers below `count`, k with a probability of about 1 / (k + 1): the logarithm of k + 1 is uniform."""
    return np.minimum(np.exp(rng.random(size) * np.log(count + 1)).astype(np.int64) - 1, count - 1)


def write_graph(path: Path, kind: str, shape: Shape, seed: int) -> int:
    """A TSV of distinct triples in random order; says how many."""
    rng = np.random.default_rng(seed)
    head, relation, tail = MAKERS[kind](shape, rng)
    packed = np.unique((head * shape.relations + relation) * shape.entities + tail)
    del head, relation, tail
    rng.shuffle(packed)
    with path.open("wb") as file:
        for start in range(0, len(packed), ROWS):
            rest, t = np.divmod(packed[start : start + ROWS], shape.entities)
            h, r = np.divmod(rest, shape.relations)
            frame = pl.DataFrame({"h": h, "r": r, "t": t}).select(
                pl.format("/m/{}", "h"), pl.format("/relation/{}", "r").alias("r"), pl.format("/m/{}", "t").alias("t")
            )
            frame.write_csv(file, separator="\t", include_header=False)
    return len(packed)


class Watched(NamedTuple):
    """What a command said, how long it took, and the most memory that it held."""

    out: str
    seconds: float
    cpu_seconds: float
    peak_gib: float  # all that was resident, pages of files among it, which the system may drop at any time
    own_gib: float  # what it may not: memory that no file stands behind


def watched(command: list[str]) -> Watched:
    """Run a command to its end, looking at its memory all the while."""
    before, started = os.times(), time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    most = {"VmHWM": 0, "RssAnon": 0}

    def look() -> None:
        while process.poll() is None:
            for name, found in _status(process.pid).items():
                most[name] = max(most.get(name, 0), found)
            time.sleep(POLL)

    looker = threading.Thread(target=look, daemon=True)
    looker.start()
    out, _ = process.communicate()
    seconds, after = time.perf_counter() - started, os.times()
    if process.returncode:
        raise SystemExit(process.returncode)
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return Watched(out, seconds, used, most["VmHWM"] / 2**20, most["RssAnon"] / 2**20)


def _status(process: int) -> dict[str, int]:
    """Figures of Linux about a process, in KiB; none where it does not say."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return {}
    found = dict(line.split(":", 1) for line in lines)
    return {name: int(found[name].split()[0]) for name in ("VmHWM", "RssAnon") if name in found}


def ask(path: Path) -> dict[str, float]:
    """Seconds to open a run and to its first answer, which builds the index of known ones; milliseconds for the ten
    best answers to one question thereafter."""
    started = time.perf_counter()
    run = load_run(path)
    loaded = time.perf_counter()
    questions = [(run.graph.entities.names[i], run.graph.relations.names[0], None) for i in range(64)]
    predict(run, head=questions[0][0], relation=questions[0][1])
    first, times = time.perf_counter(), []
    for head, relation, _ in questions[1:16]:
        begun = time.perf_counter()
        predict(run, head=head, relation=relation)
        times.append(1e3 * (time.perf_counter() - begun))
    begun = time.perf_counter()
    list(predict_many(run, questions))
    batch = 1e3 * (time.perf_counter() - begun) / len(questions)
    return {
        "open_seconds": round(loaded - started, 2),
        "first_answer_seconds": round(first - loaded, 2),
        "one_question_ms": round(statistics.median(times), 1),
        "each_of_64_ms": round(batch, 1),
    }


def answers_of(path: Path) -> dict[str, Any]:
    """`ask` in a process of its own, and what that holds."""
    done = watched([sys.executable, __file__, "--ask", str(path)])
    return {**json.loads(done.out), "peak_gib": round(done.peak_gib, 2), "own_gib": round(done.own_gib, 2)}


def measure(folder: Path, kind: str, shape: Shape, seed: int, training: list[str]) -> dict[str, Any]:
    """The figures of a graph that is made, learned and asked in a folder."""
    source, run = folder / f"{kind}.tsv", folder / "run"
    triples = write_graph(source, kind, shape, seed)
    if not {"--valid", "--test"} & set(training):
        share = str(min(0.1, 5000 / triples))  # about as many as Wikidata5M has
        training = [*training, "--valid", share, "--test", share]
    command = [sys.executable, "-m", "relwalk", "train", str(source), "--out", str(run), "--json", *training]
    done = watched(command)
    history = [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]
    return {
        "shape": kind,
        "entities": shape.entities,
        "relations": shape.relations,
        "triples": triples,
        "options": training,
        "seconds": round(done.seconds, 1),
        "cpu_seconds": round(done.cpu_seconds, 1),
        "peak_gib": round(done.peak_gib, 2),
        "own_gib": round(done.own_gib, 2),
        "run_gib": round(sum(path.stat().st_size for path in run.iterdir()) / 2**30, 2),
        **_speed(triples, history, training),
        "answers": answers_of(run),
        "history": history,
        "metrics": json.loads(done.out)["metrics"],
    }


def _speed(triples: int, history: list[dict[str, Any]], training: list[str]) -> dict[str, int]:
    """Triples a second; nothing where a budget may have cut an epoch."""
    whole = not any(word.startswith("--budget") for word in training)
    return {"triples_a_second": round(triples * len(history) / sum(e["seconds"] for e in history))} if whole else {}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shape", choices=SHAPES, default="ring")
    parser.add_argument("--entities", type=int)
    parser.add_argument("--relations", type=int)
    parser.add_argument("--triples", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="where graph and run are kept; else they are removed")
    parser.add_argument("--ask", type=Path, help=argparse.SUPPRESS)
    arguments, training = parser.parse_known_args()
    if arguments.ask is not None:
        print(json.dumps(ask(arguments.ask)))
        return
    said = {name: getattr(arguments, name) for name in Shape._fields if getattr(arguments, name) is not None}
    with ExitStack() as stack:
        folder = arguments.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        found = measure(folder, arguments.shape, SHAPES[arguments.shape]._replace(**said), arguments.seed, training)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
