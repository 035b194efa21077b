"""Maximum likelihood: p(t | h, R) and p(h | R, t) over all entities, each distinct question scored once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from relwalk.checks import MOST
from relwalk.errors import RelWalkError
from relwalk.graph.answers import Side
from relwalk.graph.graph import Graph
from relwalk.graph.lists import Lists
from relwalk.memory import FLOAT
from relwalk.models.base import ProductScorer, Scorer
from relwalk.models.relation_matmul import Groups
from relwalk.training.candidates import Draws, choose_candidates
from relwalk.training.common import CommonSettings, ObjectiveSettings, setting
from relwalk.training.precision import Precision, choose_precision
from relwalk.training.regularizers import regularization
from relwalk.training.softmax import NUMBERS, Targets, Workspace, softmax_loss

RELATION_PAIRS = 256  # pairs (h, t) of a step whose relation is asked as well
RELATION_NUMBERS = 1 << 25  # held for that at most: pairs x relations x d


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


class LikelihoodSettings(ObjectiveSettings):
    """How the sum over the entities is made, and what is asked beside answers."""

    label_smoothing: float = setting(0.0, "share of an answer spread over all entities", panel="Objective", ge=0, lt=1)
    relation_weight: float = setting(0.0, "weight of -log p(R | h, t) beside the answers", panel="Objective", ge=0)
    candidates_per_step: int | None = setting(
        None,
        "entities drawn for the sum of a step; 0: all",
        panel="Objective",
        otherwise="by the graph's size",
        ge=0,
        le=MOST,
    )
    precision: Precision = setting("auto", "number type of the products", panel="Objective")

    def resolved(self, model: type[Scorer], entities: int, device: torch.device) -> Self:
        """How many entities are drawn, and the number type. Only products have one to choose."""
        product = issubclass(model, ProductScorer)
        if self.precision == "bfloat16" and not product:
            raise RelWalkError(
                f"precision bfloat16 means nothing to {model.__name__}, whose scores are no product. Leave it out."
            )
        dtype = choose_precision(self.precision, device) if product else torch.float32
        candidates = choose_candidates(self.candidates_per_step, entities)
        if candidates and self.label_smoothing:
            raise RelWalkError(
                "label_smoothing spreads answers over all entities, which a step with sampled candidates does not see. "
                "Leave it out, or say --candidates-per-step 0."
            )
        precision = str(dtype).removeprefix("torch.")
        return self.model_copy(update={"candidates_per_step": candidates, "precision": precision})


class Likelihood:
    """One epoch: every distinct (h, R, ?) and (?, R, t) of train once, in random order, with all its answers.

    The gradient is that of every distinct triple in both directions, at the cost of far fewer rows
    (FB15k-237: 544,230 become 149,689). Of a large graph a step takes the entities it is about and a sample of the
    others: its cost does not depend on how many there are.
    """

    Settings: type[LikelihoodSettings] = LikelihoodSettings
    negative_generator = None

    def __init__(self, graph: Graph, settings: CommonSettings, own: ObjectiveSettings, device: torch.device) -> None:
        assert isinstance(own, LikelihoodSettings)
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
        return FLOAT * min(NUMBERS, self.batch_size * (self.candidates or self.entities))

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

    def _tensor(self, array: np.ndarray[tuple[int], np.dtype[np.integer]]) -> Tensor:
        return torch.from_numpy(array.astype(np.int64)).to(self.device)

    def true_triples(self, batch: list[Questions]) -> tuple[Tensor, Tensor, Tensor]:
        """Heads, relations and tails of every answered question of a batch.  # (pairs,) each"""
        heads, relations, tails = (torch.cat(parts) for parts in zip(*(q.triples() for q in batch), strict=True))
        return heads, relations, tails

    def loss(self, model: Scorer, batch: list[Questions], generator: torch.Generator) -> Tensor:
        """-log p of every answer, summed, plus regularization and what the model itself asks for."""
        batch = [questions for questions in batch if len(questions.given)]
        heads, relations, tails = self.true_triples(batch)
        total = regularization(model, self.settings, heads, relations, tails, few=self.few_entities)
        total = total + model.penalty(torch.unique(relations))
        if self.own.relation_weight:
            total = total + self._relations(model, heads, relations, tails, generator)
        candidates, batch = self._candidates(batch, generator)
        if not isinstance(model, ProductScorer):
            return total + sum(self._by_autograd(model, questions, candidates) for questions in batch)
        for queries, keys, targets in products(model, batch, candidates):
            total = total + softmax_loss(
                model.scale * queries,
                keys,
                targets,
                self.workspace,
                smoothing=self.own.label_smoothing,
                log_weights=candidates.log_weights,
            )
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

    def _by_autograd(self, model: Scorer, questions: Questions, candidates: Candidates) -> Tensor:
        """The same loss for a model whose scores are not a product."""
        rows, columns, weights = questions.targets
        scores = model.score_candidates(questions.side, questions.given, questions.relations, candidates.entities)
        logits = model.scale * scores
        summed = logits
        if candidates.log_weights is not None:
            log_weights = logits.new_full(logits.shape, -torch.inf)
            log_weights[:, : len(candidates.log_weights)] = candidates.log_weights
            log_weights[rows, columns] = 0.0
            summed = logits + log_weights
        log_z = torch.logsumexp(summed, -1)  # (rows,)
        hits = (weights * (log_z[rows] - logits[rows, columns])).sum()
        if not self.own.label_smoothing:
            return hits
        totals = weights.new_zeros(len(logits)).index_add_(0, rows, weights)
        spread = (totals * (log_z - logits.mean(-1))).sum()
        return (1 - self.own.label_smoothing) * hits + self.own.label_smoothing * spread

    def _relations(
        self, model: Scorer, heads: Tensor, relations: Tensor, tails: Tensor, generator: torch.Generator
    ) -> Tensor:
        """-log p(R | h, t) of the step's triples, estimated from some of them: each costs relations x d²."""
        most = max(1, min(RELATION_PAIRS, RELATION_NUMBERS // (model.relations * model.dim)))
        some = torch.randperm(len(heads), generator=generator)[:most].to(heads.device)
        log_prob = model.log_prob_relations(heads[some], tails[some])
        truth = log_prob.gather(1, relations[some].unsqueeze(1)).sum()
        return -self.own.relation_weight * len(heads) / len(some) * truth


def products(
    model: ProductScorer, batch: list[Questions], candidates: Candidates
) -> Iterator[tuple[Tensor, Tensor, Targets]]:
    """Queries, keys and targets of questions that share their keys: of all, of a side, or of a relation and side."""
    asked = [(q, model.queries(q.side, q.given, q.relations)) for q in batch]
    if not model.keys_by_relation and not model.keys_by_side:
        yield torch.cat([x for _, x in asked]), model.keys("tail", candidates.entities), _joined([q for q, _ in asked])
        return
    for questions, queries in asked:
        if not model.keys_by_relation:
            yield queries, model.keys(questions.side, candidates.entities), questions.targets
            continue
        groups, start = Groups(questions.relations), 0  # sorted already
        for relation, count in zip(groups.relations, groups.counts, strict=True):
            keys = model.keys(questions.side, candidates.entities, questions.relations.new_tensor(relation))
            yield queries[start : start + count], keys, _part(questions.targets, start, start + count)
            start += count


def _joined(batch: list[Questions]) -> Targets:
    """The targets of both sides, one after the other."""
    starts = np.cumsum([0, *(len(q.given) for q in batch)]).tolist()
    rows = torch.cat([q.targets.rows + start for q, start in zip(batch, starts, strict=False)])
    return Targets(rows, *(torch.cat([q.targets[place] for q in batch]) for place in (1, 2)))


def _part(targets: Targets, start: int, end: int) -> Targets:
    """The targets of some of the rows."""
    first, last = torch.searchsorted(targets.rows, targets.rows.new_tensor([start, end])).tolist()
    return Targets(targets.rows[first:last] - start, targets.columns[first:last], targets.weights[first:last])
