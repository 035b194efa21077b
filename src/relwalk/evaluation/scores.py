"""The scores of a block of questions, one column each, and how many of a column pass a bar."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from relwalk.errors import RelWalkError
from relwalk.graph.answers import Side
from relwalk.graph.lists import Ints, Longs
from relwalk.models.base import ProductScorer, Queries, Scorer

TILE = 1 << 18  # flags written at a time: 1 MB, which the cache of a core holds until they are added up
HUGE = 1e38  # products whose terms stay below it cannot become infinite, nor not a number


class Scores:
    """Scores questions of one side against candidates, in buffers that are used again.

    A product model's questions become vectors many at a time and are then multiplied a block at a time; what moves
    all scores of a question alike is left out. Any other model is asked for its scores a block at a time.
    """

    def __init__(self, model: Scorer, side: Side) -> None:
        self.model, self.side = model, side
        self.device = next(model.parameters(), torch.zeros(0)).device
        self.space = torch.empty(0, device=self.device)
        self.flags = torch.empty(2 * TILE, device=self.device)
        self.ones = torch.ones(TILE, device=self.device)
        self.by_product = isinstance(model, ProductScorer) and not self._queries(*self._no_question()).own_bias

    def against(self, entities: Ints | None) -> None:
        """From now on these are the candidates; None: all entities."""
        self.candidates = None if entities is None else self._tensor(entities)
        if self.by_product:
            table = self.model.entity if self.candidates is None else self.model.vectors(self.candidates)
            bias = self._queries(*self._no_question()).bias
            self.table, self.bias = table, bias(table) if bias is not None else table.new_zeros(len(table))

    def ask(self, given: Ints, relation: Ints) -> None:
        """From now on these are the questions."""
        self.asked = self._tensor(given), self._tensor(relation)
        if self.by_product:
            self.vectors = self._queries(*self.asked).vectors
            longest = _longest(self.vectors) * _longest(self.table) + self.bias.abs().amax()
            self.finite = bool(longest < HUGE)  # |q·e| <= |q||e|, and so is every sum on the way to it

    def of(self, rows: Longs) -> Tensor:
        """The scores of some of the questions, valid until the next call.  # (candidates, questions)"""
        picked = self._tensor(rows)
        if self.by_product:
            # Entities times questions: nearly twice as fast, for thousands by a hundred, as the other way round.
            size = len(self.table) * len(rows)
            if self.space.numel() < size:
                self.space = self.table.new_empty(size)
            scores = self.space[:size].view(len(self.table), len(rows))
            torch.addmm(self.bias.unsqueeze(1), self.table, self.vectors[picked].T, out=scores)
        else:
            known, relations = (ids[picked] for ids in self.asked)
            if self.side == "tail":
                scores = self.model.score_tails(known, relations, self.candidates).T
            else:
                scores = self.model.score_heads(relations, known, self.candidates).T
        if not (self.by_product and self.finite) and bool(scores.amax().isnan()):
            raise RelWalkError("the model gives scores that are not numbers: it cannot be ranked. Train it again.")
        return scores

    def at(self, scores: Tensor, candidate: Longs, question: Longs) -> Tensor:
        return scores[self._tensor(candidate), self._tensor(question)]

    def count(self, scores: Tensor, bars: Tensor, rounds: Longs) -> tuple[Longs, Longs]:
        """How many scores of a column are above its bar, and at least it.

        Round j has bars for the first `rounds[j]` columns; they stand one round after the other.
        """
        counts = torch.zeros(2, len(bars), dtype=torch.float64, device=bars.device)
        start = 0
        for width in rounds.tolist():
            bar, found = bars[start : start + width], counts[:, start : start + width]
            for tile in torch.split(scores[:, :width], max(1, TILE // width)):
                flags = self.flags[: 2 * tile.numel()].view(len(tile), 2, width)
                torch.gt(tile, bar, out=flags[:, 0])
                torch.ge(tile, bar, out=flags[:, 1])
                # A product with ones adds up faster than a sum, and exactly: a tile has few rows.
                found += (self.ones[: len(tile)] @ flags.view(len(tile), 2 * width)).view(2, width)
            start += width
        above, at_least = counts.cpu().numpy().astype(np.int64)
        return above, at_least

    def _queries(self, given: Tensor, relation: Tensor) -> Queries:
        assert isinstance(self.model, ProductScorer)
        if self.side == "tail":
            return self.model.tail_queries(given, relation)
        return self.model.head_queries(relation, given)

    def _no_question(self) -> tuple[Tensor, Tensor]:
        return self._tensor(np.zeros(0, np.int64)), self._tensor(np.zeros(0, np.int64))

    def _tensor(self, array: NDArray[np.integer]) -> Tensor:
        return torch.from_numpy(array.astype(np.int64)).to(self.device)


def _longest(vectors: Tensor) -> Tensor:
    longest: Tensor = torch.linalg.vector_norm(vectors, dim=1).amax()
    return longest
