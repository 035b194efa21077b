"""An epoch by several processes of one thread each, beside one process with as many threads.

    python bench/sharded.py --graph fb15k-237 --processes 2 --threads 2

Both are the command line itself; the time is that of the steps, as the run's history has it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from process import emit, environment


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graph", default="fb15k-237")
    parser.add_argument("--processes", type=int, default=1, help="which share the threads")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--dim", type=int, default=100)
    parser.add_argument("--epochs", type=int, default=1)
    arguments = parser.parse_args()
    each = max(1, arguments.threads // arguments.processes)
    torchrun = ["-m", "torch.distributed.run", "--nproc-per-node", str(arguments.processes)]
    with tempfile.TemporaryDirectory() as folder:
        settings = {"--dim": arguments.dim, "--epochs": arguments.epochs, "--batch-size": 1024, "--threads": each}
        words = [str(word) for pair in settings.items() for word in pair]
        train = ["-m", "relwalk", "train", arguments.graph, "--model", "relwalk", "--out", f"{folder}/run", *words]
        command = [sys.executable, *(torchrun if arguments.processes > 1 else []), *train]
        subprocess.run(command, env=environment(each), check=True, stdout=subprocess.DEVNULL)
        lines = (Path(folder) / "run" / "history.jsonl").read_text().splitlines()
    epochs = [json.loads(line) for line in lines]
    emit(
        {
            "processes": arguments.processes,
            "threads_each": each,
            "epoch_seconds": min(epoch["seconds"] for epoch in epochs),
            "loss": epochs[-1]["loss"],
        }
    )


if __name__ == "__main__":
    main()
