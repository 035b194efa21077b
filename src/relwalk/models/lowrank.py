"""RelWalk and RESCAL with relation matrices kept as factors."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from relwalk.graph.answers import Side
from relwalk.models.base import ProductScorer, Scorer
from relwalk.models.factored import FactoredMatrices
from relwalk.models.relation_matmul import in_blocks
from relwalk.models.relwalk import RelWalk
from relwalk.models.rescal import RESCAL
from relwalk.models.tables import Dropout


class FactoredRelWalk(RelWalk):
    """RelWalk, x + (x Uᵀ)V in place of x R: time and memory of a relation are those of its factors.

    Of a model whose matrices were exactly orthogonal only M = R2ᵀ is kept, and its score is

        s = ||h||² + ||t||² + 2 hᵀM t  (+ 2 vᵀ(h + R2ᵀt), with a bias),

    the same when M is orthogonal and defined when cutting or rounding left it only nearly so. Of several blocks, each
    has factors of its own. Angles towards hidden dimensions stay as they are.
    """

    def __init__(self, whole: RelWalk, R2: FactoredMatrices, R1: FactoredMatrices | None = None) -> None:
        ProductScorer.__init__(self, whole.entities, whole.relations, whole.dim)  # no matrices to be started
        self.orthogonality, self.scale, self.lr = whole.orthogonality, whole.scale, whole.lr
        self.keys_by_side, self.keys_by_relation = whole.keys_by_side, whole.keys_by_relation
        self.entity, self.blocks, self.bias = whole.entity, whole.blocks, whole.bias
        self.head_angles, self.tail_angles = whole.head_angles, whole.tail_angles
        self.equal_lengths = whole.equal_lengths
        self.head_factors, self.tail_factors = R1, R2
        self.entity_dropout, self.query_dropout = Dropout(), Dropout()

    @property
    def title(self) -> str:
        return "RelWalk, compressed"

    @property
    def exact(self) -> bool:
        """Whether R2 is orthogonal to float precision: rounded factors and a cut SVD are not."""
        return self.orthogonality == "exact" and self.tail_factors.orthogonal

    @property
    def R1(self) -> Tensor:
        if self.head_factors is None:
            return torch.eye(self.R2.shape[-1], device=self.device).expand_as(self.R2)
        return self._by_blocks(self.head_factors.dense())

    @property
    def R2(self) -> Tensor:  # type: ignore[override]  # made when asked for, in place of a weight
        return self._by_blocks(self.tail_factors.dense())

    def _by_blocks(self, matrices: Tensor) -> Tensor:
        """One for each relation, or one for each of its blocks."""
        return matrices if self.blocks == 1 else matrices.view(self.relations, self.blocks, *matrices.shape[1:])

    @property
    def _turned_whole(self) -> bool:
        return self.keys_by_relation  # of exact matrices lengths are known, and what is left of those changes them

    def score_relations(self, heads: Tensor, tails: Tensor) -> Tensor:
        return Scorer.score_relations(self, heads, tails)

    def orthogonal(self) -> list[nn.Parameter]:
        return []  # factors are not trained

    def _rotate(self, side: Side, x: Tensor, relations: Tensor, *, back: bool = False) -> Tensor:
        factors = self.tail_factors if side == "tail" else self.head_factors
        if factors is None:
            return x
        if self.blocks == 1:
            return factors.project(x, relations, transposed=back)
        return factors.project(*in_blocks(x, relations, self.blocks), transposed=back).view(x.shape)


class FactoredRESCAL(RESCAL):
    """RESCAL with M = Uᵀ V: hᵀM t = (U h)·(V t)."""

    def __init__(self, whole: RESCAL, M: FactoredMatrices) -> None:
        ProductScorer.__init__(self, whole.entities, whole.relations, whole.dim)  # no matrices to be started
        self.entity, self.factors = whole.entity, M
        self.entity_dropout, self.query_dropout = Dropout(), Dropout()

    @property
    def title(self) -> str:
        return "RESCAL, compressed"

    @property
    def M(self) -> Tensor:  # type: ignore[override]  # made when asked for, in place of a weight
        return self.factors.dense()

    def _turn(self, side: Side, x: Tensor, relations: Tensor) -> Tensor:
        return self.factors.project(x, relations, transposed=side == "head")
