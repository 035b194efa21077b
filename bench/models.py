"""Every system that PyKEEN has too, beside it: the same scores? and who is faster, at a training step and at ranking?

    python bench/models.py [--graph fb15k-237] [--models transe,rescal]     writes models.json and MODELS.md

One step is 1024 true triples against 16 negatives each under the margin loss with Adagrad, in both; ranking is the
filtered test set, both sides, all entities. Each figure is a process of its own, ours and theirs in turn, with the same
threads; the better of two rounds counts for both, since what a busy machine adds is never negative.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from machine import describe, in_words
from process import FOLDER, Row, emit, launch

DIM, BATCH, NEGATIVES = 64, 1024, 16
AGREE = 1e-4  # of the largest score: float32 adds up in another order


def ours(arguments: argparse.Namespace) -> None:
    """Our side of one figure."""
    import torch
    from ours import Enough, StepClock
    from pykeen_models import PEERS

    from relwalk.evaluation.ranking import rank
    from relwalk.experiment import train
    from relwalk.graph.read import read_graph
    from relwalk.models import build_model
    from relwalk.training.memory import keep_freed_memory

    torch.set_num_threads(arguments.threads)
    keep_freed_memory()
    graph, name, options = read_graph(arguments.graph), arguments.model.split("-")[0], PEERS[arguments.model].options
    if arguments.work == "train":
        clock = StepClock(arguments.warmup + arguments.steps)
        settings: dict[str, Any] = {
            "objective": "margin",
            "negatives": NEGATIVES,
            "margin": 1.0,
            "optimizer": "adagrad",
        }
        with contextlib.suppress(Enough):
            train(
                graph,
                model=name,
                dim=DIM,
                batch_size=BATCH,
                threads=arguments.threads,
                epochs=100,
                validate_every=100,
                observer=clock,
                progress=False,
                **settings,
                **{key: value for key, value in options.items() if key != "reciprocal"},
            )
        emit({"step_seconds": statistics.median(np.diff(clock.stamps)[arguments.warmup :].tolist())})
        return
    model = build_model(name, len(graph.entities), len(graph.relations), DIM, seed=0, options=options).eval()
    times = []
    for _ in range(3):
        started = time.perf_counter()
        rank(model, graph, "test")
        times.append(time.perf_counter() - started)
        if times[-1] > 20:
            break
    emit({"seconds": min(times)})


def compare(name: str, arguments: argparse.Namespace, data: Path) -> Row:
    """One system: whether scores agree, and both sides' seconds."""
    limit = arguments.limit

    def figure(side: str, work: str, key: str) -> Row:
        script = "models.py" if side == "ours" else "pykeen_models.py"
        graph = ("--graph", arguments.graph) if side == "ours" else ("--data", data)
        rows = [launch(script, (work, "--model", name, *graph), threads=arguments.threads, timeout=limit)]
        if "error" not in rows[0] and rows[0][key] < limit / 20:  # again, where that costs little
            rows.append(launch(script, (work, "--model", name, *graph), threads=arguments.threads, timeout=limit))
        good = [row for row in rows if "error" not in row]
        return min(good, key=lambda row: float(row[key])) if good else rows[0]

    found: Row = {"agreement": launch("pykeen_models.py", ("agree", "--model", name), threads=1, timeout=limit)}
    for work, key in (("train", "step_seconds"), ("rank", "seconds")):
        found[work] = {side: figure(side, work, key) for side in ("ours", "pykeen")}
        print(
            f"{name:14} {work:6} " + " ".join(_said(found[work][side], key) for side in ("ours", "pykeen")), flush=True
        )
    return found


def _said(row: Row, key: str) -> str:
    return f"{row[key]:.4g} s" if "error" not in row else f"({row['error']})"


def as_markdown(found: Row) -> str:
    """The table, with how it was made."""
    how = (
        f"`{found['command']}` on {in_words(found['machine'])}, {found['threads']} threads; {found['graph']}, "
        f"d = {DIM}. A step: {BATCH} triples, {NEGATIVES} negatives each, margin loss, Adagrad. Ranking: test, "
        "filtered, both sides, all entities; PyKEEN's scaled from a part. Same weights: the largest difference of "
        "scores, over the largest score."
    )
    head = "| system | same weights | step, ours | PyKEEN | faster | ranking, ours | PyKEEN | faster |"
    lines = ["# Every system beside PyKEEN", "", how, "", head, "|---|" + "---:|" * 7]
    for name, row in found["models"].items():
        cells = [name, _agreement(row["agreement"])]
        for work, key in (("train", "step_seconds"), ("rank", "seconds")):
            cells += _pair(row[work], key)
        lines.append(f"| {' | '.join(cells)} |")
    notes = [f"- {name}, {where}: {error}" for name, where, error in _errors(found)]
    return "\n".join([*lines, "", *notes, *([""] if notes else []), *NOTES]) + "\n"


def _agreement(row: Row) -> str:
    if "error" in row:
        return "-"
    share = row["difference"] / max(row["largest"], 1e-9)
    return f"{share:.0e}" if share <= AGREE else f"**{share:.2g}**"


def _pair(sides: dict[str, Row], key: str) -> list[str]:
    times = [sides[side].get(key) for side in ("ours", "pykeen")]
    ratio = f"{times[1] / times[0]:.1f}x" if None not in times else "-"
    return [*(f"{t:.3g} s" if t is not None else "-" for t in times), ratio]


def _errors(found: Row) -> list[tuple[str, str, str]]:
    listed = []
    for name, row in found["models"].items():
        parts = {
            "same weights": row["agreement"],
            "step, ours": row["train"]["ours"],
            "step, PyKEEN": row["train"]["pykeen"],
        }
        parts |= {"ranking, ours": row["rank"]["ours"], "ranking, PyKEEN": row["rank"]["pykeen"]}
        listed += [(name, where, part["error"]) for where, part in parts.items() if "error" in part]
    return listed


NOTES = [
    "RotatE differs by definition: PyKEEN takes the L2 norm of the complex difference, ours and the authors' code the "
    "sum of its moduli, as the paper has it.",
]


def main() -> None:
    from pykeen_models import PEERS

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("work", choices=("all", "train", "rank"), nargs="?", default="all")
    parser.add_argument("--graph", default="fb15k-237")
    parser.add_argument("--model")
    parser.add_argument("--models", help="with commas between; all when not given")
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for one figure")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=FOLDER, help="the folder of models.json and MODELS.md")
    arguments = parser.parse_args()
    if arguments.work != "all":
        ours(arguments)
        return
    names = arguments.models.split(",") if arguments.models else list(PEERS)
    found: Row = {
        "command": "make bench-models",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": describe(),
        "load_at_start": round(os.getloadavg()[0], 2),
        "threads": arguments.threads,
        "graph": arguments.graph,
    }
    with tempfile.TemporaryDirectory(prefix="relwalk-bench-") as folder:
        data = Path(folder) / "graph.npz"
        launch("ours.py", ("export", "--graph", arguments.graph, "--data", data), threads=1, timeout=120)
        found["models"] = {name: compare(name, arguments, data) for name in names}
    (arguments.out / "models.json").write_text(json.dumps(found, indent=1) + "\n")
    (arguments.out / "MODELS.md").write_text(as_markdown(found))


if __name__ == "__main__":
    main()
