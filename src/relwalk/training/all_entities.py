"""Objectives over all entities: every distinct question of train once, with every entity as a candidate answer.

What they share: batches of questions, the entities that a step sums over, the products of queries and keys. What
differs is the loss of the scores: see `likelihood` and `bce`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from relwalk.checks import MOST
from relwalk.errors import RelWalkError
from relwalk.graph.answers import Side
from relwalk.graph.graph import Graph
from relwalk.graph.lists import Lists
from relwalk.memory import FLOAT
from relwalk.models.base import ProductScorer, Scorer, as_product
from relwalk.models.relation_matmul import Groups
from relwalk.space import Between
from relwalk.training.candidates import Draws, choose_candidates
from relwalk.training.common import CommonSettings, ObjectiveSettings, setting
from relwalk.training.precision import Precision, choose_precision
from relwalk.training.regularizers import regularization
from relwalk.training.softmax import NUMBERS, Targets, Workspace


class Questions(NamedTuple):
    """A batch of questions of one side, sorted by relation, with their answers in train."""

    side: Side  # what is asked
    given: Tensor  # (rows,) the head when the tail is asked, else the tail
    relations: Tensor  # (rows,)
    targets: Targets  # its columns are entities

    def triples(self) -> tuple[Tensor, Tensor, Tensor]:
        """Heads, relations and tails of every answered question.  # (pairs,) each"""
        rows, answers, _ = self.targets
        given, relations = self.given[rows], self.relations[rows]
        return (given, relations, answers) if self.side == "tail" else (answers, relations, given)


class Candidates(NamedTuple):
    """The entities whose keys a step needs: those it sums over, then targets that are not among them."""

    entities: Tensor | None  # (n,); None: all
    log_weights: Tensor | None  # (drawn,) of those that the sum was drawn from; None: it is exact


class AllEntitiesSettings(ObjectiveSettings):
    """Which entities a step sums over, and in what numbers."""

    label_smoothing: float = setting(
        0.0,
        "share of an answer spread over all entities",
        panel="Objective",
        otherwise="0, of bce 0.1",
        search=Between(0.0, 0.2),
        ge=0,
        lt=1,
    )
    candidates_per_step: int | None = setting(
        None,
        "entities drawn for the sum of a step; 0: all",
        panel="Objective",
        otherwise="by the graph's size",
        ge=0,
        le=MOST,
    )
    precision: Precision = setting("auto", "number type of the products", panel="Objective")

    def resolved(self, model: type[Scorer], options: Mapping[str, Any], entities: int, device: torch.device) -> Self:
        """How many entities are drawn, and the number type. Only products have one to choose."""
        product = model.is_product_with(options)
        if self.precision == "bfloat16" and not product:
            raise RelWalkError(
                f"precision bfloat16 means nothing to {model.__name__}, whose scores are no product. Leave it out."
            )
        dtype = choose_precision(self.precision, device) if product else torch.float32
        candidates = choose_candidates(self.candidates_per_step, entities)
        precision = str(dtype).removeprefix("torch.")
        return self.model_copy(update={"candidates_per_step": candidates, "precision": precision})


class AllEntities(ABC):
    """One epoch: every distinct (h, R, ?) and (?, R, t) of train once, in random order, with all its answers.

    The gradient is that of every distinct triple in both directions, at the cost of far fewer rows
    (FB15k-237: 544,230 become 149,689). Of a large graph a step takes the entities it is about and a sample of the
    others: its cost does not depend on how many there are.
    """

    Settings: type[AllEntitiesSettings] = AllEntitiesSettings
    sees_offsets = False  # what moves all scores of a question alike changes the loss
    negative_generator = None  # no entity is drawn by a model

    def __init__(self, graph: Graph, settings: CommonSettings, own: ObjectiveSettings, device: torch.device) -> None:
        assert isinstance(own, self.Settings)
        if own.candidates_per_step is None:  # settings that did not come from a record
            own = own.model_copy(update={"candidates_per_step": choose_candidates(None, len(graph.entities))})
        self.settings, self.own, self.device, self.entities = settings, own, device, len(graph.entities)
        tails, heads = graph.known_in_train["tail"], graph.known_in_train["head"]
        keys = np.concatenate([tails.keys, heads.keys])
        self.given, self.relations = np.divmod(keys, len(graph.relations))
        self.tail_asked = np.arange(len(keys)) < len(tails.keys)
        self.answers = Lists(
            np.concatenate([tails.lists.offsets, heads.lists.offsets[1:] + tails.lists.offsets[-1]]),
            np.concatenate([tails.lists.values, heads.lists.values]),
        )
        self.batch_size = settings.batch_size or -(-len(keys) // (settings.batches or 1))
        self.workspace = Workspace(choose_precision(own.precision, self.device))
        self.candidates = own.candidates_per_step or 0
        self.draws = Draws.from_answers(self.answers.values, len(graph.entities)) if self.candidates else None
        self.place = np.zeros(len(graph.entities) if self.candidates else 0, np.int64)  # of an entity in a step's keys

    @property
    def few_entities(self) -> bool:
        """Whether a step is about a few of the entities alone."""
        return self.draws is not None

    @property
    def triples(self) -> int:
        """Every distinct triple counts twice: as the answer to its head, and to its tail."""
        return len(self.answers.values)

    @property
    def note(self) -> str | None:
        """What should be known of its steps."""
        if not self.candidates:
            return None
        return (
            f"each step draws {self.candidates:,} of {self.entities:,} entities, weighted to stand for all "
            "(--candidates-per-step 0 takes all of them)"
        )

    @property
    def products(self) -> float:
        """How many an epoch makes: three of each question with each candidate."""
        return 3.0 * len(self.given) * (self.candidates or self.entities)

    def step_bytes(self, model: Scorer) -> int:
        """What the scores of a step and their gradients take."""
        candidates = self.candidates or self.entities
        tiles = min(NUMBERS, self.batch_size * candidates) if as_product(model) is not None else 0
        return FLOAT * (tiles + model.step_numbers(self.batch_size, candidates))

    def __len__(self) -> int:
        return -(-len(self.given) // self.batch_size)

    def batches(self, generator: torch.Generator) -> Iterator[list[Questions]]:
        order = torch.randperm(len(self.given), generator=generator).numpy()
        for start in range(0, len(order), self.batch_size):
            rows = order[start : start + self.batch_size]
            tail_asked = self.tail_asked[rows]
            yield [self._questions(rows[tail_asked], "tail"), self._questions(rows[~tail_asked], "head")]

    def _questions(self, rows: np.ndarray[tuple[int], np.dtype[np.int64]], side: Side) -> Questions:
        rows = rows[np.argsort(self.relations[rows], kind="stable")]
        answers = self.answers.take(rows)
        targets = Targets(
            self._tensor(answers.row_of_each_value()),
            self._tensor(answers.values),
            torch.ones(len(answers.values), device=self.device),
        )
        return Questions(side, self._tensor(self.given[rows]), self._tensor(self.relations[rows]), targets)

    def true_triples(self, batch: list[Questions]) -> tuple[Tensor, Tensor, Tensor]:
        """Heads, relations and tails of every answered question of a batch.  # (pairs,) each"""
        heads, relations, tails = (torch.cat(parts) for parts in zip(*(q.triples() for q in batch), strict=True))
        return heads, relations, tails

    def _tensor(self, array: np.ndarray[tuple[int], np.dtype[np.integer]]) -> Tensor:
        return torch.from_numpy(array.astype(np.int64)).to(self.device)

    @abstractmethod
    def product_loss(
        self, queries: Tensor, keys: tuple[Tensor, ...], targets: Targets, log_weights: Tensor | None
    ) -> Tensor:
        """The loss of questions whose scores are queries times keys, summed; its gradient costs no second pass.
        Keys are parts that stand side by side.

        With `log_weights`, the first keys are a sample, each with the log of how many entities it stands for; the
        others are there as targets only.
        """

    @abstractmethod
    def score_loss(self, scores: Tensor, targets: Targets, log_weights: Tensor | None) -> Tensor:
        """The same loss from the scores (rows, candidates) of a model that is no product, by autograd."""

    def extra_loss(self, model: Scorer, triples: tuple[Tensor, ...], generator: torch.Generator) -> Tensor:
        """What is asked of the heads, relations and tails of a step beside their questions; nothing unless said."""
        return torch.zeros((), device=triples[0].device)

    def loss(self, model: Scorer, batch: list[Questions], generator: torch.Generator, *, decay: float = 1.0) -> Tensor:
        """The loss of all questions, summed, plus regularization and what the model itself asks for."""
        batch = [questions for questions in batch if len(questions.given)]
        triples = heads, relations, tails = self.true_triples(batch)
        total = regularization(model, self.settings, heads, relations, tails, few=self.few_entities, decay=decay)
        total = total + model.penalty(torch.unique(relations))
        total = total + self.extra_loss(model, triples, generator)
        candidates, batch = self._candidates(batch, generator)
        product = as_product(model)
        if product is not None:
            for queries, keys, targets in products(product, batch, candidates, offsets=self.sees_offsets):
                total = total + self.product_loss(model.scale * queries, keys, targets, candidates.log_weights)
            return total
        for q in batch:
            scores = model.score_candidates(q.side, q.given, q.relations, candidates.entities)
            total = total + self.score_loss(model.scale * scores, q.targets, candidates.log_weights)
        return total

    def _candidates(self, batch: list[Questions], generator: torch.Generator) -> tuple[Candidates, list[Questions]]:
        """What a step sums over, and the batch with its targets' places there instead of their entities."""
        if self.draws is None:
            return Candidates(None, None), batch
        drawn = self.draws.draw(self.candidates, generator)
        answers = np.unique(np.concatenate([q.targets.columns.cpu().numpy() for q in batch]))
        others = np.setdiff1d(answers, drawn.entities.numpy(), assume_unique=True)
        entities = np.concatenate([drawn.entities.numpy(), others])
        self.place[entities] = np.arange(len(entities))
        placed = [
            q._replace(targets=q.targets._replace(columns=self._tensor(self.place[q.targets.columns.cpu().numpy()])))
            for q in batch
        ]
        return Candidates(self._tensor(entities), drawn.log_weights.to(self.device)), placed


def products(
    model: ProductScorer, batch: list[Questions], candidates: Candidates, *, offsets: bool = False
) -> Iterator[tuple[Tensor, tuple[Tensor, ...], Targets]]:
    """Queries, the parts of keys, and targets of questions that share keys: of all, of a side, of a relation and side.

    With `offsets`, the scores are whole: what the model adds to all scores of a question is one more coordinate.
    """
    asked = [model.queries(q.side, q.given, q.relations) for q in batch]
    added = [model.offsets(q.side, q.given, q.relations) for q in batch] if offsets else []
    longer = any(offset is not None for offset in added)
    if longer:
        asked = [_with_offsets(queries, offset) for queries, offset in zip(asked, added, strict=True)]

    def keys(side: Side, relation: Tensor | None = None) -> tuple[Tensor, ...]:
        whole = candidates.entities is None and relation is None
        parts = model.key_parts(side) if whole else (model.keys(side, candidates.entities, relation),)
        return (*parts, parts[0].new_ones(len(parts[0]), 1)) if longer else parts

    if not model.keys_by_relation and not model.keys_by_side:
        yield torch.cat(asked), keys("tail"), joined_targets(batch)
        return
    for questions, queries in zip(batch, asked, strict=True):
        if model.shares_keys(questions.side):
            yield queries, keys(questions.side), questions.targets
            continue
        groups, start = Groups(questions.relations), 0  # sorted already
        for relation, count in zip(groups.relations, groups.counts, strict=True):
            own = keys(questions.side, questions.relations.new_tensor(relation))
            yield queries[start : start + count], own, _part(questions.targets, start, start + count)
            start += count


def _with_offsets(queries: Tensor, offsets: Tensor | None) -> Tensor:
    """Queries with one more coordinate, which meets a one in every key.  # (rows, width + 1)"""
    column = queries.new_zeros(len(queries)) if offsets is None else offsets
    return torch.cat([queries, column.unsqueeze(1)], 1)


def joined_targets(batch: list[Questions]) -> Targets:
    """The targets of both sides, one after the other."""
    starts = np.cumsum([0, *(len(q.given) for q in batch)]).tolist()
    rows = torch.cat([q.targets.rows + start for q, start in zip(batch, starts, strict=False)])
    return Targets(rows, *(torch.cat([q.targets[place] for q in batch]) for place in (1, 2)))


def _part(targets: Targets, start: int, end: int) -> Targets:
    """The targets of some of the rows."""
    pairs = targets.in_rows(start, end)
    return Targets(targets.rows[pairs] - start, targets.columns[pairs], targets.weights[pairs])
