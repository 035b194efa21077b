"""How many answers a question still lacks, from how many the graph has for it and for others like it.

Hide any one fact of a graph: its question, which had n answers, is one with n - 1 of them that lacks one. So

    λ(R, side, j) = facts whose question has j + 1 answers / questions that have j answers

is, but for a factor that all questions share, the number of answers that a question with j of them lacks (Good 1953,
Turing). A relation with one tail for each head lacks none where it has one. Counts j are taken together by powers of
two, and each relation is drawn towards what all relations say by as much as `SHRINK` questions would weigh.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from relwalk.discovery.best import Doubles
from relwalk.graph.answers import SIDES, Side
from relwalk.graph.graph import Graph
from relwalk.graph.lists import Longs

BINS = 33  # 0 answers, 1, 2 to 3, 4 to 7, ...
SHRINK = 20.0


class ExpectedAnswers:
    """λ of the questions of a graph."""

    def __init__(self, graph: Graph) -> None:
        self.entities = len(graph.entities)
        self.rates = {side: _rates(graph, side) for side in SIDES}  # (relations, BINS) each
        self._counted = {side: _by_relation(graph, side) for side in SIDES}

    def __call__(self, side: Side, relation: NDArray[np.integer], answers: Longs) -> Doubles:
        """λ of questions that have so many answers.  # (questions,)"""
        found: Doubles = self.rates[side][relation, _bins(answers)]
        return found

    def of_candidates(self, side: Side, relation: int) -> Doubles:
        """λ of the question that every entity, as an answer on this side, gives back: (?, R, t) of a tail t, say: one
        that lacks no head is no new tail.  # (entities,)"""
        back: Side = "head" if side == "tail" else "tail"
        entity, answers, offsets = self._counted[back]
        rates = self.rates[back][relation]
        found = np.full(self.entities, rates[0])
        own = slice(offsets[relation], offsets[relation + 1])
        found[entity[own]] = rates[_bins(answers[own])]
        return found


def _by_relation(graph: Graph, side: Side) -> tuple[Longs, Longs, Longs]:
    """The questions that have answers, by relation: given entity, number of answers, where each relation begins."""
    known, relations = graph.known[side], len(graph.relations)
    given, relation = np.divmod(known.keys, relations)
    order = np.argsort(relation, kind="stable")
    offsets = np.searchsorted(relation[order], np.arange(relations + 1))
    return given[order], known.lists.lengths[order], offsets


def _rates(graph: Graph, side: Side) -> Doubles:
    known, relations = graph.known[side], len(graph.relations)
    relation, answers = known.keys % relations, known.lists.lengths
    questions, facts = np.zeros((relations, BINS)), np.zeros((relations, BINS))
    np.add.at(questions, (relation, _bins(answers)), 1)
    np.add.at(facts, (relation, _bins(answers - 1)), answers)
    questions[:, 0] = len(graph.entities) - questions.sum(1)  # entities that the relation is not asked of yet
    overall = facts.sum(0) / np.maximum(questions.sum(0), 1)  # (BINS,)
    answered = questions[:, 1:] @ overall[1:]
    factor = (facts[:, 1:].sum(1) + 1) / (answered + 1)  # of a relation against all
    factor = np.stack([np.ones(relations), *[factor] * (BINS - 1)], 1)
    rates: Doubles = (facts + SHRINK * overall * factor) / (questions + SHRINK)
    return rates


def _bins(answers: Longs) -> Longs:
    """0 for none, 1 for one, 2 for two and three, ..."""
    return np.frexp(answers.astype(np.float64))[1].astype(np.int64)
