"""How long one waits before anything happens: imports and the command line, each in a fresh interpreter.

The best of several, since nothing but the machine's noise can make a start slower; an empty interpreter stands beside.
"""

from __future__ import annotations

import subprocess
import sys
import time

from process import Row, environment

OURS: dict[str, list[str]] = {
    "empty interpreter": ["-c", "pass"],
    "import relwalk": ["-c", "import relwalk"],
    "import relwalk, train": ["-c", "from relwalk import train"],
    "relwalk --help": ["-m", "relwalk", "--help"],
    "relwalk info world": ["-m", "relwalk", "info", "world"],
}
PEERS: dict[str, list[str]] = {
    "import torch": ["-c", "import torch"],
    "import pykeen": ["-c", "import pykeen"],
    "import pykeen.pipeline": ["-c", "import pykeen.pipeline"],
    "import torchkge": ["-c", "import torchkge"],
}


def best(arguments: list[str], threads: int, repeat: int) -> Row:
    times = []
    for _ in range(1 + repeat):  # the first one warms the disk's cache
        started = time.perf_counter()
        done = subprocess.run(
            [sys.executable, *arguments], capture_output=True, text=True, env=environment(threads), check=False
        )
        times.append(time.perf_counter() - started)
        if done.returncode:
            said = done.stderr.strip().splitlines()
            return {"error": said[-1][:300] if said else f"ended with code {done.returncode}"}
    return {"seconds": min(times[1:]), "values": times[1:]}


def starts(threads: int) -> Row:
    rows = {name: best(arguments, threads, 5) for name, arguments in OURS.items()}
    return rows | {name: best(arguments, threads, 2) for name, arguments in PEERS.items()}
