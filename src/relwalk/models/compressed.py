"""A model made smaller: factors in place of relation matrices, codes in place of vectors of entities."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Literal

import torch
from pydantic import BaseModel, ConfigDict
from torch import Tensor

from relwalk.checks import check_whole
from relwalk.errors import RelWalkError
from relwalk.models.base import Scorer
from relwalk.models.factored import Around, FactoredMatrices, Precision, empty_matrices
from relwalk.models.lowrank import FactoredRelWalk, FactoredRESCAL
from relwalk.models.quantised import EntityFormat, empty_table
from relwalk.models.reciprocal import Reciprocal, with_inverses
from relwalk.models.relwalk import RelWalk
from relwalk.models.rescal import RESCAL
from relwalk.models.tables import EntityTable

Method = Literal["eig", "svd", "lossless"]
FEW = 4  # columns: a table of no more is a bias, not worth a code


class Compression(BaseModel):
    """How a model is made smaller; None is left as it is."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    method: Method | None = None  # of the relation matrices
    rank: int | None = None  # K, of eig and svd: components of a relation's matrix, of each of its blocks as many
    around: Literal["identity", "signs"] = "identity"  # what components are added to, of eig and svd
    precision: Precision = "float32"  # of the factors
    entities: EntityFormat | None = None
    code_bytes: int | None = None  # of a vector, of pq

    def check(self, dim: int) -> None:
        """Refuse what is not a compression of a model of `dim` dimensions."""
        if self.method is not None:
            self._check_factors(dim)
        elif self.rank is not None or self.precision != "float32" or self.around != "identity":
            raise RelWalkError("rank, around and precision are of relation matrices. Give a method too: eig or svd.")
        if self.entities == "pq" and self.code_bytes is not None:
            check_whole("code_bytes", self.code_bytes, 1, dim)
        elif self.code_bytes is not None:
            raise RelWalkError("code_bytes are those of entities=pq. Say so, or leave them out.")
        if self.method is None and self.entities is None:
            raise RelWalkError("nothing is compressed. Give a rank or a method for the relations, or entities=int8.")

    def _check_factors(self, dim: int) -> None:
        if self.method != "lossless":
            if self.rank is None:
                raise RelWalkError(f"method {self.method} needs a rank: a whole number from 1 to {dim}")
            check_whole("rank", self.rank, 1, dim)
        elif self.rank is not None or self.precision != "float32" or self.around != "identity":
            raise RelWalkError("lossless keeps all of a matrix in float32: leave out rank, around and precision")

    def rank_of_block(self, blocks: int) -> int:
        """How many components each of the blocks of a matrix keeps."""
        return -(-(self.rank or 0) // blocks)

    def codes(self, width: int, dim: int) -> int:
        """Bytes of a vector of so many numbers, of a model of `dim` dimensions: half a byte a number, unless said."""
        return max(1, -(-width // 2) if self.code_bytes is None else self.code_bytes * width // dim)

    def __str__(self) -> str:
        rank = "" if self.rank is None else f" {self.rank}"
        relations = f"{self.method}{rank}" if self.method is not None else ""
        around = "around signs" if self.around == "signs" else ""
        rounded = self.precision if self.precision != "float32" else ""
        size = f" of {self.code_bytes} bytes" if self.code_bytes is not None else ""
        entities = f"entities {self.entities}{size}" if self.entities is not None else ""
        return ", ".join(part for part in (" ".join(filter(None, (relations, around, rounded))), entities) if part)


def compressed_blank(build: Callable[[int], Scorer], entities: int, how: Compression) -> Scorer:
    """A compressed model for weights that are still to be filled in.

    `build` makes the whole model for a number of entities: of one that codes replace, a single row is enough.
    """

    def table(of: EntityTable, how: Compression) -> EntityTable:
        if of.embedding_dim <= FEW:
            return EntityTable(torch.empty(entities, of.embedding_dim))
        assert how.entities is not None
        return empty_table(how.entities, entities, of.embedding_dim, how.codes(of.embedding_dim, whole.dim))

    def factors(model: Scorer, name: str, how: Compression) -> FactoredMatrices:
        around, orthogonal = matrix_kind(model, how)
        blocks = blocks_of(model)
        shape = (model.relations * blocks, how.rank_of_block(blocks), model.dim // blocks)
        return empty_matrices(how.method or "", around, shape, how.precision, orthogonal=orthogonal)

    whole = build(1 if how.entities is not None else entities)
    how.check(whole.dim)
    blank = rebuild(whole, how, table, factors)
    for module in blank.modules():
        if isinstance(module, Scorer):
            module.entities = entities
    return blank


def refuse_compressed(model: Scorer) -> None:
    """What is compressed already has lost what another compression would start from."""
    base = model.base if isinstance(model, Reciprocal) else model
    if model.coded or isinstance(base, FactoredRelWalk | FactoredRESCAL):
        raise RelWalkError("the model is compressed already. Compress the run that it was made from.")


def has_matrices(model: Scorer) -> bool:
    """Whether the relations of a model are matrices, or blocks of them, that factors can stand for."""
    return isinstance(model.base if isinstance(model, Reciprocal) else model, RelWalk | RESCAL)


def blocks_of(model: Scorer) -> int:
    """How many blocks the matrix of a relation has."""
    base = model.base if isinstance(model, Reciprocal) else model
    return base.blocks if isinstance(base, RelWalk) else 1


def has_diagonal(model: Scorer) -> bool:
    """Whether those matrices are near a diagonal one, as RelWalk's are, which start as one."""
    return isinstance(model.base if isinstance(model, Reciprocal) else model, RelWalk)


def best_method(model: Scorer) -> Method:
    """Eigenvectors of orthogonal matrices take half the numbers of singular vectors; of others as many, for less."""
    base = model.base if isinstance(model, Reciprocal) else model
    return "eig" if isinstance(base, RelWalk) and base.exact else "svd"


def whole_weights(model: Scorer) -> dict[str, Tensor]:
    """The weights by name as they were before they were compressed, with the numbers that are left of them."""
    found = dict(model.state_dict())
    for name, module in model.named_modules():
        codes = isinstance(module, EntityTable) and module.coded
        if codes or isinstance(module, FactoredMatrices):
            found = {key: tensor for key, tensor in found.items() if not key.startswith(f"{name}.")}
        if codes:
            found[f"{name}.weight"] = module()
    for name, module in model.named_modules():
        prefix = f"{name}." if name else ""
        if isinstance(module, FactoredRelWalk):
            found[f"{prefix}R2"] = module.R2
            if module.head_factors is not None:
                found[f"{prefix}free_R1"] = module.R1
        elif isinstance(module, FactoredRESCAL):
            found[f"{prefix}M"] = module.M
    return found


def held_bytes(model: Scorer) -> int:
    """What the weights take in memory."""
    return sum(tensor.numel() * tensor.element_size() for tensor in model.state_dict().values())


_Tables = Callable[[EntityTable, Compression], EntityTable]
_Stacks = Callable[[Scorer, str, Compression], FactoredMatrices]


def rebuild(model: Scorer, how: Compression, table: _Tables, factors: _Stacks) -> Scorer:
    """The model with other tables and factors, where the compression says so."""
    if isinstance(model, Reciprocal):
        return with_inverses(rebuild(model.base, how, table, factors))
    small = _factored(model, how, factors)
    if how.entities is not None:
        for name, module in list(small.named_modules()):
            if isinstance(module, EntityTable):
                parent, _, own = name.rpartition(".")
                setattr(small.get_submodule(parent), own, table(module, how))
    return small


def _factored(model: Scorer, how: Compression, factors: _Stacks) -> Scorer:
    if how.method is None:  # the same modules anew, around the same weights
        return copy.deepcopy(model, {id(weight): weight for weight in model.state_dict(keep_vars=True).values()})
    if isinstance(model, RelWalk):
        if how.method == "lossless" and not model.exact:
            raise RelWalkError("lossless needs exactly orthogonal matrices, and these are soft. Say eig or svd.")
        R1 = None if model.exact else factors(model, "free_R1", how)
        return FactoredRelWalk(model, factors(model, "R2", how), R1)
    if isinstance(model, RESCAL):
        if how.method == "lossless":
            raise RelWalkError("lossless needs orthogonal matrices, and those of RESCAL are not. Say eig or svd.")
        if how.around != "identity":
            raise RelWalkError("the matrices of RESCAL are near no diagonal: there is nothing around it. Leave it out.")
        return FactoredRESCAL(model, factors(model, "M", how))
    raise RelWalkError(
        f"{model.title} has no relation matrices to take components of; RelWalk and RESCAL have. "
        "Compress its entities alone: --entities int8 (entities='int8')."
    )


def matrix_kind(model: Scorer, how: Compression) -> tuple[Around, bool]:
    """What components are added to, and whether the matrices are orthogonal. Those of RESCAL are near no diagonal."""
    return (how.around, model.exact) if isinstance(model, RelWalk) else ("nothing", False)
