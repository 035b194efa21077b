"""The closed loop of a run that learned a generated graph, or of a small graph that is drawn and learned here."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from relwalk.evaluation.estimate import Absent
from relwalk.experiment import train
from relwalk.generation import load_truth_of
from relwalk.models.relwalk import RelWalk
from relwalk.report.facts import Loop
from relwalk.runs.run import Run
from relwalk.theory.closed_loop import ClosedLoop, closed_loop
from relwalk.theory.generate import generate

ENTITIES, RELATIONS, TRIPLES, DIM = 200, 4, 10_000, 16
EPOCHS = 60
PLAIN: dict[str, Any] = {  # nothing by the graph's shape: what comes back is to be the model's doing alone
    "epochs": EPOCHS,
    "hidden": False,
    "l2": 0.1,
    "schedule": "constant",
    "entity_dropout": 0.0,
    "blocks": 1,
    "batch_size": 1024,
    "validate_every": 10,
}


def loop_of(run: Run, truth: Path | None, seed: int) -> Loop | Absent:
    """The closed loop to show beside a run: its own when it learned the generated graph `truth`, else that of a small
    RelWalk which is trained for it. `Absent` for models that are no RelWalk."""
    if truth is not None:
        return Loop(closed_loop(load_truth_of(run, truth), run.model, seed=seed), f"this run, which learned {truth}")
    if not isinstance(run.model, RelWalk):
        return Absent(f"the loop is closed on graphs drawn from a RelWalk; {run.model.title} draws none.")
    return Loop(small_loop(seed), f"a RelWalk of {DIM} dimensions, trained for {EPOCHS} epochs for this page")


@lru_cache(maxsize=4)
def small_loop(seed: int) -> ClosedLoop:
    """The closed loop of a small graph, drawn and learned by seed. No run changes it: it is kept."""
    generated = generate(ENTITIES, RELATIONS, TRIPLES, DIM, seed=seed)
    run = train(generated.graph, dim=DIM, **PLAIN, seed=seed, threads=torch.get_num_threads())
    return closed_loop(generated, run.model, seed=seed)
