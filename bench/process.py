"""One measurement, one process: own memory peak, own time limit, and a crash is a row instead of an end.

A worker is a script of this folder that prints its figures as one line of JSON, the last of its output. `launch`
starts it with a fixed number of threads and returns the figures, or `{"error": ...}` with the reason.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
Row = dict[str, Any]


def launch(script: str, arguments: Sequence[object], *, threads: int, timeout: float) -> Row:
    """The figures that `script` prints, or why there are none."""
    if timeout <= 0:
        return {"error": "skipped: the time budget is used up"}
    command = [sys.executable, str(FOLDER / script), *(str(a) for a in arguments), "--threads", str(threads)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=timeout, env=environment(threads), check=False
        )
    except subprocess.TimeoutExpired:
        return {"error": f"stopped: not done after {timeout:.0f} s"}
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode == 0 and lines:
        row: Row = json.loads(lines[-1])
        return row
    if done.returncode < 0:
        return {"error": f"ended by signal {-done.returncode}"}
    said = [line for line in done.stderr.splitlines() if line.strip()]
    return {"error": said[-1].strip()[:300] if said else f"ended with code {done.returncode}"}


def environment(threads: int) -> dict[str, str]:
    """The same number of threads for every library that keeps a pool of its own."""
    count = str(threads)
    pools = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS", "RAYON_NUM_THREADS")
    return {**os.environ, **dict.fromkeys(pools, count), "PYTHONWARNINGS": "ignore"}


def emit(row: Row) -> None:
    """What a worker found, with its memory peak."""
    print(json.dumps({**row, "peak_mb": round(peak_mb(), 1)}), flush=True)


def peak_mb() -> float:
    """The most memory this process has held. `ru_maxrss` alone would also count what its parent held at the start."""
    scale = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return _status("VmHWM:") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / scale


def forget_peak() -> float:
    """Start the peak anew, where the system can; returns what is held now, or the old peak where it cannot."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return peak_mb()
    return _status("VmRSS:") or peak_mb()


def _status(name: str) -> float | None:
    """A figure of Linux about this process, in MB."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(name)), None)


def summary(rounds: Sequence[Row], key: str) -> Row:
    """The good rounds in one row: measured numbers as medians, the rest (what was tried) as the first round found it.

    Of `key`, what is compared, all values and their spread are kept.
    """
    good = [row for row in rounds if "error" not in row]
    if not good:
        return dict(rounds[0]) if rounds else {"error": "not measured"}
    found = dict(good[0])
    for name, value in good[0].items():
        if isinstance(value, float):
            found[name] = statistics.median(row[name] for row in good)
    values = [row[key] for row in good]
    found |= {"values": values, "spread": [min(values), max(values)], "peak_mb": max(row["peak_mb"] for row in good)}
    failed = [row["error"] for row in rounds if "error" in row]
    return {**found, "failed_rounds": failed} if failed else found
