"""All questions of a graph against all entities, by blocks of products: the new answers that are worth most.

    worth = λ(question) · p(t | h, R, t is new),   p ∝ λ(question back from t) · exp(β · scale · s)

how many answers the question lacks (`expected.py`), times the share in them of this one, which must lack an answer as
well. Of a block of scores the known answers are struck out and the rest is summed. Only questions whose best new answer
passes the bar, the least of the best so far, are looked at more closely: first a few answers of each, then twice as
many of those whose last one still passes. Memory is that of a block and of the links that are wanted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from relwalk.discovery.best import Best, Doubles, Links, together
from relwalk.discovery.expected import ExpectedAnswers
from relwalk.discovery.questions import SideQuestions
from relwalk.errors import RelWalkError
from relwalk.evaluation.scores import Scores
from relwalk.graph.answers import KnownAnswers, Side
from relwalk.graph.graph import Graph
from relwalk.graph.lists import Ints, Lists, Longs
from relwalk.models.base import Scorer
from relwalk.models.keys import KeyCache
from relwalk.progress import Count

BLOCK = 1 << 22  # scores held at a time: 16 MB, and the exponentials as many again
CHUNK = 1 << 13  # questions turned into vectors at a time
FIRST = 4  # answers of a question that are looked at before it is known whether more can count
Inverse = Callable[[Side, Ints], Doubles]  # 1 / temperature of questions, by what is asked and their relations


class _Asked(NamedTuple):
    """Some questions of one side, and what turns a weighted logit, β · scale · s + log λ, into a worth and a share."""

    side: Side
    given: Ints
    relation: Ints
    log_new: Doubles  # log Σ exp(weighted logit) over the entities that are new
    log_all: Doubles  # log Σ exp(β · scale · s) over all of them
    expected: Doubles  # λ

    def worth(self, rows: Longs, logits: Doubles) -> Doubles:
        found: Doubles = self.expected[rows] * np.exp(logits - self.log_new[rows])
        return found

    def links(self, rows: Longs, answers: Ints, logits: Doubles, log_weights: Doubles, ranks: Ints) -> Links:
        share = np.exp(logits - log_weights - self.log_all[rows])
        worth = self.worth(rows, logits)
        return Links.from_answers(self.side, self.given[rows], self.relation[rows], answers, worth, share, ranks)


class _Weights:
    """log λ of candidates, for the relations of some questions."""

    def __init__(self, expected: ExpectedAnswers, side: Side, relation: Ints, like: Tensor) -> None:
        distinct, self.column = np.unique(relation, return_inverse=True)
        weights = np.stack([expected.of_candidates(side, r) for r in distinct.tolist()], 1)
        self.logs = torch.from_numpy(np.log(weights)).to(like)  # (entities, distinct relations)

    def add_to(self, table: Tensor) -> None:
        one = self.logs.shape[1] == 1
        table.add_(self.logs if one else self.logs[:, _tensor(self.column, table)])

    def pick(self, rows: Longs, answers: Ints) -> Doubles:
        return _array(self.logs[_tensor(answers, self.logs), _tensor(self.column[rows], self.logs)])


class Sweep:
    """Goes through questions about a model and its graph, and offers every answer that is new to `best`."""

    def __init__(
        self,
        model: Scorer,
        graph: Graph,
        best: Best,
        expected: ExpectedAnswers,
        inverse: Inverse,
        keys: KeyCache,
        block: int | None = None,
    ) -> None:
        self.model, self.graph, self.best = model, graph, best
        self.expected, self.inverse, self.keys = expected, inverse, keys
        self.questions_at_a_time = min(CHUNK, max(1, (block or BLOCK) // model.entities))
        self.space = torch.empty(0, device=model.device)

    @torch.inference_mode()
    def ask(self, asked: SideQuestions, facts: Ints, count: Count) -> Links:
        """Offer the new answers of one side. Gives the facts, known triples, as if they were new too."""
        scores = Scores(self.model, asked.side, self.keys)
        by_fact = FactsAsked(facts, asked.side, len(self.graph.relations))
        size, found = self.questions_at_a_time, []
        for begin, end in asked.groups(by_relation=scores.by_relation):
            keys = scores.keys(None, int(asked.between(begin, begin + 1)[1][0]))
            for first in range(begin, end, CHUNK):
                given, relation = asked.between(first, min(first + CHUNK, end))
                ready = scores.ask(given, relation, None, keys)
                for start in range(0, len(given), size):
                    rows = np.arange(start, min(start + size, len(given)))
                    table = scores.score(ready, rows)  # (entities, questions)
                    own = table if ready.product is not None else table.clone()
                    found.append(self._block(asked, given[rows], relation[rows], own, by_fact))
                    count.add(len(rows))
        return together(found)

    def _block(self, asked: SideQuestions, given: Ints, relation: Ints, table: Tensor, by_fact: FactsAsked) -> Links:
        """Offer the new answers of some questions, whose scores are written over; their facts, as if new."""
        side, known = asked.side, self.graph.known[asked.side].lookup(given, relation)
        table.mul_(torch.from_numpy(self.model.scale * self.inverse(side, relation)).to(table))
        looped = np.flatnonzero(~self.graph.has_loops[relation])
        table[_tensor(given[looped], table), _tensor(looped, table)] = -torch.inf
        log_all = self._log_sums(table)[1]
        weights = _Weights(self.expected, side, relation, table)
        weights.add_to(table)
        facts = by_fact.asked.lookup(given, relation)
        row = facts.row_of_each_value()
        fact_logits = _array(table[_tensor(facts.values, table), _tensor(row, table)])
        table[_tensor(known.values, table), _tensor(known.row_of_each_value(), table)] = -torch.inf
        top, log_new = self._log_sums(table)
        questions = _Asked(side, given, relation, log_new, log_all, self.expected(side, relation, known.lengths))
        self._offer(questions, table, top, weights)
        return self._as_if_new(asked, questions, known, facts, fact_logits, weights, by_fact)

    def _as_if_new(
        self,
        asked: SideQuestions,
        questions: _Asked,
        known: Lists,
        facts: Lists,
        logits: Doubles,
        weights: _Weights,
        by_fact: FactsAsked,
    ) -> Links:
        """Facts as they would be found in a graph without any of them: fewer answers, there and back."""
        side, relation, row = asked.side, questions.relation, facts.row_of_each_value()
        before = weights.pick(row, facts.values)
        after = np.log(self.expected(by_fact.other, relation[row], by_fact.back(self.graph, relation[row], facts.values)))
        logits = logits - before + after
        log_new = questions.log_new.copy()
        np.logaddexp.at(log_new, row, logits)
        answers = known.lengths - facts.lengths
        expected = np.where((answers > 0) | asked.anyway, self.expected(side, relation, answers), 0.0)
        without = questions._replace(log_new=log_new, expected=expected)
        return without.links(row, facts.values, logits, after, np.zeros(len(row), np.int32))

    def _log_sums(self, table: Tensor) -> tuple[Tensor, Doubles]:
        """Of every column the greatest logit, and log Σ exp(logit): -inf where nothing is left."""
        top = table.amax(0)
        if bool((top.isnan() | top.isposinf()).any()):
            raise RelWalkError("the model gives scores that are not numbers: it cannot discover. Train it again.")
        if self.space.numel() < table.numel():
            self.space = torch.empty(table.numel(), device=table.device)
        work = self.space[: table.numel()].view(table.shape)
        finite = torch.where(top.isneginf(), 0.0, top)
        total = torch.sub(table, finite, out=work).exp_().sum(0)
        with np.errstate(divide="ignore"):
            return top, _array(finite) + np.log(_array(total))

    def _offer(self, questions: _Asked, table: Tensor, top: Tensor, weights: _Weights) -> None:
        passing = np.flatnonzero(_array(top) > -np.inf)
        passing = passing[questions.worth(passing, _array(top)[passing]) >= self.best.bar]
        take, before = min(FIRST, len(table)), np.inf
        while len(passing):
            values, answers = table[:, _tensor(passing, table)].T.contiguous().topk(take)  # (questions, take)
            logits, ids = _array(values), answers.cpu().numpy().astype(np.int32)
            row, place = np.nonzero((logits <= before) & (logits > -np.inf))  # those above were offered before
            counts = questions.worth(passing[row], logits[row, place]) >= self.best.bar
            row, place = row[counts], place[counts]
            more = np.zeros(len(passing), np.bool_)
            more[row[place == take - 1]] = take < len(table)
            asked, answer = passing[row], ids[row, place]
            logs, ranks = weights.pick(asked, answer), _ranks(logits)[row, place]
            self.best.offer(questions.links(asked, answer, logits[row, place], logs, ranks))
            passing, before, take = passing[more], logits[more, -1:], min(2 * take, len(table))


class FactsAsked:
    """Facts by the question of one side, and by the question back from their answers."""

    def __init__(self, facts: Ints, side: Side, relations: int) -> None:
        self.other: Side = "head" if side == "tail" else "tail"
        self.asked = KnownAnswers.from_triples(facts, side, relations)
        self._back = KnownAnswers.from_triples(facts, self.other, relations)

    def back(self, graph: Graph, relation: Ints, answers: Ints) -> Longs:
        """How many answers the question back from each answer has without the facts."""
        known, facts = (k.lookup(answers, relation).lengths for k in (graph.known[self.other], self._back))
        return known - facts


def _ranks(scores: Doubles) -> Ints:
    """1 + how many of the row are greater, of rows in descending order."""
    new = np.ones(scores.shape, np.bool_)
    new[:, 1:] = scores[:, 1:] < scores[:, :-1]
    places = np.where(new, np.arange(scores.shape[1]), 0)
    ranks: Ints = np.maximum.accumulate(places, axis=1).astype(np.int32) + 1
    return ranks


def _array(values: Tensor) -> Doubles:
    return values.double().cpu().numpy()


def _tensor(array: NDArray[np.integer], like: Tensor) -> Tensor:
    return torch.from_numpy(array.astype(np.int64)).to(like.device)
