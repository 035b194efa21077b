"""What keeps the vectors small: frequency-weighted L2, the N3 norm and DURA."""

from __future__ import annotations

import torch
from torch import Tensor

from relwalk.models.base import Scorer
from relwalk.training.common import CommonSettings


def regularization(
    model: Scorer,
    settings: CommonSettings,
    heads: Tensor,
    relations: Tensor,
    tails: Tensor,
    *,
    few: bool,
    decay: float = 1.0,
) -> Tensor:
    """l2 (||h||² + ||t||²) + n3 (Σ|h|³ + Σ|r|³ + Σ|t|³) + dura (||h||² + ||t||² + ||Mᵀh||² + ||M t||²), summed over
    the triples of a step, times `decay`, what is left of these weights at that step; l2 also of what a model says of R.

    N3 is the weighted nuclear 3-norm (Lacroix, Usunier, Obozinski: ICML 2018), DURA that of Zhang, Cai, Zhang, Wang
    (NeurIPS 2020); of orthogonal relations it is twice the L2 term. The model says what |x| and M are. Every triple
    counts, so frequent entities are held more firmly. Vectors are measured in the units in which the score is a
    log-probability (√d for RelWalk), so that one weight serves every dimension. `few` says that the step is about a few
    of the entities, and should cost what those cost.
    """
    entities = entity_terms(model, settings, heads, tails, few=few, decay=decay)
    entities = entities + relation_terms(model, settings, relations, decay=decay)
    return entities + triple_terms(model, settings, heads, relations, tails, decay=decay)


def entity_terms(
    model: Scorer, settings: CommonSettings, heads: Tensor, tails: Tensor, *, few: bool, decay: float = 1.0
) -> Tensor:
    """What is asked of each entity by itself, as often as it is a head and a tail: the L2 norm."""
    unit, l2 = 2 * model.scale, decay * settings.l2
    zero = torch.zeros((), device=heads.device)
    return zero + l2 * unit * _l2_norm(model, heads, tails, few) if l2 else zero


def relation_terms(model: Scorer, settings: CommonSettings, relations: Tensor, *, decay: float = 1.0) -> Tensor:
    """The same of the relations, as often as each has a triple."""
    return 2 * model.scale * decay * settings.l2 * model.l2_of_relations(relations)


def triple_terms(
    model: Scorer, settings: CommonSettings, heads: Tensor, relations: Tensor, tails: Tensor, *, decay: float = 1.0
) -> Tensor:
    """What is asked of whole triples: N3 and DURA."""
    unit = 2 * model.scale
    n3, dura = decay * settings.n3, decay * settings.dura
    total = torch.zeros((), device=heads.device)
    if n3:
        total = total + n3 * unit**1.5 * model.n3_norm(heads, relations, tails)
    if dura:
        total = total + dura * unit * model.dura(heads, relations, tails)
    return total


@torch.no_grad()
def check_regularizers(model: Scorer, settings: CommonSettings) -> None:
    """Refuse a regularizer that means nothing to the model: asked for one triple, the model says so itself."""
    if settings.dura:
        first = torch.zeros(1, dtype=torch.long, device=model.device)
        model.dura(first, first, first)


def _l2_norm(model: Scorer, heads: Tensor, tails: Tensor, few: bool) -> Tensor:
    """Σ ||h||² + ||t||² over the triples, from how often each entity is head and tail."""
    entities, count = None, model.tables()[0].num_embeddings
    if few:
        entities, place = torch.unique(torch.cat([heads, tails]), return_inverse=True)
        (heads, tails), count = place.split([len(heads), len(tails)]), len(entities)
    return model.l2_norm(torch.bincount(heads, minlength=count), torch.bincount(tails, minlength=count), entities)
