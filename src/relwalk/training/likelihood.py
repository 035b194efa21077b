"""Maximum likelihood: p(t | h, R) and p(h | R, t) over all entities, each distinct question scored once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from relwalk.errors import RelWalkError
from relwalk.graph.graph import Graph
from relwalk.graph.lists import Lists
from relwalk.models.base import ProductScorer, Queries, Scorer
from relwalk.training.candidates import Draws, choose_candidates
from relwalk.training.decay import decay
from relwalk.training.precision import choose_precision
from relwalk.training.settings import TrainingSettings
from relwalk.training.softmax import Targets, Workspace, softmax_loss

RELATION_PAIRS = 256  # pairs (h, t) of a step whose relation is asked as well
RELATION_NUMBERS = 1 << 25  # held for that at most: pairs x relations x d


class Questions(NamedTuple):
    """A batch of questions of one side, sorted by relation, with their answers in train."""

    tail_asked: bool
    given: Tensor  # (rows,) the head when the tail is asked, else the tail
    relations: Tensor  # (rows,)
    targets: Targets

    def triples(self) -> tuple[Tensor, Tensor, Tensor]:
        """Heads, relations and tails of every answered question.  # (pairs,) each"""
        given, relations, answers = (
            self.given[self.targets.rows],
            self.relations[self.targets.rows],
            self.targets.columns,
        )
        return (given, relations, answers) if self.tail_asked else (answers, relations, given)


class Likelihood:
    """One epoch: every distinct (h, R, ?) and (?, R, t) of train once, in random order, with all its answers.

    The gradient is that of every distinct triple in both directions, at the cost of far fewer rows
    (FB15k-237: 544,230 become 149,689). Of a large graph a step takes the entities it is about and a sample of the
    others, as if there were no more (`Scorer.using`): its cost does not depend on how many there are.
    """

    def __init__(self, graph: Graph, settings: TrainingSettings, device: str = "cpu") -> None:
        self.settings, self.device = settings, torch.device(device)
        tails, heads = graph.known_in_train["tail"], graph.known_in_train["head"]
        keys = np.concatenate([tails.keys, heads.keys])
        self.given, self.relations = np.divmod(keys, len(graph.relations))
        self.tail_asked = np.arange(len(keys)) < len(tails.keys)
        self.answers = Lists(
            np.concatenate([tails.lists.offsets, heads.lists.offsets[1:] + tails.lists.offsets[-1]]),
            np.concatenate([tails.lists.values, heads.lists.values]),
        )
        self.batch_size = settings.batch_size or -(-len(keys) // (settings.batches or 1))
        self.workspace = Workspace(choose_precision(settings.precision, self.device))
        self.candidates = choose_candidates(settings.candidates_per_step, len(graph.entities))
        self.draws = Draws.of(self.answers.values, len(graph.entities)) if self.candidates else None
        self.place = np.zeros(len(graph.entities) if self.candidates else 0, np.int64)  # of an entity in a step's table

    def __len__(self) -> int:
        return -(-len(self.given) // self.batch_size)

    def batches(self, generator: torch.Generator) -> Iterator[list[Questions]]:
        order = torch.randperm(len(self.given), generator=generator).numpy()
        for start in range(0, len(order), self.batch_size):
            rows = order[start : start + self.batch_size]
            yield [self._questions(rows[self.tail_asked[rows] == tail], tail) for tail in (True, False)]

    def _questions(self, rows: np.ndarray[tuple[int], np.dtype[np.int64]], tail_asked: bool) -> Questions:
        rows = rows[np.argsort(self.relations[rows], kind="stable")]
        answers = self.answers.take(rows)
        targets = Targets(
            self._tensor(answers.row_of_each_value()),
            self._tensor(answers.values),
            torch.ones(len(answers.values), device=self.device),
        )
        return Questions(tail_asked, self._tensor(self.given[rows]), self._tensor(self.relations[rows]), targets)

    def _tensor(self, array: np.ndarray[tuple[int], np.dtype[np.integer]]) -> Tensor:
        return torch.from_numpy(array.astype(np.int64)).to(self.device)

    def loss(self, model: Scorer, batch: list[Questions], generator: torch.Generator) -> Tensor:
        """-log p of every answer, summed, plus weight decay and what the model itself asks for."""
        batch = [questions for questions in batch if len(questions.given)]
        if self.draws is None:
            return self._loss(model, batch, generator, None)
        drawn = self.draws.draw(self.candidates, generator)
        entities, batch = self._renumbered(drawn.entities.numpy(), batch)
        table = F.embedding(entities, model.entity, sparse=True)
        with model.using(table):
            return self._loss(model, batch, generator, drawn.log_weights.to(self.device))

    def _renumbered(
        self, drawn: np.ndarray[tuple[int], np.dtype[np.int64]], batch: list[Questions]
    ) -> tuple[Tensor, list[Questions]]:
        """The entities of a step, those drawn first, and the batch in terms of their places."""
        asked = np.unique(np.concatenate([ids.cpu().numpy() for q in batch for ids in (q.given, q.targets.columns)]))
        entities = np.concatenate([drawn, np.setdiff1d(asked, drawn, assume_unique=True)])
        self.place[entities] = np.arange(len(entities))

        def local(ids: Tensor) -> Tensor:
            return self._tensor(self.place[ids.cpu().numpy()])

        questions = [
            q._replace(given=local(q.given), targets=q.targets._replace(columns=local(q.targets.columns)))
            for q in batch
        ]
        return self._tensor(entities), questions

    def _loss(
        self, model: Scorer, batch: list[Questions], generator: torch.Generator, log_weights: Tensor | None
    ) -> Tensor:
        heads, relations, tails = (torch.cat(parts) for parts in zip(*(q.triples() for q in batch), strict=True))
        total = decay(model, self.settings, heads, relations, tails) + model.penalty(torch.unique(relations))
        if self.settings.relation_weight:
            total = total + self._relations(model, heads, relations, tails, generator)
        if not isinstance(model, ProductScorer):
            self._refuse(model, log_weights is not None or self.settings.entity_dropout or self.settings.query_dropout)
            return total + sum(self._unfused(_log_prob(model, questions), questions.targets) for questions in batch)
        asked = [(self._queries(model, questions, generator), questions.targets) for questions in batch]
        if any(queries.own_bias for queries, _ in asked):
            self._refuse(model, log_weights is not None)
            return total + sum(self._unfused(_log_softmax(model, queries), targets) for queries, targets in asked)
        for queries, targets in _joined(asked):
            bias = model.scale * queries.bias(model.table) if queries.bias is not None else None
            total = total + softmax_loss(
                model.scale * queries.vectors,
                model.table,
                bias,
                targets,
                self.workspace,
                smoothing=self.settings.label_smoothing,
                log_weights=log_weights,
            )
        return total

    def _queries(self, model: ProductScorer, questions: Questions, generator: torch.Generator) -> Queries:
        """The questions as vectors, with dropout on the given entities and on the vectors themselves."""
        given, rate = questions.given, self.settings.entity_dropout
        dropped = _drop(model.vectors(given), rate, generator) if rate else None
        with model.using(dropped) if dropped is not None else nullcontext():
            given = torch.arange(len(given), device=given.device) if dropped is not None else given
            if questions.tail_asked:
                queries = model.tail_queries(given, questions.relations)
            else:
                queries = model.head_queries(questions.relations, given)
        if not self.settings.query_dropout:
            return queries
        return queries._replace(vectors=_drop(queries.vectors, self.settings.query_dropout, generator))

    def _refuse(self, model: Scorer, asked: object) -> None:
        if asked:
            raise RelWalkError(
                f"dropout and sampled candidates need questions that are vectors with one bias for all, which "
                f"{model.title} as it is set does not have. Leave dropout out and say --candidates-per-step 0"
                + (", or --orthogonality exact." if isinstance(model, ProductScorer) else ".")
            )

    def _unfused(self, log_prob: Tensor, targets: Targets) -> Tensor:
        """The same loss by autograd, for models whose scores are not one product with a shared bias."""
        rows, columns, weights = targets
        hits = -(weights * log_prob[rows, columns]).sum()
        if not self.settings.label_smoothing:
            return hits
        totals = weights.new_zeros(len(log_prob)).index_add_(0, rows, weights)
        spread = -(totals * log_prob.mean(-1)).sum()
        return (1 - self.settings.label_smoothing) * hits + self.settings.label_smoothing * spread

    def _relations(
        self, model: Scorer, heads: Tensor, relations: Tensor, tails: Tensor, generator: torch.Generator
    ) -> Tensor:
        """-log p(R | h, t) of the step's triples, estimated from some of them: each costs relations x d²."""
        most = max(1, min(RELATION_PAIRS, RELATION_NUMBERS // (model.relations * model.dim)))
        some = torch.randperm(len(heads), generator=generator)[:most].to(heads.device)
        log_prob = model.log_prob_relations(heads[some], tails[some])
        told = log_prob.gather(1, relations[some].unsqueeze(1)).sum()
        return -self.settings.relation_weight * len(heads) / len(some) * told


def _log_prob(model: Scorer, questions: Questions) -> Tensor:
    if questions.tail_asked:
        return model.log_prob_tails(questions.given, questions.relations)
    return model.log_prob_heads(questions.relations, questions.given)


def _log_softmax(model: Scorer, queries: Queries) -> Tensor:
    assert queries.bias is not None
    scores = queries.vectors @ model.table.T + queries.bias(model.table)
    return torch.log_softmax(model.scale * scores, dim=-1)


def _drop(x: Tensor, rate: float, generator: torch.Generator) -> Tensor:
    kept = torch.rand(x.shape, generator=generator).to(x.device) >= rate
    return x * kept / (1 - rate)


def _joined(asked: list[tuple[Queries, Targets]]) -> list[tuple[Queries, Targets]]:
    """Both sides in one, where they share their bias: one pass over the entities instead of two."""
    if len(asked) < 2 or asked[0][0].bias is not asked[1][0].bias:
        return asked
    (first, at), (second, to) = asked
    rows = torch.cat([at.rows, to.rows + len(first.vectors)])
    targets = Targets(rows, torch.cat([at.columns, to.columns]), torch.cat([at.weights, to.weights]))
    return [(Queries(torch.cat([first.vectors, second.vectors]), first.bias), targets)]
