"""The closed loop of a page: a graph drawn from a known RelWalk, learned, and compared with what drew it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import torch

from relwalk.experiment import train
from relwalk.generation import load_truth_of
from relwalk.models.relwalk import RelWalk
from relwalk.run import Run
from relwalk.theory.estimate import Absent
from relwalk.theory.generate import ClosedLoop, closed_loop, generate

ENTITIES, RELATIONS, TRIPLES, DIM = 200, 4, 10_000, 16
EPOCHS, L2 = 60, 0.1


@dataclass(frozen=True)
class Loop:
    """What was found, and of which model: the run's own, or one trained for the page."""

    found: ClosedLoop
    about: str


def learned_back(run: Run, truth: Path | None, seed: int) -> Loop | Absent:
    """Of the run itself when it learned a graph of `relwalk generate`, else of a small one made here."""
    if truth is not None:
        return Loop(closed_loop(load_truth_of(run, truth), run.model, seed=seed), f"this run, which learned {truth}")
    if not isinstance(run.model, RelWalk):
        return Absent(f"the loop is closed on graphs drawn from a RelWalk; {run.model.title} draws none.")
    return Loop(small_loop(seed), f"a RelWalk of {DIM} dimensions, trained for {EPOCHS} epochs for this page")


@lru_cache(maxsize=4)
def small_loop(seed: int) -> ClosedLoop:
    """Nothing of it depends on a run: made once for a seed."""
    generated = generate(ENTITIES, RELATIONS, TRIPLES, DIM, seed=seed)
    run = train(generated.graph, dim=DIM, epochs=EPOCHS, l2=L2, seed=seed, threads=torch.get_num_threads())
    return closed_loop(generated, run.model, seed=seed)
