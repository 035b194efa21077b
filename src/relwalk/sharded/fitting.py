"""What several processes can train together; anything else is refused in a sentence before anything is written."""

from __future__ import annotations

import torch

from relwalk.errors import RelWalkError
from relwalk.models.base import Scorer, as_product
from relwalk.training.likelihood import LikelihoodSettings
from relwalk.training.settings import TrainingSettings

ALONE_INSTEAD = "Take one process, without torchrun."


def check_model(model: Scorer) -> None:
    """Refuse a model whose scores are not products with one key per entity, or that learns from whole batches."""
    product = as_product(model)
    if product is None or product.keys_by_relation:
        what = "scores that are no products" if product is None else "other keys of its entities for every relation"
        raise RelWalkError(f"{model.title} has {what}, and cannot be trained by several processes. {ALONE_INSTEAD}")
    if model.coded:
        raise RelWalkError(f"{model.title} is compressed, and cannot be shared by several processes. {ALONE_INSTEAD}")
    if model.grows or next(model.buffers(), None) is not None:
        raise RelWalkError(
            f"{model.title} keeps more of a batch than its gradient (batch norms, say), and cannot be trained by "
            f"several processes. {ALONE_INSTEAD}"
        )


def check_settings(settings: TrainingSettings) -> None:
    """Refuse settings that several processes have no way to follow."""
    objective = settings.objective
    if not isinstance(objective, LikelihoodSettings):
        raise RelWalkError(
            f"the objective {objective.name} cannot be trained by several processes; expected likelihood. "
            f"{ALONE_INSTEAD}"
        )
    if objective.relation_weight:
        raise RelWalkError(f"relation_weight cannot be trained by several processes. Leave it out, or: {ALONE_INSTEAD}")
    if settings.clip is not None:
        raise RelWalkError(f"clip cannot be followed by several processes. Leave it out, or: {ALONE_INSTEAD}")


def check_sizes(entities: int, processes: int, device: torch.device) -> None:
    """Refuse processes without a row, and devices other than CPUs."""
    if entities < processes:
        raise RelWalkError(
            f"{processes} processes for {entities} entities; expected one entity for each at least. Start fewer."
        )
    if device.type != "cpu":
        raise RelWalkError(f"device {device} cannot be used by several processes; expected cpu. {ALONE_INSTEAD}")
