"""All questions of a graph against all entities, by blocks of products: the new answers that are worth most.

Of a block of scores the known answers are struck out and the rest is summed, once. Only questions whose best new
answer passes the bar, the least of the best so far, are looked at more closely: first a few answers of each, then
twice as many of those whose last one still passes, since worth rises with the score. Memory is that of a block, and
of the links that are wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import torch

from relwalk.discovery.best import Best, Doubles, Links
from relwalk.discovery.judged import Judge, JudgedBlock, as_array, as_tensor, judged_block
from relwalk.discovery.questions import SideQuestions
from relwalk.evaluation.scores import Scores
from relwalk.graph.answers import SIDES, Side
from relwalk.graph.graph import Graph
from relwalk.graph.lists import Ints, Lists, Longs
from relwalk.models.base import Scorer
from relwalk.models.keys import KeyCache

BLOCK = 1 << 22  # scores held at a time: 16 MB, and as many again to work with
CHUNK = 1 << 13  # questions turned into vectors at a time
FIRST = 4  # answers of a question that are looked at before it is known whether more can count


class Sweep:
    """Asks questions about a model and its graph, a block at a time.

    `scores` is what scores the questions of each side in the model's place, where this process has a part of it.
    """

    def __init__(
        self,
        model: Scorer,
        graph: Graph,
        judge: Judge,
        keys: KeyCache,
        block: int | None = None,
        scores: Mapping[Side, Scores] | None = None,
    ) -> None:
        self.model, self.graph, self.judge = model, graph, judge
        self.scores = scores or {side: Scores(model, side, keys) for side in SIDES}
        self.together = self.scores["tail"].together
        self.questions_at_a_time = min(CHUNK, max(1, (block or BLOCK) // model.entities))
        self.space = torch.empty(0, device=model.device)

    @torch.inference_mode()
    def offer(self, asked: SideQuestions, best: Best, done: Callable[[int], None]) -> None:
        """Offer every new answer to the questions."""
        for _, block in self.blocks(asked):
            offer_block(block, best)
            done(len(block.given))

    @torch.inference_mode()
    def worth(self, side: Side, links: Links, done: Callable[[int], None]) -> Doubles:
        """What links are worth to the questions of one side.  # (links,)"""
        given, answer = (links.head, links.tail) if side == "tail" else (links.tail, links.head)
        found = np.zeros(len(links))
        for block, rows, own in self.asking(side, given, links.relation):
            found[own] = block.worth(rows, block.logits(rows, answer[own]))
            done(len(own))
        return found

    @torch.inference_mode()
    def ranks(self, links: Links) -> Ints:
        """The place of each link among the new answers to the question that proposed it, over all processes."""
        found = np.zeros(len(links), np.int32)
        for side, mine in (("tail", links.by_tail), ("head", ~links.by_tail)):
            places = np.flatnonzero(mine)
            some = links.take(places)
            given, answer = (some.head, some.tail) if side == "tail" else (some.tail, some.head)
            for block, rows, own in self.asking(side, given, some.relation):  # type: ignore[arg-type]
                bars = torch.from_numpy(block.logits(rows, answer[own])).to(block.table)
                above = [(block.table[:, row] > bar).sum() for row, bar in zip(rows.tolist(), bars, strict=True)]
                found[places[own]] = 1 + self.together.sum(torch.stack(above)).cpu().numpy()
        return found

    def asking(self, side: Side, given: Ints, relation: Ints) -> Iterator[tuple[JudgedBlock, Longs, Longs]]:
        """Blocks of the distinct questions among many; for each of those asked there, its row in the block, and its
        place among the many."""
        relations, entities = len(self.graph.relations), self.model.entities
        lists = Lists.group(relation, given, relations)
        asked = SideQuestions.from_lists(side, np.arange(relations), lists, entities)
        order = np.lexsort((given, relation))  # as the questions stand
        key = relation[order].astype(np.int64) * entities + given[order]
        ends = np.flatnonzero(np.diff(key, prepend=-1, append=-1))  # where those of each question begin
        for first, block in self.blocks(asked):
            last = first + len(block.given)
            rows = np.repeat(np.arange(last - first), np.diff(ends[first : last + 1]))
            yield block, rows, order[ends[first] : ends[last]]

    def blocks(self, asked: SideQuestions) -> Iterator[tuple[int, JudgedBlock]]:
        """The number of a block's first question, and the block, valid until the next."""
        side, size = asked.side, self.questions_at_a_time
        scores = self.scores[side]
        for begin, end in asked.groups(by_relation=scores.by_relation):
            keys = scores.keys(scores.own, int(asked.between(begin, begin + 1)[1][0]))
            for first in range(begin, end, CHUNK):
                given, relation = asked.between(first, min(first + CHUNK, end))
                ready = scores.ask(given, relation, scores.own, keys)
                for start in range(0, len(given), size):
                    rows = np.arange(start, min(start + size, len(given)))
                    table = scores.score(ready, rows)  # (entities, questions)
                    table = table if ready.product is not None else table.clone()
                    if self.space.numel() < table.numel():
                        self.space = torch.empty(table.numel(), device=table.device)
                    work = self.space[: table.numel()].view(table.shape)
                    yield (
                        first + start,
                        judged_block(self.judge, self.graph, scores, given[rows], relation[rows], table, work),
                    )


def offer_block(block: JudgedBlock, best: Best) -> None:
    """Offer the new answers of a block that can be among the best."""
    passing = np.flatnonzero(block.best > -np.inf)
    passing = passing[block.worth(passing, block.best[passing]) >= best.bar]
    entities = len(block.table)
    take, before = min(FIRST, entities), np.full((1, 1), np.inf)
    while len(passing):
        columns = block.table[:, as_tensor(passing, block.table)]
        values, answers = columns.T.contiguous().topk(take)  # (questions, take)
        logits, ids = as_array(values), answers.cpu().numpy().astype(np.int32)
        ids = ids if block.scores.own is None else block.scores.own[ids].astype(np.int32)
        row, place = np.nonzero((logits <= before) & (logits > -np.inf))  # those above were offered before
        worth = block.worth(passing[row], logits[row, place])
        counts = worth >= best.bar
        row, place, worth = row[counts], place[counts], worth[counts]
        more = np.zeros(len(passing), np.bool_)
        more[row[place == take - 1]] = take < entities
        ranks = _ranks(logits)[row, place]
        best.offer(block.links(passing[row], ids[row, place], logits[row, place], worth, ranks))
        passing, before, take = passing[more], logits[more, -1:], min(2 * take, entities)


def _ranks(logits: Doubles) -> Ints:
    """1 + how many of the row are greater, of rows in descending order."""
    new = np.ones(logits.shape, np.bool_)
    new[:, 1:] = logits[:, 1:] < logits[:, :-1]
    places = np.where(new, np.arange(logits.shape[1]), 0)
    ranks: Ints = np.maximum.accumulate(places, axis=1).astype(np.int32) + 1
    return ranks
