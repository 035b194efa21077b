"""What every model answers: the score of a triple, of all tails, of all heads, of all relations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from relwalk.errors import RelWalkError
from relwalk.graph.answers import Side
from relwalk.models.relation_matmul import Groups
from relwalk.models.tables import Dropout, EntityTable, squared_norms
from relwalk.space import Between, Search

Pattern = Literal["symmetry", "antisymmetry", "inversion", "composition", "one-to-many"]


DECODED = 1 << 19  # numbers that a block of keys is decoded to: 2 MB, which a cache holds


class Scorer(nn.Module, ABC):
    """Triples to scores: higher is more likely.

    A model implements `score` and `score_candidates`, which must agree with each other (`relwalk.testing.check_model`
    checks), and inherits the rest; a `ProductScorer` gets the second as well. Its entities are one or more
    `EntityTable`s; all other weights are its relations', but for those `shared` by all. `scale` turns a score into an
    unnormalised log-probability: p(t | h, R) is the softmax of `scale * score` over the tails.

    `side` is what is asked: "tail" for (h, r, ?), where the head is given, "head" for (?, r, t).
    `candidates` says which entities are scored: None for all of them, a vector (n,) for the same ones in
    every row, or a matrix (batch, n) for its own ones in each row.
    """

    paper: str = ""  # authors, venue and year
    formula: str = ""  # the score in one line
    expresses: tuple[Pattern, ...] = ()  # what some weights hold exactly, for all entities at once
    objectives: tuple[str, ...] | None = None  # the objectives that fit it, the usual one first; None: all
    usual: ClassVar[Mapping[str, Any]] = {}  # dim, settings and options that suit it, where the default do not
    # What `relwalk tune` tries: of dim and of options, and of settings in place of what those say themselves (None:
    # nothing). What a class says is added to what its bases say.
    search: ClassVar[Mapping[str, Search | None]] = {"dim": Between(32, 512, "powers")}
    shared: tuple[str, ...] = ()  # the parameters and modules that belong to no entity and no relation: a network's

    reciprocal: bool = False  # unless said otherwise, heads are asked for by inverse relations (`Reciprocal`)
    nonnegative: bool = False  # no score is below zero: none can be the log-odds of a falsehood
    scale: float = 1.0
    lr: float = 0.1  # the learning rate of Adagrad that suits the size of its vectors
    constrained: bool = False  # `constrain` is to be called after every step
    grows: bool = False  # so is `grow`

    def __init__(self, entities: int, relations: int, dim: int) -> None:
        super().__init__()
        self.entities, self.relations, self.dim = entities, relations, dim

    @classmethod
    def is_product_with(cls, options: Mapping[str, Any]) -> bool:
        """Whether a model made with these options would be a product (`as_product`)."""
        return False

    @classmethod
    def searched(cls) -> dict[str, Search | None]:
        """What the class and its bases say of a search."""
        return {
            name: found for kind in reversed(cls.__mro__) for name, found in kind.__dict__.get("search", {}).items()
        }

    @property
    def title(self) -> str:
        """The model's name in sentences."""
        return type(self).__name__

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    @abstractmethod
    def score(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        """The score of each triple.  # (batch,)"""

    @abstractmethod
    def score_candidates(
        self, side: Side, given: Tensor, relations: Tensor, candidates: Tensor | None = None
    ) -> Tensor:
        """The score of every candidate as the answer to each question.  # (batch, candidates)"""

    def score_all(self, side: Side, given: Tensor, relations: Tensor, candidates: Tensor | None = None) -> Tensor:
        """`score_candidates`; where entities go by blocks, of a block of them at a time.  # (batch, candidates)"""
        if not self.by_blocks:
            return self.score_candidates(side, given, relations, candidates)
        every = torch.arange(self.entities, device=self.device) if candidates is None else candidates
        scores, start = torch.empty(len(given), every.shape[-1], device=self.device), 0
        for some in torch.split(every, self.decoded_rows, -1):
            scores[:, start : start + some.shape[-1]] = self.score_candidates(side, given, relations, some)
            start += some.shape[-1]
        return scores

    def score_tails(self, heads: Tensor, relations: Tensor, candidates: Tensor | None = None) -> Tensor:
        """The score of (h, r, ?) for every candidate.  # (batch, candidates)"""
        return self.score_candidates("tail", heads, relations, candidates)

    def score_heads(self, relations: Tensor, tails: Tensor, candidates: Tensor | None = None) -> Tensor:
        """The score of (?, r, t) for every candidate.  # (batch, candidates)"""
        return self.score_candidates("head", tails, relations, candidates)

    def score_relations(self, heads: Tensor, tails: Tensor) -> Tensor:
        """The score of (h, ?, t) for every relation.  # (batch, relations)"""
        batch, every = len(heads), torch.arange(self.relations, device=heads.device)
        scores = self.score(heads.repeat(self.relations), every.repeat_interleave(batch), tails.repeat(self.relations))
        return scores.view(self.relations, batch).T

    def log_prob_candidates(self, side: Side, given: Tensor, relations: Tensor) -> Tensor:
        """log p(t | h, R) over all tails, or log p(h | R, t) over all heads.  # (batch, entities)"""
        return torch.log_softmax(self.scale * self.score_candidates(side, given, relations), dim=-1)

    def log_prob_tails(self, heads: Tensor, relations: Tensor) -> Tensor:
        """log p(t | h, R) over all tails.  # (batch, entities)"""
        return self.log_prob_candidates("tail", heads, relations)

    def log_prob_heads(self, relations: Tensor, tails: Tensor) -> Tensor:
        """log p(h | R, t) over all heads.  # (batch, entities)"""
        return self.log_prob_candidates("head", tails, relations)

    def log_prob_relations(self, heads: Tensor, tails: Tensor, prior: Tensor | None = None) -> Tensor:
        """log p(R | h, t) over all relations, with a prior p(R), uniform unless given.  # (batch, relations)"""
        scores = self.scale * self.score_relations(heads, tails)
        return torch.log_softmax(scores if prior is None else scores + prior.log(), dim=-1)

    def tables(self) -> list[EntityTable]:
        """The tables of its entities."""
        return [module for module in self.modules() if isinstance(module, EntityTable)]

    @property
    def coded(self) -> bool:
        """Whether entities are decoded from fewer bytes: a block of them at a time then, where all are asked for."""
        return any(table.coded for table in self.tables())

    @property
    def by_blocks(self) -> bool:
        """Whether entities are coded, or in a file: where all are asked for, there is no copy of all of them."""
        return self.coded or any(table.mapped for table in self.tables())

    @property
    def decoded_rows(self) -> int:
        """How many entities a block has, where they go by blocks."""
        return max(1, DECODED // sum(table.embedding_dim for table in self.tables()))

    def dropouts(self) -> dict[str, Dropout]:
        """Its dropouts by the attribute's name: what a training can set a rate for."""
        modules = self.named_modules()
        return {name.rpartition(".")[2]: module for name, module in modules if isinstance(module, Dropout)}

    def vectors(self, entities: Tensor | None = None) -> Tensor:
        """All that the model knows of entities, their rows in every table side by side.  # (entities, numbers)"""
        rows = [table(entities) for table in self.tables()]
        return rows[0] if len(rows) == 1 else torch.cat(rows, -1)

    def squared_norms(self, entities: Tensor | None = None) -> Tensor:
        """Σ x² over all that the model knows of an entity.  # (entities,)"""
        return torch.stack([squared_norms(table(entities)) for table in self.tables()]).sum(0)

    def l2_norm(self, head_times: Tensor, tail_times: Tensor, entities: Tensor | None = None) -> Tensor:
        """Σ ||e||² over heads and tails, given how often each of the entities (None: of all) is one of them."""
        return torch.sum((head_times + tail_times) * self.squared_norms(entities))

    def l2_of_relations(self, relations: Tensor) -> Tensor:
        """What l2 takes of the relations of triples beside their entities: nothing, unless a model says so."""
        return torch.zeros((), device=relations.device)

    def n3_norm(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        """Σ |x|³ over the coordinates of heads and tails, and of relations that are vectors: the nuclear 3-norm."""
        return self.vectors(heads).abs().pow(3).sum() + self.vectors(tails).abs().pow(3).sum()

    def dura(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        """Σ ||h||² + ||t||² + ||Mᵀh||² + ||M t||², for models whose score is hᵀM t; the others refuse."""
        raise RelWalkError(
            f"dura means nothing to {self.title}: its score is no bilinear form hᵀM t. Say --l2 or --n3 instead."
        )

    def penalty(self, relations: Tensor) -> Tensor:
        """What the model adds to the loss of a step that touched these (distinct) relations."""
        return torch.zeros((), device=relations.device)

    @torch.no_grad()
    def constrain(self, entities: Tensor | None = None) -> None:
        """Bring weights back to where the model wants them (unit norms, say), in place; for models `constrained`.

        `entities` are those that the step moved, distinct; None: all of them.
        """

    @torch.no_grad()
    def grow(self, heads: Tensor, relations: Tensor, tails: Tensor, generator: torch.Generator) -> None:
        """Take up parts that the true triples of a step ask for, in place; for models that `grow`.

        What a model has of them is a buffer beside weights that are as many from the start.
        """

    def orthogonal(self) -> list[nn.Parameter]:
        """The weights that are stacks of orthogonal matrices: an optimizer of their own keeps them so."""
        return []

    def step_numbers(self, questions: int, candidates: int) -> int:
        """Numbers that a step holds, at least, to learn from the scores of all candidates for so many questions."""
        return 2 * questions * candidates  # the scores and their gradient


class ProductScorer(Scorer, ABC):
    """A model whose scores of all entities are one matrix product: dot products and squared distances.

        score = queries(side, given, relations) · keys(side, candidates) + offsets(side, given, relations)

    A bias, a squared norm or a temperature is one more coordinate of both: RelWalk's key is [e, ||e||²] and its query
    [2 R x, 1]. Ranking and the exact softmax are then written once for all.

    An option may make of such a model one that is no product (the L1 distance of TransE): it then says so by
    `is_product` and `is_product_with`, and has a `score_candidates` of its own for that case.
    """

    is_product: bool = True  # False when an option made it something else: `queries` and `keys` mean nothing then
    keys_by_side: bool = False  # heads and tails have keys of their own
    keys_by_relation: bool = False  # so has every relation: products are then made one relation at a time

    @classmethod
    def is_product_with(cls, options: Mapping[str, Any]) -> bool:
        return True

    def shares_keys(self, side: Side) -> bool:
        """Whether all relations have the same keys when this side is asked."""
        return not self.keys_by_relation

    def step_numbers(self, questions: int, candidates: int) -> int:
        return 0 if self.is_product else super().step_numbers(questions, candidates)  # products go tile by tile

    @abstractmethod
    def queries(self, side: Side, given: Tensor, relations: Tensor) -> Tensor:
        """A vector for each question.  # (batch, width)"""

    @abstractmethod
    def keys(self, side: Side, entities: Tensor | None = None, relations: Tensor | None = None) -> Tensor:
        """A vector for each candidate: the given entities, or all.  # (candidates, width)

        `relations` is given unless they share the keys: one for every key (candidates,), or a scalar for all of them.
        """

    def key_parts(self, side: Side) -> tuple[Tensor, ...]:
        """The keys of all entities as parts that stand side by side: one that a table has already is not copied. Not
        for a side where they depend on the relation."""
        return (self.keys(side),)

    def key_blocks(
        self, side: Side, entities: Tensor | None = None, relations: Tensor | None = None
    ) -> Iterator[Tensor]:
        """The keys in order, all at once; of a model whose entities go by blocks, a block at a time, made on the way.

        `relations` is one for all of them, if any.
        """
        if not self.by_blocks:
            yield self.keys(side, entities, relations)
            return
        count = self.entities if entities is None else len(entities)
        for start in range(0, count, self.decoded_rows):
            end = min(start + self.decoded_rows, count)
            rows = torch.arange(start, end, device=self.device) if entities is None else entities[start:end]
            yield self.keys(side, rows, relations)

    def score_all(self, side: Side, given: Tensor, relations: Tensor, candidates: Tensor | None = None) -> Tensor:
        return self.score_candidates(side, given, relations, candidates)  # its keys come in blocks

    def products(self, side: Side, queries: Tensor, candidates: Tensor | None, relation: Tensor | None) -> Tensor:
        """Queries times the keys of candidates.  # (batch, candidates)"""
        if not self.by_blocks:
            return queries @ self.keys(side, candidates, relation).T
        # Into one place: scores kept one by one between decoded blocks would keep the allocator from using their memory
        # again, and the whole table would be held after all.
        count = self.entities if candidates is None else len(candidates)
        scores, start = queries.new_empty(len(queries), count), 0
        for keys in self.key_blocks(side, candidates, relation):
            scores[:, start : start + len(keys)] = queries @ keys.T
            start += len(keys)
            del keys  # before the next are made
        return scores

    def offsets(self, side: Side, given: Tensor, relations: Tensor) -> Tensor | None:
        """What is added to all scores of a question: ranks and softmax do not see it.  # (batch,)"""
        return None

    def score_candidates(
        self, side: Side, given: Tensor, relations: Tensor, candidates: Tensor | None = None
    ) -> Tensor:
        queries = self.queries(side, given, relations)  # (batch, width)
        if candidates is not None and candidates.dim() == 2:
            own = None if self.shares_keys(side) else relations.repeat_interleave(candidates.shape[1])
            keys = self.keys(side, candidates.flatten(), own).view(*candidates.shape, queries.shape[1])
            scores = torch.bmm(keys, queries.unsqueeze(-1)).squeeze(-1)  # (batch, n, width) to (batch, n)
        elif self.shares_keys(side):
            scores = self.products(side, queries, candidates, None)  # (batch, n)
        else:
            groups = Groups(relations)
            rows = zip(groups.relations, torch.split(groups.sort(queries), groups.counts), strict=True)
            parts = [self.products(side, part, candidates, relations.new_tensor(r)) for r, part in rows]
            scores = groups.unsort(torch.cat(parts)) if parts else queries.new_empty(0, 0)
        offsets = self.offsets(side, given, relations)
        return scores if offsets is None else scores + offsets.unsqueeze(1)


def as_product(model: Scorer) -> ProductScorer | None:
    """The model, if its scores are products of queries and keys; None if they have to be asked for."""
    return model if isinstance(model, ProductScorer) and model.is_product else None
