"""Several processes of `relwalk`, as torchrun would start them, forked from the server of `tests.entry`."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import numpy as np

from relwalk.graph.graph import Graph
from relwalk.graph.vocabulary import Vocabulary
from relwalk.graph.write import write_graph
from tests.entry import _start, _verb

Work = Callable[[list[str]], None]


class Said(NamedTuple):
    """How the processes ended, and what each of them said."""

    status: list[int | None]
    out: list[str]
    err: list[str]


def relwalk_ranks(size: int, *words: object, folder: Path, status: int = 0, **how: object) -> Said:
    """A command by so many processes: all end alike, and all but the first are silent."""
    said = ranks(size, [str(word) for word in words], folder=folder, **how)
    assert said.status == [status] * size, said
    assert "".join(said.out[1:] + said.err[1:]) == "", said
    return said


def ranks(
    size: int,
    words: list[str],
    *,
    folder: Path,
    work: Work = _verb,
    before: Callable[[], None] | None = None,
    environment: dict[str, str] | None = None,
    patience: float = 120.0,
) -> Said:
    """Start `work` on the words in so many processes at once, and wait so long for each of them."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [[folder / f"{name}{rank}" for name in ("out", "err")] for rank in range(size)]
    for file in [file for pair in files for file in pair]:
        file.unlink(missing_ok=True)
    common = {"WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(_free_port())}
    common |= {"TORCHELASTIC_RUN_ID": "test", "OMP_NUM_THREADS": "1", **(environment or {})}
    started = []
    for rank in range(size):
        with mock.patch.dict(os.environ, {**common, "RANK": str(rank), "LOCAL_RANK": str(rank)}):
            started.append(_start(work, [*words], None, files[rank], before, "utf-8"))
    for process in started:
        process.join(patience)
        if process.is_alive():
            process.kill()
            process.join()
    out, err = ([pair[place].read_text() for pair in files] for place in (0, 1))
    return Said([process.exitcode for process in started], out, err)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def one(*words: object, folder: Path) -> Said:
    """The same command without torchrun."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / "out", folder / "err"]
    for file in files:
        file.unlink(missing_ok=True)
    process = _start(_verb, [str(word) for word in words], None, files, _one_thread, "utf-8")
    process.join()
    assert process.exitcode == 0, files[1].read_text()
    return Said([0], [files[0].read_text()], [files[1].read_text()])


def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)
    sys.stdout.flush()


def random_graph(folder: Path, entities: int = 60, relations: int = 4, triples: int = 400, seed: int = 0) -> Path:
    """A graph of heavy-tailed degrees, written to a folder."""
    rng = np.random.default_rng(seed)
    likely = 1 / np.arange(1, entities + 1)
    ends = rng.choice(entities, (triples, 2), p=likely / likely.sum())
    rows = np.unique(np.stack([ends[:, 0], rng.integers(0, relations, triples), ends[:, 1]], 1), axis=0).astype(
        np.int32
    )
    rng.shuffle(rows)
    cut = len(rows) // 10
    write_graph(
        Graph(
            name="random",
            entities=Vocabulary("entity", tuple(f"e{i}" for i in range(entities))),
            relations=Vocabulary("relation", tuple(f"r{i}" for i in range(relations))),
            train=rows[2 * cut :],
            valid=rows[:cut],
            test=rows[cut : 2 * cut],
        ),
        folder,
        "libkge",
    )
    return folder
