"""A model while it is trained: sparse gradients where a step is about few entities, dropout where it is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from relwalk.errors import RelWalkError
from relwalk.models.base import Scorer
from relwalk.training.common import CommonSettings

DROPOUTS = ("entity_dropout", "query_dropout")  # settings of a training; others are options of their model


@contextmanager
def prepared(
    model: Scorer, settings: CommonSettings, generator: torch.Generator, *, few_entities: bool
) -> Iterator[None]:
    """Within, the model is as the settings have it, its dropout drawn by the generator; then a plain module again."""
    check_dropout(model, settings)
    dropouts = model.dropouts()
    rates = {name: dropout.rate for name, dropout in dropouts.items()}
    for table in model.tables():
        table.sparse = few_entities
    for name, dropout in dropouts.items():
        dropout.rate = getattr(settings, name) if name in DROPOUTS else dropout.rate
        dropout.generator = generator
    try:
        yield
    finally:
        for table in model.tables():
            table.sparse = False
        for name, dropout in dropouts.items():
            dropout.rate, dropout.generator = rates[name], None


def check_dropout(model: Scorer, settings: CommonSettings) -> None:
    """Refuse a rate for something that the model does not drop."""
    known = model.dropouts()
    for name in DROPOUTS:
        if getattr(settings, name) and name not in known:
            has = f"It has {', '.join(known)}." if known else "It has no dropout."
            raise RelWalkError(f"{name} means nothing to {model.title}. {has} Leave it out.")
