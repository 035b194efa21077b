"""Where the true answer stands among all candidates: filtered ranking by blocks of matrix products.

For every query the scores of all candidates are compared with that of the true answer, and the ones above and
level with it are counted. Known answers are then taken off that count by looking up their scores: no mask of
queries x entities is ever made, and memory does not grow with either.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from relwalk.errors import GraphError, RelWalkError, choose
from relwalk.evaluation.result import Protocol, RankingResult, SideRanks
from relwalk.graph.answers import SIDES, Side
from relwalk.graph.graph import Graph, Split
from relwalk.graph.lists import Ints, Lists, Longs, distinct
from relwalk.models.base import ProductScorer, Queries, Scorer

CandidateRule = Literal["all", "argument", "argument-train"]
BLOCK = 1 << 23  # scores held at a time: 32 MB, about what a cache holds


def rank(
    model: Scorer,
    graph: Graph,
    split: Split = "test",
    *,
    filtered: bool = True,
    candidates: CandidateRule = "all",
    triples: Ints | None = None,
    block: int = BLOCK,
) -> RankingResult:
    """Rank the true head and the true tail of every triple of a split.

    `candidates`: "all" entities, those of the relation's "argument" in train, valid and test (the paper's rule,
    which lets the test set into the candidates), or the same from train alone ("argument-train"). A true answer
    that the list does not hold competes with it all the same. `filtered` leaves out the other known answers.
    `triples` are the ones of the split to rank, when not all.
    """
    triples = graph.split(split) if triples is None else triples
    if len(triples) == 0:
        raise GraphError(f"graph {graph.name!r} has no {split} triples to rank. Give it a {split} split.")
    lists = choose("candidate rule", candidates, _candidate_rules(graph))
    ranks = {side: _rank_side(model, graph, triples, side, filtered, lists, block) for side in SIDES}
    protocol = Protocol(split, filtered, candidates, shipped_lists=graph.type_lists is not None)
    return RankingResult(graph, triples, protocol, ranks)


def _candidate_rules(graph: Graph) -> dict[str, Mapping[Side, Lists] | None]:
    return {"all": None, "argument": graph.argument_lists, "argument-train": graph.argument_lists_of_train}


class _Block(NamedTuple):
    """Queries that share their candidates: rows of the triples, and the columns they are scored against."""

    rows: Longs
    columns: Ints | None  # ascending entity ids; None: all entities
    uninvited: Ints  # columns (places) that stand there only as somebody's true answer


def _rank_side(
    model: Scorer,
    graph: Graph,
    triples: Ints,
    side: Side,
    filtered: bool,
    lists: Mapping[Side, Lists] | None,
    block: int,
) -> SideRanks:
    given, truth = (triples[:, 0], triples[:, 2]) if side == "tail" else (triples[:, 2], triples[:, 0])
    relation = triples[:, 1]
    counts = np.zeros((3, len(triples)), np.int64)  # above, level, candidates
    counter = _Counter(model, side)
    with torch.inference_mode():
        for part in _blocks(relation, truth, lists[side] if lists else None, len(graph.entities), block):
            rows = part.rows
            known = graph.known[side].to(given[rows], relation[rows]) if filtered else None
            width = len(graph.entities) if part.columns is None else len(part.columns)
            left_out = _left_out(part, known, truth[rows], width)
            counts[:, rows] = counter.count(
                given[rows], relation[rows], _places(part.columns, truth[rows]), part, left_out
            )
    above, level, candidates = counts
    return SideRanks(optimistic=1 + above, pessimistic=1 + above + level, candidates=candidates)


def _blocks(relation: Ints, truth: Ints, lists: Lists | None, entities: int, block: int) -> Iterator[_Block]:
    """Queries by relation (a model wants them so), in blocks of at most `block` scores."""
    order = np.argsort(relation, kind="stable")
    nobody = np.zeros(0, np.int32)
    if lists is None:
        for rows in _cut(order, entities, block):
            yield _Block(rows, None, nobody)
        return
    for rows_of_relation in np.split(order, np.flatnonzero(np.diff(relation[order])) + 1):
        invited = lists[int(relation[rows_of_relation[0]])]
        columns = np.union1d(invited, truth[rows_of_relation]).astype(np.int32)
        uninvited = np.flatnonzero(~np.isin(columns, invited, assume_unique=True)).astype(np.int32)
        for rows in _cut(rows_of_relation, len(columns), block):
            yield _Block(rows, columns, uninvited)


def _cut(rows: Longs, width: int, block: int) -> list[Longs]:
    size = max(1, block // width)
    return [rows[start : start + size] for start in range(0, len(rows), size)]


class _LeftOut(NamedTuple):
    """(row, column) of every score that does not count, without repetition and never the truth's own."""

    rows: Longs
    columns: Longs


def _left_out(part: _Block, known: Lists | None, truth: Ints, width: int) -> _LeftOut:
    rows, entities = np.zeros(0, np.int64), np.zeros(0, np.int32)
    if known is not None:
        rows, entities = known.row_of_each_value(), known.values
        counts = entities != truth[rows]
        if part.columns is not None:
            counts &= np.isin(entities, part.columns)
        rows, entities = rows[counts], entities[counts]
    columns = _places(part.columns, entities)
    if len(part.uninvited) == 0:
        return _LeftOut(rows, columns)
    strangers = (np.arange(len(truth))[:, None] * width + part.uninvited).ravel()
    own = np.arange(len(truth)) * width + _places(part.columns, truth)
    packed = distinct(np.concatenate([rows * width + columns, strangers]))
    return _LeftOut(*np.divmod(packed[~np.isin(packed, own)], width))


def _places(columns: Ints | None, entities: Ints) -> Longs:
    return entities.astype(np.int64) if columns is None else np.searchsorted(columns, entities)


class _Counter:
    """Counts the candidates above and level with the truth, in buffers that are used again."""

    def __init__(self, model: Scorer, side: Side) -> None:
        self.model, self.side = model, side
        self.device = next(model.parameters(), torch.zeros(0)).device
        self.space = torch.empty(0, device=self.device)  # for a block of scores, and one of flags
        self.table: tuple[Ints | None, Tensor, Tensor] | None = None  # the last columns, their vectors, their bias

    def count(self, given: Ints, relation: Ints, truth: Longs, part: _Block, left_out: _LeftOut) -> NDArray[np.int64]:
        scores = self._scores(given, relation, part.columns)  # (queries, columns)
        if bool(torch.isnan(scores @ scores.new_ones(scores.shape[1])).any()):
            raise RelWalkError("the model gives scores that are not numbers: it cannot be ranked. Train it again.")
        true = scores.gather(1, self._tensor(truth).unsqueeze(1))  # the same arithmetic as its rivals'
        rivals = scores[self._tensor(left_out.rows), self._tensor(left_out.columns)]
        bar = true.squeeze(1)[self._tensor(left_out.rows)]
        gone_above = np.bincount(left_out.rows, (rivals > bar).cpu().numpy(), len(given))
        gone_level = np.bincount(left_out.rows, (rivals == bar).cpu().numpy(), len(given))
        gone = np.bincount(left_out.rows, minlength=len(given))
        above, at_least = self._how_many(scores, true)
        level = at_least - above - 1  # less the truth itself
        return np.stack([above - gone_above, level - gone_level, scores.shape[1] - gone]).astype(np.int64)

    def _scores(self, given: Ints, relation: Ints, columns: Ints | None) -> Tensor:
        known, relations = self._tensor(given), self._tensor(relation)
        if isinstance(self.model, ProductScorer):
            asked = (known, relations) if self.side == "tail" else (relations, known)
            queries = (self.model.tail_queries if self.side == "tail" else self.model.head_queries)(*asked)
            if not queries.own_bias:
                return self._products(queries, columns)
        candidates = None if columns is None else self._tensor(columns)
        if self.side == "tail":
            return self.model.score_tails(known, relations, candidates)
        return self.model.score_heads(relations, known, candidates)

    def _products(self, queries: Queries, columns: Ints | None) -> Tensor:
        """Scores but for what moves a whole row, by one product into the same memory every time."""
        if self.table is None or self.table[0] is not columns:
            vectors = self.model.entity if columns is None else self.model.vectors(self._tensor(columns))
            bias = queries.bias(vectors) if queries.bias is not None else vectors.new_zeros(len(vectors))
            self.table = (columns, vectors, bias)
        _, vectors, bias = self.table
        scores, _ = self._space(len(queries.vectors), len(vectors))
        return torch.addmm(bias, queries.vectors, vectors.T, out=scores)

    def _how_many(self, scores: Tensor, true: Tensor) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Scores above, and at least, the true one: a product with ones adds up faster than a sum of booleans."""
        ones = scores.new_ones(scores.shape[1])
        _, flags = self._space(*scores.shape)
        above = torch.gt(scores, true, out=flags) @ ones
        at_least = torch.ge(scores, true, out=flags) @ ones
        return above.double().cpu().numpy(), at_least.double().cpu().numpy()

    def _space(self, rows: int, columns: int) -> tuple[Tensor, Tensor]:
        size = rows * columns
        if self.space.numel() < 2 * size:
            self.space = torch.empty(2 * size, device=self.device)
        return self.space[:size].view(rows, columns), self.space[size : 2 * size].view(rows, columns)

    def _tensor(self, array: NDArray[np.integer]) -> Tensor:
        return torch.from_numpy(array.astype(np.int64)).to(self.device)
