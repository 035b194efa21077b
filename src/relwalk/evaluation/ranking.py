"""Where the true answer stands among all candidates: filtered ranking by blocks of matrix products.

A question that several triples ask, (h, r, ?) with many true tails, is scored once. Its candidates above and level
with each truth are counted by comparison; known answers are then taken off that count by their own scores, sorted:
no mask of questions x entities is ever made, and memory does not grow with their product.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from relwalk.errors import GraphError, choose
from relwalk.evaluation.questions import AskedBy, DistinctQuestions
from relwalk.evaluation.result import Protocol, RankingResult, SideRanks
from relwalk.evaluation.scores import Buffers, Scores
from relwalk.evaluation.trained import Trained, model_and_graph
from relwalk.graph.answers import SIDES, KnownAnswers, Side
from relwalk.graph.graph import Graph, Split
from relwalk.graph.lists import Ints, Lists, Longs
from relwalk.models.base import Scorer
from relwalk.models.keys import KeyCache
from relwalk.progress import Count, Progress, shown

Floats = NDArray[np.floating]
CandidateRule = Literal["all", "argument", "argument-train"]
BLOCK = 1 << 23  # scores held at a time: 32 MB, about what a cache holds
STEP = 64  # questions in a block, or a multiple: fewer waste the product, other widths the vector units
CHUNK = 1 << 14  # questions turned into vectors at a time


def rank(
    model: Scorer | Trained,
    graph: Graph | None = None,
    split: Split = "test",
    *,
    filtered: bool = True,
    candidates: CandidateRule = "all",
    triples: Ints | None = None,
    block: int | None = None,
    progress: Progress = None,
    scores: Mapping[Side, Scores] | None = None,
) -> RankingResult:
    """Rank the true head and the true tail of every triple of a split: `rank(run)` or `rank(model, graph)`.

    `candidates`: "all" entities, those of the relation's "argument" in train, valid and test (the paper's rule,
    which lets the test set into the candidates), or the same from train alone ("argument-train"). A true answer
    that the list does not hold competes with it all the same. `filtered` leaves out the other known answers.
    `triples` are the ones of the split to rank, when not all; `block` is how many scores to hold at a time, as many as
    suit a cache when left out. `progress`: see `relwalk.progress`. `scores` is what scores the questions of each side
    in the model's place, where this process has only a part of it.
    """
    model, graph = model_and_graph(model, graph, "rank")
    if scores is None:
        every, buffers = KeyCache(model), Buffers(model)
        scores = {side: Scores(model, side, every, buffers) for side in SIDES}
    triples = graph.split(split) if triples is None else triples
    if len(triples) == 0:
        raise GraphError(f"graph {graph.name!r} has no {split} triples to rank. Give it a {split} split.")
    lists = choose("candidate rule", candidates, _candidate_rules(graph))
    questions = {side: DistinctQuestions.from_triples(triples, side) for side in SIDES}
    with torch.inference_mode(), shown(progress) as on_progress:
        count = Count(on_progress, sum(map(len, questions.values())), f"ranking {split}")
        ranks = {
            side: _rank_side(
                scores[side],
                questions[side],
                len(graph.entities),
                graph.known[side] if filtered else None,
                lists[side] if lists else None,
                block,
                count,
            )
            for side in SIDES
        }
    protocol = Protocol(split, filtered, candidates, shipped_lists=graph.type_lists is not None)
    return RankingResult(graph, triples, protocol, ranks)


def _candidate_rules(graph: Graph) -> dict[str, Mapping[Side, Lists] | None]:
    return {"all": None, "argument": graph.argument_lists, "argument-train": graph.argument_lists_of_train}


class _Candidates(NamedTuple):
    """The columns that a group of questions is scored against: candidates, then true answers that are none of them.

    Several processes have their own columns each; what is not among them is at `width` or beyond.
    """

    entities: Ints | None  # None: all entities
    invited: int  # how many of them, the first ones in ascending order, compete
    width: int

    def places(self, entities: Ints) -> Longs:
        """The column of each entity; at `invited` or beyond for one that is not a candidate."""
        if self.entities is None:
            return entities.astype(np.int64)
        invited, strangers = np.split(self.entities, [self.invited])
        place = np.searchsorted(invited, entities)
        found = np.append(invited, -1)[place] == entities
        stranger = np.searchsorted(strangers, entities)
        known = np.append(strangers, -1)[stranger] == entities
        return np.where(found, place, np.where(known, self.invited + stranger, self.width))


def _rank_side(
    scores: Scores,
    questions: DistinctQuestions,
    entities: int,
    known: KnownAnswers | None,
    lists: Lists | None,
    block: int | None,
    count: Count,
) -> SideRanks:
    counts = np.empty((3, len(questions.triples)), np.int64)  # above, level, candidates
    for rows, candidates in _groups(questions, lists, entities, scores.own, by_relation=scores.by_relation):
        keys = scores.keys(candidates.entities, int(questions.relation[rows[0]]))
        size = _questions_at_a_time(entities if scores.own is not None else candidates.width, block)
        # Mixing relations costs a product nothing; any other model gets them one after the other.
        for chunk in _cut(rows, CHUNK if keys is not None else size):
            asked = scores.ask(questions.given[chunk], questions.relation[chunk], candidates.entities, keys)
            for part in _cut(questions.most_asked_first(chunk), size):
                asked_by = questions.asked_by(part)
                left_out = known.lookup(questions.given[part], questions.relation[part]) if known is not None else None
                table = scores.score(asked, part - chunk[0])  # (candidates, questions)
                counts[:, asked_by.triples] = _place(scores, table, asked_by, candidates, left_out)
                count.add(len(part))
    above, level, number = counts
    return SideRanks(optimistic=1 + above, pessimistic=1 + above + level, candidates=number)


def _groups(
    questions: DistinctQuestions, lists: Lists | None, entities: int, own: Ints | None, *, by_relation: bool
) -> Iterator[tuple[Longs, _Candidates]]:
    """Questions that share their candidates and keys: all of them, or those of one relation."""
    if lists is None:
        together = questions.by_relation() if by_relation else [np.arange(len(questions))]
        count = entities if own is None else len(own)
        yield from ((rows, _Candidates(own, count, count)) for rows in together)
        return
    for rows in questions.by_relation():
        invited = lists[int(questions.relation[rows[0]])]
        truths = questions.truth[questions.offsets[rows[0]] : questions.offsets[rows[-1] + 1]]
        strangers = np.setdiff1d(truths, invited)
        if own is not None:
            invited, strangers = np.intersect1d(invited, own), np.intersect1d(strangers, own)
        columns = np.concatenate([invited, strangers])
        yield rows, _Candidates(columns, len(invited), len(columns))


def _questions_at_a_time(width: int, block: int | None) -> int:
    fitting = max(STEP, BLOCK // width // STEP * STEP) if block is None else max(1, block // width)
    return min(CHUNK, fitting)


def _cut(rows: Longs, size: int) -> list[Longs]:
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def _place(scores: Scores, table: Tensor, asked: AskedBy, candidates: _Candidates, left_out: Lists | None) -> Longs:
    """For each true answer: how many candidates score above it, how many score the same, how many there are with it."""
    place = candidates.places(asked.truth)
    true = scores.pick_true(table, place, asked.row)  # from the same product as its rivals'
    above, at_least = scores.count(table[: candidates.invited], true, asked.rounds)
    if left_out is None:  # the truth does not compete with itself
        gone = (place < candidates.invited).astype(np.int64)
        gone_above, gone_at_least = np.zeros_like(gone), gone
    else:  # nor do the other known answers
        left_row, left_place = left_out.row_of_each_value(), candidates.places(left_out.values)
        competes = left_place < candidates.invited
        left_row, left_place = left_row[competes], left_place[competes]
        gone = np.bincount(left_row, minlength=table.shape[1])[asked.row]
        values = scores.pick(table, left_place, left_row)
        gone_above, gone_at_least = _count_sorted(_array(values), left_row, _array(true), asked.row)
    above, at_least = above - gone_above, at_least - gone_at_least
    rivals = np.stack([above, at_least - above, candidates.invited - gone])
    counts: Longs = _array(scores.together.sum(torch.from_numpy(rivals))).copy()
    counts[2] += 1
    return counts


def _count_sorted(values: Floats, rows: Longs, bars: Floats, bar_rows: Longs) -> tuple[Longs, Longs]:
    """How many of a row's values are above each bar, and at least it. The rows of the values ascend."""
    height = np.unique(np.concatenate([values, bars]), return_inverse=True)[1]
    levels = len(height)
    keys = np.sort(rows * levels + height[: len(values)])
    bar_keys = bar_rows * levels + height[len(values) :]
    end = np.searchsorted(rows, bar_rows, side="right")
    return end - np.searchsorted(keys, bar_keys, side="right"), end - np.searchsorted(keys, bar_keys, side="left")


def _array(values: Tensor) -> NDArray[Any]:
    return values.cpu().numpy()
