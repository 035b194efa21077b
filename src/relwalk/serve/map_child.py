"""Lays out the map of a run in a process of its own, so that answers do not wait for it.

Tells how far it is on standard output, and ends when its standard input does: with the service that started it.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import torch

from relwalk.errors import RelWalkError
from relwalk.runs.run import load_run
from relwalk.serve.mapping import make_map, save_map


def main(folder: Path, fingerprint: str) -> None:
    torch.set_num_threads(1)
    threading.Thread(target=_end_with_parent, daemon=True).start()

    def tell(done: int, total: int, what: str) -> None:
        sys.stdout.write(f"{done} {total} {what}\n")
        sys.stdout.flush()

    try:
        run = load_run(folder, anyway=True)
        save_map(folder, make_map(run.model, run.graph, progress=tell), fingerprint)
    except (RelWalkError, OSError) as error:
        sys.stdout.write(f"error {' '.join(str(error).split())}\n")


def _end_with_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(1)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
