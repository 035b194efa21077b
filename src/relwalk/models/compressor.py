"""Making a model smaller: what it has is decomposed and coded once, for any number of tries."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from relwalk.models.base import Scorer
from relwalk.models.compressed import FEW, Compression, blocks_of, matrix_kind, rebuild, refuse_compressed
from relwalk.models.decomposition import Decomposition, decompose, reflections
from relwalk.models.factored import FactoredMatrices
from relwalk.models.quantised import ENTITY_FORMATS
from relwalk.models.tables import EntityTable


@dataclass(frozen=True)
class Compressor:
    """A model, decomposed and coded once for whatever is asked of it: `compressor(how)` is a smaller model.

    The model stays as it is; the smaller one shares the weights that are not compressed.
    """

    model: Scorer
    decompositions: dict[tuple[str, str, str], Decomposition] = field(default_factory=dict)
    tables: dict[tuple[int, str, int], EntityTable] = field(default_factory=dict)

    @torch.no_grad()
    def __call__(self, how: Compression) -> Scorer:
        refuse_compressed(self.model)
        how.check(self.model.dim)
        return rebuild(self.model, how, self._table, self._factors).to(self.model.device).eval()

    def _factors(self, model: Scorer, name: str, how: Compression) -> FactoredMatrices:
        blocks = blocks_of(model)
        matrices = getattr(model, name).detach()
        matrices = matrices if blocks == 1 else matrices.flatten(0, 1)
        if how.method == "lossless":
            return reflections(matrices)
        assert how.method is not None and how.rank is not None
        around, orthogonal = matrix_kind(model, how)
        if (place := (name, how.method, around)) not in self.decompositions:
            self.decompositions[place] = decompose(matrices, how.method, around, orthogonal=orthogonal)
        return self.decompositions[place].cut(how.rank_of_block(blocks), how.precision)

    def _table(self, table: EntityTable, how: Compression) -> EntityTable:
        assert how.entities is not None
        if table.embedding_dim <= FEW:
            return table
        size = how.codes(table.embedding_dim, self.model.dim)
        if (place := (id(table), how.entities, size)) not in self.tables:
            self.tables[place] = ENTITY_FORMATS[how.entities](table.weight.detach(), size)
        return self.tables[place]
