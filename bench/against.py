"""Is this slower or larger than it was? A step of training and a ranking of an earlier commit and of what lies here.

Both take turns, in rounds, each in a process of its own, so that what else the machine does meets both alike. The
earlier commit is laid out in a folder of its own and measured by its own `bench/ours.py`. What is printed is the ratio
of medians, with the range of the ratios of single rounds beside it: a ratio within that range of 1 is no difference.

    python bench/against.py e9756ea --rounds 5
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from machine import describe, in_words
from process import FOLDER, Row, environment

WORK = {
    "train": ("--steps", "24", "--warmup", "8"),
    "rank": ("--repeat", "3"),
}
FIGURES = {  # what is compared of which work: its name and unit
    "train": {"step_seconds_median": "s a step", "peak_mb": "MB"},
    "rank": {"seconds": "s", "peak_mb": "MB"},
}


@contextmanager
def checkout(revision: str) -> Iterator[Path]:
    """The files of a commit, in a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="relwalk-") as place:
        archive = subprocess.run(["git", "archive", revision], cwd=FOLDER.parent, check=True, capture_output=True)
        subprocess.run(["tar", "-x", "-C", place], input=archive.stdout, check=True)
        yield Path(place)


def measure(root: Path, work: str, graph: str, dim: int, threads: int) -> Row:
    """The figures that the benchmark of that folder prints of its own sources."""
    words = [work, "--graph", graph, "--dim", str(dim), "--threads", str(threads), *WORK[work]]
    done = subprocess.run(
        [sys.executable, str(root / "bench" / "ours.py"), *words],
        env={**environment(threads), "PYTHONPATH": str(root / "src")},
        capture_output=True,
        text=True,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        sys.exit(f"{root / 'bench' / 'ours.py'} {' '.join(words)} failed:\n{done.stderr}")
    row: Row = json.loads(lines[-1])
    return row


def line(name: str, unit: str, before: list[float], after: list[float]) -> str:
    """A row of the table: medians, their ratio, and the least and the largest ratio of a round."""
    ratios = [b / a for a, b in zip(before, after, strict=True)]
    middle = [statistics.median(values) for values in (before, after)]
    ratio = f"{middle[1] / middle[0]:.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
    return f"| {name}, {unit} | {middle[0]:.3g} | {middle[1]:.3g} | {ratio} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("revision", help="the earlier commit")
    parser.add_argument("--graphs", nargs="+", default=["fb15k-237", "wn18rr"])
    parser.add_argument("--dim", type=int, default=100)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    print(f"{in_words(describe())}\n{asked.rounds} rounds, d = {asked.dim}, {asked.threads} threads\n")
    print(f"| | {asked.revision} | now | ratio of medians (of single rounds) |\n|---|---|---|---|")
    with checkout(asked.revision) as earlier:
        for graph in asked.graphs:
            for work in WORK:
                rows: dict[Path, list[Row]] = {earlier: [], FOLDER.parent: []}
                for turn in range(asked.rounds):
                    for root in list(rows)[:: 1 if turn % 2 == 0 else -1]:  # who is first changes
                        rows[root].append(measure(root, work, graph, asked.dim, asked.threads))
                for figure, unit in FIGURES[work].items():
                    before, after = ([row[figure] for row in found] for found in rows.values())
                    name = "peak of" if figure == "peak_mb" else "time of"
                    print(line(f"{graph}: {name} {work}", unit, before, after), flush=True)


if __name__ == "__main__":
    main()
