"""Triples to scores. A model is one file here and one line in MODELS."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import cache
from typing import Any

import torch
from pydantic import BaseModel, ConfigDict, create_model

from relwalk.checks import DIM, check_whole
from relwalk.errors import RelWalkError, UnknownChoice, choose
from relwalk.faults import settings_errors
from relwalk.models.base import ProductScorer, Scorer
from relwalk.models.complex import ComplEx
from relwalk.models.conve import ConvE
from relwalk.models.cp import CP
from relwalk.models.distmult import DistMult
from relwalk.models.ntn import NTN
from relwalk.models.ote import OTE
from relwalk.models.reciprocal import Reciprocal, with_inverses
from relwalk.models.relwalk import RelWalk
from relwalk.models.rescal import RESCAL
from relwalk.models.rotate import RotatE
from relwalk.models.size import most_numbers, refuse_too_large
from relwalk.models.structured import Structured
from relwalk.models.transd import TransD
from relwalk.models.transe import TransE
from relwalk.models.transg import TransG
from relwalk.models.transr import TransR
from relwalk.models.tucker import TuckER
from relwalk.models.unstructured import Unstructured

MODELS: dict[str, type[Scorer]] = {
    "relwalk": RelWalk,
    "unstructured": Unstructured,
    "structured": Structured,
    "transe": TransE,
    "transr": TransR,
    "transd": TransD,
    "rescal": RESCAL,
    "distmult": DistMult,
    "complex": ComplEx,
    "cp": CP,
    "rotate": RotatE,
    "ote": OTE,
    "conve": ConvE,
    "tucker": TuckER,
    "ntn": NTN,
    "transg": TransG,
}


OPTIONS = {  # of models, beside dim: what `help(relwalk.train)` says of them
    "orthogonality": "of RelWalk's matrices, soft by the paper's penalty",
    "lambda1": "weight of ||R1ᵀR1 - I||² (soft); 10 when None",
    "lambda2": "weight of ||R2ᵀR2 - I||² (soft); 10 when None",
    "start_from": "where RelWalk's matrices start: signs, rotations or identity",
    "entity_scale": "standard deviation of the coordinates that RelWalk's entities start with",
    "blocks": "independent walkers of RelWalk, each with a part of the coordinates and small matrices; divides dim",
    "relation_bias": "a vector of each relation that RelWalk's knowledge vector is drawn towards: an extension",
    "hidden": "dimensions of RelWalk's relations that entities have no coordinates in: a relation can so leave out "
    "what does not matter to it, with matrices that are exactly orthogonal",
    "equal_lengths": "more of them make all of RelWalk's entities equally long (with hidden)",
    "distance": "from h + r to t in TransE; squared it is one matrix product for all entities",
    "unit_norms": "keep TransE's entities at norm 1 after every step, as its paper does",
    "bounded_norms": "hold TransR and TransD to norms of 1 at most, as their papers do; by likelihood they are free",
    "relation_dim": "length of a relation's vector, in TransR at most dim; else dim",
    "max_components": "the most translations that a relation of TransG may have",
    "beta": "how readily TransG gives a relation another translation",
    "settle": "steps that TransG trains the translations of a relation before it may have another",
    "block_size": "coordinates that OTE turns together; divides dim",
    "embedding_height": "of the image that ConvE folds a vector into; else nearly a square",
    "channels": "filters of ConvE's convolution",
    "input_dropout": "share of the network's input that is dropped",
    "feature_dropout": "share of ConvE's feature maps that is dropped",
    "core_dropout": "share of a relation's matrix that is dropped",
    "hidden_dropout": "share of the network's output that is dropped",
    "slices": "bilinear forms of each relation",
    "reciprocal": "ask for heads by an inverse of each relation (likelihood, bce); else by model",
}

Model = str | type[Scorer]  # by name, or a class of one's own


def model_class(model: Model) -> type[Scorer]:
    """The class of a model by name, or the class itself."""
    if isinstance(model, str):
        return choose("model", model, MODELS)
    if not (isinstance(model, type) and issubclass(model, Scorer)):
        raise RelWalkError(f"model is {model!r}; expected one of {', '.join(MODELS)}, or a subclass of relwalk.Scorer")
    return model


def model_name(model: Model) -> str:
    """What a record calls it: its name, or `module:Class` for one that is not listed."""
    return model if isinstance(model, str) else f"{model.__module__}:{model.__qualname__}"


@cache
def model_options(kind: type[Scorer]) -> Mapping[str, inspect.Parameter]:
    """The options of a model by name, with their types and defaults. Any model can be `reciprocal`."""
    keywords = [p for p in inspect.signature(kind, eval_str=True).parameters.values() if p.kind is p.KEYWORD_ONLY]
    reciprocal = inspect.Parameter("reciprocal", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=bool | None)
    return {p.name: p for p in (*keywords, reciprocal) if p.name != "generator"}


def fitting_options(kind: type[Scorer], options: Mapping[str, Any]) -> dict[str, Any]:
    """Those that the model has."""
    return {name: value for name, value in options.items() if name in model_options(kind)}


def check_options(model: Model, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options, each of its type; one that the model does not have is refused."""
    kind = model_class(model)
    known = model_options(kind)
    for option in options:
        if option not in known:
            raise UnknownChoice(f"option of model {kind.__name__}", option, known)
    typed = _typed_options(kind)
    with settings_errors():
        checked = typed(**{option: value for option, value in options.items() if option in typed.model_fields})
    return {option: getattr(checked, option, value) for option, value in options.items()}


@cache
def _typed_options(kind: type[Scorer]) -> type[BaseModel]:
    """What checks the options that a model gives a type."""
    known = model_options(kind).items()
    fields: Any = {option: (p.annotation, p.default) for option, p in known if p.annotation is not p.empty}
    return create_model("Options", __config__=ConfigDict(allow_inf_nan=False), **fields)


def is_reciprocal(kind: type[Scorer], options: Mapping[str, Any]) -> bool:
    """Whether heads are asked for by inverse relations: as was said, or else as the model does."""
    said = options.get("reciprocal")
    return kind.reciprocal if said is None else bool(said)


def build_model(
    model: Model, entities: int, relations: int, dim: int, *, seed: int, options: Mapping[str, Any], copies: int = 1
) -> Scorer:
    """A fresh model in evaluation mode; options it does not have are refused. Any model can be `reciprocal`.

    A model that does not fit into memory `copies` times is refused before it is made: training holds several.
    """
    kind = model_class(model)
    check_whole("dim", dim, most=DIM)
    own = check_options(model, options)
    reciprocal = is_reciprocal(kind, own)
    own.pop("reciprocal", None)
    count = 2 * relations if reciprocal else relations

    def build() -> Scorer:
        generator = torch.Generator().manual_seed(seed)
        return kind(entities, count, dim, generator=generator, **own)  # type: ignore[call-arg]

    most = most_numbers(entities, count, dim, own.values())
    refuse_too_large(build, most, copies=copies, what=f"{kind.__name__} of {dim:,} dimensions")
    made = build().eval()
    if not reciprocal:
        return made
    if len(list(made.parameters())) == len(made.tables()):
        raise RelWalkError(
            f"{made.title} has no weights of relations: inverses would do nothing. Leave reciprocal out."
        )
    return with_inverses(made).eval()


__all__ = [
    "MODELS",
    "OPTIONS",
    "Model",
    "ProductScorer",
    "Reciprocal",
    "RelWalk",
    "Scorer",
    "build_model",
    "check_options",
    "fitting_options",
    "is_reciprocal",
    "model_class",
    "model_name",
    "model_options",
]
