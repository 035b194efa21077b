"""Triples to scores. A model is one file here and one line in MODELS."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import torch

from relwalk.errors import RelWalkError, UnknownChoice, choose
from relwalk.models.base import ProductScorer, Queries, Scorer
from relwalk.models.complex import ComplEx
from relwalk.models.distmult import DistMult
from relwalk.models.reciprocal import Reciprocal
from relwalk.models.relwalk import RelWalk
from relwalk.models.rescal import RESCAL
from relwalk.models.transe import TransE

MODELS: dict[str, type[Scorer]] = {
    "relwalk": RelWalk,
    "transe": TransE,
    "rescal": RESCAL,
    "distmult": DistMult,
    "complex": ComplEx,
}


def build_model(name: str, entities: int, relations: int, dim: int, *, seed: int, options: Mapping[str, Any]) -> Scorer:
    """A fresh model by name; options it does not have are refused. Any model can be `reciprocal`."""
    kind = choose("model", name, MODELS)
    known = [p.name for p in inspect.signature(kind).parameters.values() if p.kind is p.KEYWORD_ONLY]
    known = [*(option for option in known if option != "generator"), "reciprocal"]
    for option in options:
        if option not in known:
            raise UnknownChoice(f"option of model {name}", option, known)
    own = {option: value for option, value in options.items() if option != "reciprocal"}
    reciprocal = bool(options.get("reciprocal", False))
    generator = torch.Generator().manual_seed(seed)
    model = kind(entities, 2 * relations if reciprocal else relations, dim, generator=generator, **own)  # type: ignore[call-arg]
    if not reciprocal:
        return model
    if not isinstance(model, ProductScorer):
        raise RelWalkError(
            f"model {name} cannot be reciprocal: it does not say its questions as vectors. Leave it out."
        )
    return Reciprocal(model)


__all__ = ["MODELS", "ProductScorer", "Queries", "Reciprocal", "RelWalk", "Scorer", "build_model"]
