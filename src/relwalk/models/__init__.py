"""Triples to scores. A model is one file here and one line in MODELS."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import torch

from relwalk.errors import UnknownChoice, choose
from relwalk.models.base import ProductScorer, Queries, Scorer
from relwalk.models.complex import ComplEx
from relwalk.models.distmult import DistMult
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
    """A fresh model by name; options it does not have are refused."""
    kind = choose("model", name, MODELS)
    known = [p.name for p in inspect.signature(kind).parameters.values() if p.kind is p.KEYWORD_ONLY]
    for option in options:
        if option not in known or option == "generator":
            raise UnknownChoice(f"option of model {name}", option, [o for o in known if o != "generator"])
    generator = torch.Generator().manual_seed(seed)
    return kind(entities, relations, dim, generator=generator, **options)  # type: ignore[call-arg]


__all__ = ["MODELS", "ProductScorer", "Queries", "RelWalk", "Scorer", "build_model"]
