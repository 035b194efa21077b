"""What every model answers: the score of a triple, of all tails, of all heads, of all relations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Scorer(nn.Module, ABC):
    """Triples to scores: higher is more likely.

    A model implements `score`, `score_tails` and `score_heads`, which must agree with each other (one contract
    test checks every model in `MODELS`), and inherits the rest; a `ProductScorer` gets the last two as well.
    `scale` turns a score into an unnormalised log-probability: p(t | h, R) is the softmax of `scale * score` over
    the tails.

    `candidates` says which entities are scored: None for all of them, a vector (n,) for the same ones in
    every row, or a matrix (batch, n) for its own ones in each row.
    """

    scale: float = 1.0
    lr: float = 0.1  # the learning rate of Adagrad that suits the size of its vectors
    entity: nn.Parameter  # (entities, dim) every model has one; all other weights are its relations'

    def __init__(self, entities: int, relations: int, dim: int) -> None:
        super().__init__()
        self.entities, self.relations, self.dim = entities, relations, dim
        self._table: Tensor | None = None

    @property
    def title(self) -> str:
        """The model's name in sentences."""
        return type(self).__name__

    @property
    def table(self) -> Tensor:
        """The vectors of all entities, or those that `using` put in their place.  # (entities, dim)"""
        return self.entity if self._table is None else self._table

    @contextmanager
    def using(self, table: Tensor) -> Iterator[None]:
        """Within, these are all the entities there are, and each is known by its row here.

        A step that concerns a few thousand of a million entities costs what those few cost, in any model.
        """
        before, self._table = self._table, table
        try:
            yield
        finally:
            self._table = before

    def vectors(self, entities: Tensor) -> Tensor:
        """The vectors of entities. Unlike `entity[...]`, its gradient adds up in the same order every time."""
        return F.embedding(entities, self.table)  # (*entities.shape, dim)

    @abstractmethod
    def score(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        """The score of each triple.  # (batch,)"""

    @abstractmethod
    def score_tails(self, heads: Tensor, relations: Tensor, candidates: Tensor | None = None) -> Tensor:
        """The score of (h, r, ?) for every candidate.  # (batch, candidates)"""

    @abstractmethod
    def score_heads(self, relations: Tensor, tails: Tensor, candidates: Tensor | None = None) -> Tensor:
        """The score of (?, r, t) for every candidate.  # (batch, candidates)"""

    def score_relations(self, heads: Tensor, tails: Tensor) -> Tensor:
        """The score of (h, ?, t) for every relation.  # (batch, relations)"""
        batch, every = len(heads), torch.arange(self.relations, device=heads.device)
        scores = self.score(heads.repeat(self.relations), every.repeat_interleave(batch), tails.repeat(self.relations))
        return scores.view(self.relations, batch).T

    def log_prob_tails(self, heads: Tensor, relations: Tensor) -> Tensor:
        """log p(t | h, R) over all tails.  # (batch, entities)"""
        return torch.log_softmax(self.scale * self.score_tails(heads, relations), dim=-1)

    def log_prob_heads(self, relations: Tensor, tails: Tensor) -> Tensor:
        """log p(h | R, t) over all heads.  # (batch, entities)"""
        return torch.log_softmax(self.scale * self.score_heads(relations, tails), dim=-1)

    def log_prob_relations(self, heads: Tensor, tails: Tensor, prior: Tensor | None = None) -> Tensor:
        """log p(R | h, t) over all relations, with a prior p(R), uniform unless given.  # (batch, relations)"""
        scores = self.scale * self.score_relations(heads, tails)
        return torch.log_softmax(scores if prior is None else scores + prior.log(), dim=-1)

    def cubes(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        """Σ |x|³ over the coordinates of heads and tails, and of relations that are vectors: the N3 norm."""
        return self.vectors(heads).abs().pow(3).sum() + self.vectors(tails).abs().pow(3).sum()

    def penalty(self, relations: Tensor) -> Tensor:
        """What the model adds to the loss of a step that touched these (distinct) relations."""
        return torch.zeros((), device=relations.device)

    def orthogonal(self) -> list[nn.Parameter]:
        """The weights that are stacks of orthogonal matrices: an optimiser of their own keeps them so."""
        return []


class _SquaredNorms(torch.autograd.Function):
    """Autograd would keep a square of the whole table, and make two more of its size on the way back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        norms: Tensor = torch.linalg.vector_norm(x, dim=-1)
        return norms.square()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return torch.mul(x, (2 * grads[0]).unsqueeze(-1))


def squared_norms(x: Tensor) -> Tensor:
    """||x||² of each vector.  # (...,)"""
    norms: Tensor = _SquaredNorms.apply(x)  # type: ignore[no-untyped-call]
    return norms


class Queries(NamedTuple):
    """Questions as vectors: entity e scores `vectors · e + bias(e) + offset`.

    `bias` maps candidate vectors to one number each, (n, dim) -> (n,), the same for every question; or, when
    `own_bias`, to a row per question, (n, dim) or (batch, n, dim) -> (batch, n).
    """

    vectors: Tensor  # (batch, dim)
    bias: Callable[[Tensor], Tensor] | None = None
    offset: Tensor | None = None  # (batch,) moves a whole row: ranks and softmax do not see it
    own_bias: bool = False


class ProductScorer(Scorer, ABC):
    """A model whose scores of all entities are one matrix product: dot products and squared distances.

    It says how a question becomes a vector; ranking and the exact softmax are then written once for all.
    """

    @abstractmethod
    def tail_queries(self, heads: Tensor, relations: Tensor) -> Queries:
        """(h, r, ?) as vectors."""

    @abstractmethod
    def head_queries(self, relations: Tensor, tails: Tensor) -> Queries:
        """(?, r, t) as vectors."""

    def score_tails(self, heads: Tensor, relations: Tensor, candidates: Tensor | None = None) -> Tensor:
        return self._answer(self.tail_queries(heads, relations), candidates)

    def score_heads(self, relations: Tensor, tails: Tensor, candidates: Tensor | None = None) -> Tensor:
        return self._answer(self.head_queries(relations, tails), candidates)

    def _answer(self, queries: Queries, candidates: Tensor | None) -> Tensor:
        e = self.table if candidates is None else self.vectors(candidates)  # (n, dim) or (batch, n, dim)
        q = queries.vectors  # (batch, dim)
        bias = queries.bias(e) if queries.bias is not None else q.new_zeros(())
        if e.dim() == 2:
            scores = torch.addmm(bias, q, e.T)  # (batch, n)
        else:
            scores = torch.bmm(e, q.unsqueeze(-1)).squeeze(-1) + bias  # (batch, n)
        return scores if queries.offset is None else scores.add_(queries.offset.unsqueeze(1))
