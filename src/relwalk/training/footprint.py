"""How much memory a training will take at its peak, told before it is taken."""

from __future__ import annotations

import os
from pathlib import Path

from relwalk.mapped import DiskRoom
from relwalk.memory import FLOAT, available_memory, refuse_beyond_memory
from relwalk.models.base import Scorer
from relwalk.training.all_entities import AllEntities
from relwalk.training.optimizers import REMEMBERED
from relwalk.training.trainer import Task, Trainer

RUNTIME = 100 << 20  # bytes of torch's own buffers
LARGE = 1 << 30  # bytes; less is not worth a word


def memory_needed(trainer: Trainer) -> int:
    """Bytes of the whole process at the peak of a training that is about to begin, roughly.

    What is held already, what the training adds to the weights (gradients, what the optimiser remembers, the best and
    the averaged weights, unless they have room on the disk), and a step's scores.
    """
    settings = trainer.settings
    weights = FLOAT * sum(weights.numel() for weights in trainer.model.parameters())
    copies = REMEMBERED[settings.optimizer] + (trainer.validate is not None) + (settings.average_from is not None)
    held = 0 if isinstance(trainer.room, DiskRoom) else copies * weights
    gradients = 0 if trainer.task.few_entities else weights
    return resident() + RUNTIME + gradients + held + trainer.task.step_bytes(trainer.model)


def refuse_large_step(task: Task, model: Scorer) -> None:
    """Refuse sums over all entities whose scores do not fit into memory, with what would fit: products take little,
    but other models hold numbers for every score until its gradient is made."""
    if isinstance(task, AllEntities):
        refuse_beyond_memory(
            task.step_bytes(model),
            f"a step of {task.batch_size:,} questions to {model.title}, each over "
            f"{task.candidates or task.entities:,} entities,",
            "Sample the entities (--candidates-per-step 500), take a smaller --batch-size, or learn against sampled "
            "false triples (--objective margin).",
        )


def resident() -> int:
    """Bytes that the process holds now; 0 where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return 0


def room() -> int | None:
    """Bytes that the process may hold: what it holds now and what is free; None where the system does not say."""
    free = available_memory()
    return None if free is None else free + resident()
