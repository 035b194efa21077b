"""The candidates of questions with their scores: all entities, or those of a short list and a sample of the others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from relwalk.graph.answers import Side
from relwalk.graph.lists import Ints, Lists, Longs
from relwalk.key_index import KeyIndex, indexable
from relwalk.models.base import ProductScorer
from relwalk.runs.run import Run

SAMPLE = 1 << 12  # entities that stand for all that are on no short list
AT_A_TIME = 1 << 21  # numbers of keys looked up together: 8 MB


@dataclass(frozen=True, eq=False)
class Candidates:
    """A column of `scores` is entity `ids` of its row, and stands for as many as `times` says, as far as sums go.

    Without `ids` column i is entity i, and stands for itself. `known` are the columns that the graph has as answers.
    """

    scores: Tensor  # (questions, columns), in memory of its own
    known: Lists
    ids: Tensor | None = None  # (questions, columns)
    times: Tensor | None = None  # (questions, columns)

    def leave_out(self, rows: Longs, entities: Longs) -> None:
        """One entity of each of some rows can be no answer."""
        row, entity = (torch.from_numpy(x.astype(np.int64)).to(self.scores.device) for x in (rows, entities))
        if self.ids is None:
            self.scores[row, entity] = -torch.inf
        else:
            self.scores[row] = self.scores[row].masked_fill(self.ids[row] == entity.unsqueeze(1), -torch.inf)

    def entities(self, row: int, places: Longs) -> Longs:
        """The entities of columns."""
        return places if self.ids is None else self.ids[row].cpu().numpy()[places]


def shortlisted(
    run: Run, index: KeyIndex, side: Side, given: Tensor, relations: Tensor, known: Lists, k: int
) -> Candidates | None:
    """The best by the index, the known answers, and a sample of all others that stands for them in sums.

    Scores are the model's own. None where short lists would have to be longer than those of the index.
    """
    need = k + int(known.lengths.max(initial=0)) + 1  # the known ones and the given one may all be before the new ones
    if need > index.short or index.short + SAMPLE >= run.model.entities:
        return None
    model = indexable(run.model)
    queries = model.queries(side, given, relations)
    found = index.search(side, queries, index.short)
    sample, their_keys = _sample(index, model, side)
    listed = torch.full((len(given), int(known.lengths.max(initial=0))), -1, device=found.device)
    row, place = known.row_of_each_value(), np.arange(len(known.values)) - np.repeat(known.offsets[:-1], known.lengths)
    listed[torch.from_numpy(row), torch.from_numpy(place)] = torch.from_numpy(known.values.astype(np.int64))
    own = torch.cat([found, listed], 1)
    ids = torch.cat([own, sample.expand(len(given), -1)], 1)
    scores = torch.cat([_products(model, side, queries, own), queries @ their_keys.T], 1)
    offsets = model.offsets(side, given, relations)
    scores = scores if offsets is None else scores.add_(offsets.unsqueeze(1))
    return _distinct(ids, scores, own.shape[1], model.entities, known)


def _distinct(ids: Tensor, scores: Tensor, own: int, entities: int, known: Lists) -> Candidates:
    """Each entity once in its row, at the first of its columns; those from `own` on are the sample."""
    ascending, order = torch.sort(ids, dim=1, stable=True)
    again = torch.zeros_like(ids, dtype=torch.bool)
    again[:, 1:] = ascending[:, 1:] == ascending[:, :-1]
    out = torch.empty_like(again).scatter_(1, order, again | (ascending < 0))
    scores.masked_fill_(out, -torch.inf)
    there = (~out).to(scores)
    listed, sampled = there[:, :own].sum(1, keepdim=True), there[:, own:].sum(1, keepdim=True)
    there[:, own:] *= (entities - listed) / sampled.clamp(min=1)
    sorted_ids, columns = ascending.cpu().numpy(), order.cpu().numpy()
    places = [columns[row, np.searchsorted(sorted_ids[row], known[row])] for row in range(len(known))]
    values: Ints = np.concatenate([*places, np.zeros(0, np.int64)]).astype(np.int32)
    return Candidates(scores, Lists(known.offsets, values), ids, there)


def _products(model: ProductScorer, side: Side, queries: Tensor, ids: Tensor) -> Tensor:
    """Each query times the keys of its own entities, some queries at a time.  # (queries, ids)"""
    scores = queries.new_empty(ids.shape)
    step = max(1, AT_A_TIME // (ids.shape[1] * queries.shape[1]))
    for start in range(0, len(ids), step):
        some = ids[start : start + step]
        keys = model.keys(side, some.clamp(min=0).flatten()).view(*some.shape, -1)
        scores[start : start + step] = torch.bmm(keys, queries[start : start + step].unsqueeze(2)).squeeze(2)
    return scores


def _sample(index: KeyIndex, model: ProductScorer, side: Side) -> tuple[Tensor, Tensor]:
    """The same entities for every question, and their keys."""
    if side not in index.made:
        drawn = torch.randint(model.entities, (SAMPLE,), generator=torch.Generator().manual_seed(0))
        ids = torch.unique(drawn).to(model.device)
        index.made[side] = ids, model.keys(side, ids)
    found: tuple[Tensor, Tensor] = index.made[side]
    return found
