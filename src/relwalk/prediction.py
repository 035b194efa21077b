"""Names in, names out: the most probable tails, heads or relations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice, pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from relwalk.checks import check_whole, shown
from relwalk.display import Shown, caption, html_table
from relwalk.errors import RelWalkError
from relwalk.graph.answers import KnownAnswers, Side
from relwalk.graph.graph import Graph
from relwalk.graph.lists import Lists, Longs
from relwalk.models.base import as_product
from relwalk.runs.run import Run

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class Answer:
    """One candidate: its score, its conditional probability, and whether the graph already says so."""

    name: str
    label: str
    score: float
    probability: float
    known: bool


@dataclass(frozen=True, repr=False)
class Answers(Shown):
    """The best answers to one question, best first; prints itself."""

    head: str | None
    relation: str | None
    tail: str | None
    answers: tuple[Answer, ...]

    def __iter__(self) -> Iterator[Answer]:
        return iter(self.answers)

    def __len__(self) -> int:
        return len(self.answers)

    def __getitem__(self, index: int) -> Answer:
        return self.answers[index]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"answers": [asdict(answer) for answer in self.answers]}

    @property
    def question(self) -> str:
        return " ".join(part if part is not None else "?" for part in (self.head, self.relation, self.tail))

    def summary(self) -> str:
        return f"{self.question}: {', '.join(f'{a.label} {a.probability:.1%}' for a in self.answers) or 'none'}"

    def _repr_html_(self) -> str:
        rows = [
            (a.label, f"{a.probability:.2%}", f"{a.score:.2f}", "known" if a.known else "new") for a in self.answers
        ]
        return caption(self.question) + html_table(("answer", "p", "score", ""), rows)

    def __str__(self) -> str:
        width = max([12, *(len(answer.label) for answer in self.answers)])
        rows = [
            f"  {answer.label:{width}}  {answer.probability:7.2%}  {answer.score:9.2f}"
            f"  {'known' if answer.known else 'new'}"
            for answer in self.answers
        ]
        return "\n".join([f"{self.question}\n  {'answer':{width}}  {'p':>7}  {'score':>9}", *rows])


Query = tuple[str | None, str | None, str | None]  # head, relation, tail, of which one is None: what is asked
WINDOW = 1 << 14  # queries read ahead, so that those of a kind and relation are answered together
SCORES = 1 << 25  # numbers held at a time by a batch: 128 MB


def predict(
    run: Run,
    *,
    head: str | None = None,
    relation: str | None = None,
    tail: str | None = None,
    k: int = 10,
    only_new: bool = False,
) -> Answers:
    """The k most probable answers to (head, relation, ?), (?, relation, tail) or (head, ?, tail).

    Probabilities are p(t | h, R), p(h | R, t) or p(R | h, t). An entity is not offered as the answer to a question
    about itself, and takes no share of the probability, unless the graph shows the relation linking some entity to
    itself. `only_new` leaves out what the graph already says. Equal scores are listed in the order of the graph.
    """
    return next(predict_many(run, [(head, relation, tail)], k=k, only_new=only_new))


def predict_many(
    run: Run, queries: Iterable[Query], *, k: int = 10, only_new: bool = False, batch: int | None = None
) -> Iterator[Answers]:
    """What `predict` answers to each of many queries, in their order, by products of a batch of queries at a time.

    A query is (head, relation, tail) with None for what is asked. Scores agree with those of `predict` but for the
    rounding of float32. `batch` is how many to score at a time; left out, as many as 128 MB of scores allow.
    """
    if not isinstance(run, Run):
        raise RelWalkError(f"run is {shown(run)}; expected a Run. Train one, or read one: relwalk.load_run(folder)")
    if not isinstance(queries, Iterable) or isinstance(queries, str | bytes):
        raise RelWalkError(f"queries is {shown(queries)}; expected many (head, relation, tail), one of each three None")
    size = check_whole("batch", batch) if batch is not None else None
    return _in_windows(run, iter(queries), check_whole("k", k), only_new, size)


def _in_windows(run: Run, queries: Iterator[Query], k: int, only_new: bool, batch: int | None) -> Iterator[Answers]:
    while window := list(islice(queries, WINDOW)):
        found: list[tuple[Answer, ...]] = [()] * len(window)
        ids = np.array([_ids(run.graph, query) for query in window])  # (queries, 3), -1 for what is asked
        for asked, numbers_each in _kinds(run).items():
            rows = np.flatnonzero(ids[:, asked] < 0)
            rows = rows[np.argsort(ids[rows, 1], kind="stable")]  # a model wants them by relation
            size = batch if batch is not None else max(1, min(1024, SCORES // numbers_each))
            for start in range(0, len(rows), size):
                part = rows[start : start + size]
                for row, answers in zip(part.tolist(), _answer(run, ids[part], asked, k, only_new), strict=True):
                    found[row] = answers
        for row, answers in enumerate(found):
            head, relation, tail = _labels(run.graph, ids[row].tolist())
            yield Answers(head, relation, tail, answers)


def _kinds(run: Run) -> dict[int, int]:
    """The places that can be asked for, and how many numbers a question about it makes."""
    return {0: run.model.entities, 1: run.model.relations * run.model.dim, 2: run.model.entities}


def _ids(graph: Graph, query: Query) -> tuple[int, int, int]:
    if not isinstance(query, Sequence) or len(query) != 3 or list(query).count(None) != 1:
        raise RelWalkError("give two of head, relation and tail: the third is predicted")
    for place, name in zip(("head", "relation", "tail"), query, strict=True):
        if name is not None and not isinstance(name, str):
            raise RelWalkError(f"{place} is {shown(name)}; expected a name or a label, as text")
    head, relation, tail = query
    return (
        graph.entities.id(head) if head is not None else -1,
        graph.relations.id(relation) if relation is not None else -1,
        graph.entities.id(tail) if tail is not None else -1,
    )


def _labels(graph: Graph, ids: list[int]) -> list[str | None]:
    names = (graph.entities, graph.relations, graph.entities)
    return [vocabulary.label(i) if i >= 0 else None for vocabulary, i in zip(names, ids, strict=True)]


@torch.inference_mode()
def _answer(run: Run, ids: Longs, asked: int, k: int, only_new: bool) -> Iterator[tuple[Answer, ...]]:
    """The answers to queries that all ask for the same place: 0 the head, 1 the relation, 2 the tail."""
    names = run.graph.relations if asked == 1 else run.graph.entities
    scores, known = _score(run, ids, asked), _known(run.graph, ids, asked)
    if asked != 1:
        given = ids[:, 2 - asked]
        own = np.flatnonzero(~run.graph.has_loops[ids[:, 1]])
        scores[_tensor(own, scores), _tensor(given[own], scores)] = -torch.inf
    log_z = _log_z(scores, run.model.scale)
    if only_new:
        scores[_tensor(known.row_of_each_value(), scores), _tensor(known.values, scores)] = -torch.inf
    for row, (best, values) in enumerate(_best(scores, k)):
        probabilities = np.exp(run.model.scale * values - log_z[row])
        is_known = np.isin(best, known[row])
        yield tuple(
            Answer(names.names[i], names.label(i), *rest)
            for i, *rest in zip(best.tolist(), values.tolist(), probabilities.tolist(), is_known.tolist(), strict=True)
        )


def _score(run: Run, ids: Longs, asked: int) -> Tensor:
    """The scores of every candidate, in memory of its own.  # (queries, candidates)"""
    model = run.model
    h, r, t = torch.from_numpy(ids).to(model.device).T
    if asked == 1:
        return model.score_relations(h, t).clone()
    side: Side = "tail" if asked == 2 else "head"
    given = h if asked == 2 else t
    if model.coded:
        return model.score_all(side, given, r)
    product = as_product(model)
    if product is None or not product.shares_keys(side):
        return model.score_candidates(side, given, r).clone()
    scores = product.queries(side, given, r) @ run.keys.for_side(side).T
    offsets = product.offsets(side, given, r)
    return scores if offsets is None else scores.add_(offsets.unsqueeze(1))


def _log_z(scores: Tensor, scale: float) -> Doubles:
    """log Σ exp(scale * score) of each row: exponentials in float32 of differences to the greatest, sums of them."""
    top = scores.amax(1, keepdim=True)
    if bool((top.isnan() | top.isposinf()).any()):
        raise RelWalkError("the model gives scores that are not numbers: it cannot predict. Train it again.")
    total = torch.sub(scores, top).mul_(scale).exp_().sum(1)
    return (scale * top.squeeze(1).double() + total.double().log()).cpu().numpy()


def _best(scores: Tensor, k: int) -> Iterator[tuple[Longs, Doubles]]:
    """Of each row the k greatest, greatest first and equal ones by id, with their scores; never -inf."""
    least = scores.topk(min(k, scores.shape[1])).values[:, -1:]
    rows, ids = (scores >= least).nonzero(as_tuple=True)  # also those level with the k-th, which topk chose among
    values = scores[rows, ids].double().cpu().numpy()
    row_of, id_of = rows.cpu().numpy(), ids.cpu().numpy()
    order = np.lexsort((id_of, -values, row_of))
    ends = np.searchsorted(row_of, np.arange(len(scores) + 1))
    for start, end in pairwise(ends.tolist()):
        own = order[start : min(end, start + k)]
        own = own[values[own] > -np.inf]
        yield id_of[own], values[own]


def _known(graph: Graph, ids: Longs, asked: int) -> Lists:
    """The answers that the graph already holds, of each query."""
    if asked != 1:
        return graph.known["tail" if asked == 2 else "head"].lookup(ids[:, 2 - asked], ids[:, 1])
    tails = graph.known["tail"]
    relations = [_relations_between(tails, h, t) for h, t in ids[:, [0, 2]].tolist()]
    offsets = np.cumsum([0, *map(len, relations)])
    return Lists(offsets, np.concatenate(relations).astype(np.int32))


def _relations_between(tails: KnownAnswers, h: int, t: int) -> Longs:
    """The questions (h, r, ?) for all r stand together: those that t answers are found without a look at the rest."""
    first, last = np.searchsorted(tails.keys, [h * tails.relations, (h + 1) * tails.relations])
    offsets = tails.lists.offsets[first : last + 1]
    places = offsets[0] + np.flatnonzero(tails.lists.values[offsets[0] : offsets[-1]] == t)
    rows = first + np.searchsorted(offsets, places, side="right") - 1
    relations: Longs = tails.keys[rows] % tails.relations
    return relations


def _tensor(array: NDArray[np.integer], like: Tensor) -> Tensor:
    return torch.from_numpy(array.astype(np.int64)).to(like.device)
