"""Runs that are open to be asked, by name: each is swapped in whole when its folder has a new one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from relwalk.discovery.neighbours import directions
from relwalk.errors import UnknownChoice
from relwalk.graph.lists import Longs
from relwalk.key_index import KeyIndex, open_index
from relwalk.prediction import predict
from relwalk.runs.folder import RECORD
from relwalk.runs.run import Run, load_run
from relwalk.serve.spelling import Spelling


@dataclass(frozen=True, eq=False)
class Opened:
    """A run, and what is made of it once to answer quickly."""

    name: str
    run: Run
    folder: Path
    fingerprint: str  # of its record, which vouches for all its files
    device: str
    index: KeyIndex | None = None  # None: every entity is looked at

    @cached_property
    def degree(self) -> Longs:
        """How many triples each entity stands in."""
        return np.bincount(self.run.graph.triples[:, [0, 2]].ravel(), minlength=len(self.run.graph.entities))

    @cached_property
    def spelling(self) -> Spelling:
        return Spelling(self.run.graph.entities, self.degree)

    @cached_property
    def directions(self) -> Tensor:
        """The vectors of all entities from their mean, with length 1: a product of two is a cosine."""
        return directions(self.run.model)

    @cached_property
    def made(self) -> dict[Any, Any]:
        """What took long to make, by what it is."""
        return {}

    def warm(self) -> Opened:
        """Make what every answer needs, so that the first one does not wait for it."""
        run = self.run
        head, relation, tail = run.graph.train[0].tolist()
        names, relations = run.graph.entities.names, run.graph.relations.names
        predict(run, head=names[head], relation=relations[relation], k=1)
        predict(run, relation=relations[relation], tail=names[tail], k=1)
        self.spelling.search(run.graph.entities.names[head][:1], 1)
        return self

    def as_dict(self) -> dict[str, Any]:
        run, graph = self.run, self.run.graph
        return {
            "name": self.name,
            "graph": graph.name,
            "entities": len(graph.entities),
            "relations": len(graph.relations),
            "triples": {"train": len(graph.train), "valid": len(graph.valid), "test": len(graph.test)},
            "model": str(run.record.model),
            "state": run.state.as_dict(),
            "calibrated": run.probabilities is not None,
            "not_calibrated": run.uncalibrated,
            "valid_mrr": run.record.metrics.get("valid_mrr"),
            "indexed": self.index is not None,
            "fingerprint": self.fingerprint,
        }


def fingerprint_of(folder: Path) -> str:
    """Of a run's record as it is on the disk now."""
    return hashlib.blake2b((folder / RECORD).read_bytes(), digest_size=12).hexdigest()


def open_folder(folder: Path, name: str, *, device: str = "cpu", anyway: bool = False, index: bool = False) -> Opened:
    """A run from its folder, ready to answer; with an `index` over its keys, which is kept in the folder."""
    with torch.inference_mode(False):
        run = load_run(folder, device=device, anyway=anyway)
    fingerprint = fingerprint_of(folder)
    found = open_index(folder, fingerprint, run.model) if index else None
    return Opened(name, run, folder, fingerprint, device, found).warm()


def distinct_names(folders: Sequence[Path]) -> list[str]:
    """What the runs of these folders are called: the last part of each path, and a number where two share it."""
    names: list[str] = []
    for folder in folders:
        name = folder.resolve().name or "run"
        same = sum(n == name or n.rpartition("-")[0] == name for n in names)
        names.append(name if name not in names else f"{name}-{same + 1}")
    return names


class Shelf:
    """The runs that are served. A reader who has one keeps it while another takes its place."""

    def __init__(self, runs: Sequence[Opened]) -> None:
        self._runs = {opened.name: opened for opened in runs}
        self._first = runs[0].name

    def __iter__(self) -> Iterator[Opened]:
        return iter(list(self._runs.values()))

    def get(self, name: str | None) -> Opened:
        """The run of a name; the first one when none is said."""
        wanted = name or self._first
        if wanted not in self._runs:
            raise UnknownChoice("run", wanted, self._runs)
        return self._runs[wanted]

    def put(self, opened: Opened) -> None:
        """In place of the one of that name."""
        self._runs[opened.name] = opened
