"""The benchmark: relwalk beside PyKEEN and TorchKGE, and beside the machine's own limit. Run by `make bench`.

Every measurement is a process of its own, one at a time, all with the same number of threads. What the goals rest on
is measured in rounds, ours and the peers' in turn, so that the machine's noise falls on all: medians are compared, and
all values are kept. A peer that cannot run is a row that says so. The whole stays within its time: what is left over
when the time is used up is skipped, with a row that says so.

    python bench/run.py --quick     the peak, training, ranking, memory: under 4 minutes
    python bench/run.py             all, with growth, reading, starts and the profile: under 15 minutes
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import growth
from compressed import serving
from goals import goals
from machine import describe, in_words
from process import FOLDER, Row, launch, summary
from reading import write
from start import starts

GRAPHS = ("wn18rr", "fb15k-237")
BARS = ("0.4", "0.55")


@dataclass
class Bench:
    """How much is measured, by when it has to be done, and what was found."""

    quick: bool
    threads: int
    budget: float
    rounds: int
    lines: int
    folder: Path
    began: float = field(default_factory=time.monotonic)
    found: Row = field(default_factory=dict)

    @property
    def left(self) -> float:
        return self.budget - (time.monotonic() - self.began)

    def measure(self, what: str, script: str, *arguments: object, limit: float = 120.0, reserve: float = 0.0) -> Row:
        """One process. `reserve` is the time that has to be left for what comes later and matters more."""
        if self.left - reserve <= 5:
            return {"error": "skipped: the time budget is used up"}
        print(f"[{self.left:4.0f} s left] {what} ...", end=" ", flush=True)
        started = time.monotonic()
        row = launch(script, arguments, threads=self.threads, timeout=min(limit, self.left - reserve))
        print(row.get("error") or f"{time.monotonic() - started:.1f} s", flush=True)
        return row

    def data(self, graph: str) -> Path:
        return self.folder / f"{graph}.npz"


Rows = dict[str, dict[str, list[Row]]]


def compared(bench: Bench) -> None:
    """What the goals rest on, round by round, so that a run that is cut short has a value of everything."""
    peaks: list[Row] = []
    trained: Rows = {graph: {"ours": [], "pykeen": []} for graph in GRAPHS}
    ranked: Rows = {graph: {"ours": [], "pykeen": [], "torchkge": []} for graph in GRAPHS}
    for number in range(1, bench.rounds + 1):
        peaks.append(bench.measure(f"round {number}: peak of products", "machine.py"))
        for graph in GRAPHS:
            training(bench, graph, trained[graph], number)
        for graph in GRAPHS:
            ranking(bench, graph, ranked[graph], number)
    bench.found["peak"] = best_peak(peaks)
    bench.found["training"] = summaries(trained, "epoch_seconds")
    bench.found["ranking"] = summaries(ranked, "seconds")


def training(bench: Bench, graph: str, rows: dict[str, list[Row]], number: int) -> None:
    """Some steps of each side. PyKEEN finds in its first round whether a process that makes batches helps it."""
    what, (steps, warmup, theirs) = f"round {number}: training {graph}", (16, 16, 3) if bench.quick else (40, 24, 6)
    own = ("train", "--graph", graph, "--steps", steps, "--warmup", warmup)
    rows["ours"].append(bench.measure(f"{what}, ours", "ours.py", *own))
    peer = (
        "train",
        "--data",
        bench.data(graph),
        "--steps",
        theirs,
        "--workers",
        *earlier(rows["pykeen"], "workers", (0, 1)),
    )
    rows["pykeen"].append(bench.measure(f"{what}, PyKEEN", "pykeen_peer.py", *peer))


def ranking(bench: Bench, graph: str, rows: dict[str, list[Row]], number: int) -> None:
    """The filtered test set; the peers on a part of it. PyKEEN finds its best size of a batch in its first round."""
    what, (repeat, part, torchkge) = f"round {number}: ranking {graph}", (2, 520, 64) if bench.quick else (5, 1032, 128)
    own = ("rank", "--graph", graph, "--repeat", repeat)
    rows["ours"].append(bench.measure(f"{what}, ours", "ours.py", *own))
    sizes = earlier(rows["pykeen"], "batch_size", (32, 256) if bench.quick else (32, 128, 512))
    peer = ("rank", "--data", bench.data(graph), "--triples", part, "--batches", *sizes)
    rows["pykeen"].append(bench.measure(f"{what}, PyKEEN", "pykeen_peer.py", *peer))
    if number <= (1 if bench.quick else 2):
        other = ("rank", "--data", bench.data(graph), "--triples", torchkge)
        rows["torchkge"].append(bench.measure(f"{what}, TorchKGE", "torchkge_peer.py", *other))


def earlier(rows: list[Row], key: str, several: tuple[int, ...]) -> tuple[int, ...]:
    """What an earlier round found best, or all that are to be tried."""
    return next(((row[key],) for row in rows if key in row), several)


def summaries(rows: Rows, key: str) -> dict[str, Row]:
    return {graph: {side: summary(several, key) for side, several in sides.items()} for graph, sides in rows.items()}


def best_peak(peaks: list[Row]) -> Row:
    good = [row for row in peaks if "error" not in row]
    if not good:
        return peaks[-1]
    kinds = ("float32", "bfloat16")
    best: Row = {kind: max(row[kind] for row in good) for kind in kinds}
    return {"unit": "GFLOP/s", **best, "values": {kind: [row[kind] for row in good] for kind in kinds}}


def memory(bench: Bench) -> None:
    """The peak of every process above, and what the imports alone hold."""
    scripts = {"ours": "ours.py", "pykeen": "pykeen_peer.py", "torchkge": "torchkge_peer.py"}
    bench.found["memory"] = {
        "unit": "MB, most that the process held",
        "imports_only": {side: bench.measure(f"imports, {side}", s, "baseline") for side, s in scripts.items()},
        **{
            work: {
                graph: {side: row.get("peak_mb") for side, row in sides.items()}
                for graph, sides in bench.found[work].items()
            }
            for work in ("training", "ranking")
        },
    }


def compressed(bench: Bench) -> None:
    """Ranking a compressed run beside the whole one, and answers about a million entities from less memory."""
    found: Row = {"ranking": {}}
    for graph in GRAPHS:
        folder = bench.folder / f"runs-{graph}"
        made = bench.measure(f"compressing {graph}", "compressed.py", "make", "--graph", graph, "--data", folder)
        found["ranking"][graph] = {"made": made} | {
            name: bench.measure(f"ranking {graph}, {name}", "compressed.py", "rank", "--data", folder / name)
            for name in ("whole", "small")
        }
    limit = min(120.0, bench.left - 30)
    found["serving"] = serving(bench.folder / "runs-large", bench.threads, limit)
    bench.found["compressed"] = found


def time_to_mrr(bench: Bench) -> None:
    """A small graph. PyKEEN's rate and batch were the best of six tried by hand for 12 s each: lr .03, .1, .3 with
    batches of 256 and 1024. It trains without weight decay, ours with that of its recipe."""
    limit = 60
    common = ("--dim", 64, "--limit", limit, "--bars", *BARS, "--every", 2)
    ours = bench.measure("time to MRR, ours", "ours.py", "mrr", "--graph", "world", *common, limit=150)
    peer = ("mrr", "--data", bench.data("world"), *common, "--lr", 0.1, "--batch", 256)
    theirs = bench.measure("time to MRR, PyKEEN", "pykeen_peer.py", *peer, limit=150)
    about = (
        f"world, d = 64, filtered MRR on valid every 2 epochs off the clock, at most {limit} s of training. PyKEEN: "
        "the best of six settings tried by hand for 12 s each, no weight decay; ours: its recipe, with weight decay"
    )
    bench.found["time_to_mrr"] = {"about": about, "bars": BARS, "ours": ours, "pykeen": theirs}


def sharded(bench: Bench) -> None:
    """An epoch by one process with all threads, and by as many processes with one thread each, in turn."""
    found: dict[str, list[Row]] = {"one": [], "several": []}
    for number in range(1, 3):
        for name, count in (("one", 1), ("several", bench.threads)):
            what = f"round {number}: sharded, {count} processes"
            row = bench.measure(what, "sharded.py", "--processes", count, limit=180, reserve=90)
            found[name].append(row)
    bench.found["sharded"] = {name: summary(rows, "epoch_seconds") for name, rows in found.items()}


def reading(bench: Bench) -> None:
    path = bench.folder / "large.tsv"
    print(f"[{bench.left:4.0f} s left] writing {bench.lines:,} lines", flush=True)
    write(path, bench.lines)
    found: Row = {"lines": bench.lines, "megabytes": round(path.stat().st_size / 2**20, 1)}
    limit = 60 + 60 * bench.lines / 1_000_000
    for side, script in (("ours", "ours.py"), ("pykeen", "pykeen_peer.py")):
        found[side] = bench.measure(f"reading, {side}", script, "read", "--data", path, limit=limit, reserve=60)
        if "seconds" in found[side]:
            found[side]["seconds_per_million_lines"] = found[side]["seconds"] / bench.lines * 1e6
    path.unlink()
    bench.found["reading"] = found


def growing(bench: Bench) -> None:
    rows = []
    for name, size in growth.points():
        arguments = [part for key, value in size.items() for part in (f"--{key}", value)]
        said = ", ".join(f"{key} {value:,}" for key, value in size.items())
        row = bench.measure(f"growth: {said}", "growth.py", *arguments, limit=90, reserve=20)
        rows.append((name, {**size, **row}))
    points = [{"sweep": name, **row} for name, row in rows]
    bench.found["growth"] = {"points": points, "exponents": growth.exponents(rows)}


def profile(bench: Bench) -> None:
    bench.found["profile"] = {
        work: {
            graph: bench.measure(f"profile of {work}, {graph}", "profiling.py", work, "--graph", graph)
            for graph in GRAPHS
        }
        for work in ("training", "ranking")
    }
    tried = FOLDER / "tried.txt"
    if tried.exists():
        bench.found["profile"]["tried"] = [line for line in tried.read_text().splitlines() if line.strip()]


def versions() -> Row:
    found = {}
    for package in ("relwalk", "torch", "numpy", "pykeen", "torchkge"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def run(bench: Bench) -> Row:
    machine = describe()
    print(f"{in_words(machine)}, {bench.threads} threads, {bench.rounds} rounds", flush=True)
    bench.found = {
        "command": "make bench BENCH=quick" if bench.quick else "make bench",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine,
        "load_at_start": round(os.getloadavg()[0], 2),  # above 0.5 somebody else was at work
        "threads": bench.threads,
        "rounds": bench.rounds,
        "versions": versions(),
        "settings": {"dim": 100, "batch": 1024, "model": "RelWalk by likelihood over all entities; peers: RESCAL"},
    }
    for graph in GRAPHS if bench.quick else (*GRAPHS, "world"):
        bench.measure(
            f"ids of {graph} for the peers", "ours.py", "export", "--graph", graph, "--data", bench.data(graph)
        )
    work = [compared, memory, profile]
    if not bench.quick:
        work += [compressed, time_to_mrr, reading, growing, sharded]
    for part in work:
        part(bench)
    if not bench.quick:
        enough = bench.left > 30
        bench.found["start"] = starts(bench.threads) if enough else {"error": "skipped: the time budget is used up"}
    bench.found["seconds_taken"] = round(time.monotonic() - bench.began, 1)
    bench.found["goals"] = goals(bench.found)
    return bench.found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the peak, training, ranking and memory only")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--rounds", type=int, help="of training and ranking; 3, quick: 2")
    parser.add_argument("--budget", type=float, help="seconds; 870, quick: 225")
    parser.add_argument("--lines", type=int, default=2_000_000, help="of the file that is read")
    parser.add_argument("--out", type=Path, default=FOLDER, help="the folder of results.json, RESULTS.md and plots")
    arguments = parser.parse_args()
    quick = arguments.quick
    with tempfile.TemporaryDirectory(prefix="relwalk-bench-") as folder:
        bench = Bench(
            quick=quick,
            threads=arguments.threads,
            budget=arguments.budget or (225 if quick else 870),
            rounds=arguments.rounds or (2 if quick else 3),
            lines=arguments.lines,
            folder=Path(folder),
        )
        found = run(bench)
    arguments.out.mkdir(parents=True, exist_ok=True)
    results = arguments.out / "results.json"
    results.write_text(json.dumps(found, indent=1) + "\n")
    # The table and the plots in a process of their own: matplotlib may be missing, the figures stand all the same.
    subprocess.run([sys.executable, str(FOLDER / "report.py"), str(results)], check=False)


if __name__ == "__main__":
    main()
