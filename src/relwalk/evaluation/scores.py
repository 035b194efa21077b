"""The scores of a block of questions, one column each, and how many of a column pass a bar."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from relwalk.errors import RelWalkError
from relwalk.graph.answers import Side
from relwalk.graph.lists import Ints, Longs
from relwalk.models.base import ProductScorer, Scorer, as_product
from relwalk.models.keys import KeyBlocks, KeyCache, longest_vector
from relwalk.together import ALONE, Together

TILE = 1 << 18  # flags written at a time: 1 MB, which the cache of a core holds until they are added up
HUGE = 1e38  # products whose terms stay below it cannot become infinite, nor not a number


Parts = tuple[Tensor, ...]  # of keys, side by side: (candidates, width) each


class Asked(NamedTuple):
    """Questions of one side against candidates, ready to be scored."""

    given: Tensor  # (questions,)
    relations: Tensor  # (questions,)
    candidates: Tensor | None  # None: all entities
    product: Product | DecodedProduct | None
    finite: bool  # no score can fail to be a number


class Product(NamedTuple):
    """Scores that are one product: keys times queries, plus a number per candidate."""

    keys: Tensor  # (candidates, width)
    queries: Tensor  # (questions, width)
    bias: Tensor  # (candidates, 1), or (1, 1)

    def parts(self, rows: Tensor) -> Iterator[Product]:
        """The products that together are the scores of some questions, one below the other: this one."""
        yield self._replace(queries=self.queries[rows])

    @staticmethod
    def from_parts(parts: Parts, queries: Tensor) -> Product:
        """A last coordinate that all queries share becomes the bias: a product that starts from one is a tenth faster
        than the same with one more coordinate, and a table that has all others is multiplied as it is."""
        *others, end = parts
        last = queries[:1, -1:]  # (1, 1)
        if not len(queries) or queries.shape[1] == 1 or not bool((queries[:, -1:] == last).all()):
            return Product(_joined(parts), queries, end.new_zeros(1, 1))
        rest = (*others, end[:, :-1]) if end.shape[1] > 1 else others
        return Product(_joined(rest), queries[:, :-1], end[:, -1:] * last)


class DecodedProduct(NamedTuple):
    """The same of keys that are made a block at a time, from codes or from a file."""

    keys: KeyBlocks
    queries: Tensor  # (questions, width)

    def parts(self, rows: Tensor) -> Iterator[Product]:
        queries = self.queries[rows]
        return (Product.from_parts((keys,), queries) for keys in self.keys)


def _joined(parts: Sequence[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat([*parts], 1)


class Buffers:
    """Memory for the scores of a block and for what they are compared by, used again by every block."""

    def __init__(self, model: Scorer) -> None:
        device = next(model.parameters(), torch.zeros(0)).device
        self.scores = torch.empty(0, device=device)
        self.flags = torch.empty(2 * TILE, device=device)
        self.ones = torch.ones(TILE, device=device)

    def table(self, height: int, width: int) -> Tensor:
        """Room for a table of scores, over what was there before.  # (height, width)"""
        if self.scores.numel() < height * width:
            self.scores = self.scores.new_empty(height * width)
        return self.scores[: height * width].view(height, width)


class Scores:
    """Scores questions of one side.

    A product model's questions become vectors many at a time and are then multiplied a block at a time; what moves
    all scores of a question alike is left out. Any other model is asked for its scores a block at a time.

    Several processes may rank `together`, each with the keys of its `own` entities.
    """

    together: Together = ALONE
    own: Ints | None = None  # ascending; None: all

    def __init__(
        self, model: Scorer, side: Side, every: KeyCache | None = None, buffers: Buffers | None = None
    ) -> None:
        """`every` are the keys of all entities; both sides may share them, and the buffers, if they take turns."""
        self.model, self.side, self.every = model, side, every or KeyCache(model)
        self.product = as_product(model)
        self.by_relation = self.product is not None and not self.product.shares_keys(side)
        self.buffers = buffers or Buffers(model)
        self.device = self.buffers.ones.device

    def keys(self, candidates: Ints | None, relation: int | None) -> Parts | KeyBlocks | None:
        """The keys of candidates, of all entities for None; of one relation, if the model's depend on it."""
        if self.product is None:
            return None
        if candidates is None and not self.by_relation and not self.product.by_blocks:
            return self.every.parts(self.side)
        entities = None if candidates is None else self._tensor(candidates)
        one = torch.tensor(relation, device=self.device) if self.by_relation else None
        if self.product.by_blocks:
            return KeyBlocks(self.product, self.side, entities, one)
        return (self.product.keys(self.side, entities, one),)

    def ask(self, given: Ints, relation: Ints, candidates: Ints | None, keys: Parts | KeyBlocks | None) -> Asked:
        """Questions against candidates, whose `keys` were made before: many questions share them."""
        ids, relations = self._tensor(given), self._tensor(relation)
        entities = None if candidates is None else self._tensor(candidates)
        if self.product is None or keys is None:
            return Asked(ids, relations, entities, None, False)
        queries = self.queries(self.product, ids, relations)
        product: Product | DecodedProduct
        if isinstance(keys, KeyBlocks):
            product, longest = DecodedProduct(keys, queries), keys.longest
        else:
            product = Product.from_parts(keys, queries)
            longest = longest_vector(*keys) if len(keys[0]) else queries.new_zeros(())  # one of several may have none
        finite = bool(longest_vector(queries) * longest < HUGE)  # |q·k| <= |q||k|, and so is every sum on the way
        return Asked(ids, relations, entities, product, finite)

    def queries(self, model: ProductScorer, given: Tensor, relations: Tensor) -> Tensor:
        """A vector for each question.  # (questions, width)"""
        return model.queries(self.side, given, relations)

    def score(self, asked: Asked, rows: Longs) -> Tensor:
        """The scores of some of the questions, valid until the next call.  # (candidates, questions)"""
        picked = self._tensor(rows)
        if asked.product is not None:
            # Keys times queries: nearly twice as fast, for thousands by a hundred, as the other way round.
            scores, start = self.buffers.table(len(asked.product.keys), len(rows)), 0
            for keys, queries, bias in asked.product.parts(picked):
                torch.addmm(bias, keys, queries.T, out=scores[start : start + len(keys)])
                start += len(keys)
        else:
            given, relations = asked.given[picked], asked.relations[picked]
            scores = self.model.score_all(self.side, given, relations, asked.candidates).T
        if not asked.finite and scores.numel() and bool(scores.amax().isnan()):
            raise RelWalkError("the model gives scores that are not numbers: it cannot be ranked. Train it again.")
        return scores

    def places(self, entities: NDArray[np.integer]) -> Longs:
        """The row of each entity in a table of scores of all that are here; beyond the last for one that is not."""
        return entities.astype(np.int64)

    def whole(self, given: Tensor, relations: Tensor) -> Tensor:
        """The scores of all entities for a few questions.  # (questions, entities)"""
        return self.model.score_all(self.side, given, relations)

    def pick(self, scores: Tensor, candidate: Longs, question: Longs) -> Tensor:
        """Single scores by their places.  # (places,)"""
        return scores[self._tensor(candidate), self._tensor(question)]

    def pick_true(self, scores: Tensor, candidate: Longs, question: Longs) -> Tensor:
        """The same of true answers, also of those whose keys another process has: places that are not here.

        # (places,)
        """
        if self.together is ALONE:
            return self.pick(scores, candidate, question)
        here = candidate < len(scores)
        true = scores.new_full((len(candidate),), -torch.inf)
        true[torch.from_numpy(here)] = self.pick(scores, candidate[here], question[here])
        return self.together.largest(true)

    def count(self, scores: Tensor, bars: Tensor, rounds: Longs) -> tuple[Longs, Longs]:
        """How many scores of a column are above its bar, and at least it.

        Round j has bars for the first `rounds[j]` columns; they stand one round after the other.
        """
        counts = torch.zeros(2, len(bars), dtype=torch.float64, device=bars.device)
        start = 0
        for width in rounds.tolist():
            bar, found = bars[start : start + width], counts[:, start : start + width]
            for tile in torch.split(scores[:, :width], max(1, TILE // width)):
                flags = self.buffers.flags[: 2 * tile.numel()].view(len(tile), 2, width)
                torch.gt(tile, bar, out=flags[:, 0])
                torch.ge(tile, bar, out=flags[:, 1])
                # A product with ones adds up faster than a sum, and exactly: a tile has few rows.
                found += (self.buffers.ones[: len(tile)] @ flags.view(len(tile), 2 * width)).view(2, width)
            start += width
        above, at_least = counts.cpu().numpy().astype(np.int64)
        return above, at_least

    def _tensor(self, array: NDArray[np.integer]) -> Tensor:
        return torch.from_numpy(array.astype(np.int64)).to(self.device)
