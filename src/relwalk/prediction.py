"""Names in, names out: the most probable tails, heads or relations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from relwalk.answers import ENTITIES, INDEXED, RELATIONS, Answer, Answers
from relwalk.candidates import Candidates, shortlisted
from relwalk.checks import check_number, check_whole, shown
from relwalk.errors import RelWalkError
from relwalk.evaluation.probabilities import Probabilities
from relwalk.exponentials import exp_
from relwalk.graph.answers import Side
from relwalk.graph.graph import Graph
from relwalk.graph.lists import Lists, Longs
from relwalk.greatest import greatest
from relwalk.key_index import KeyIndex
from relwalk.models.base import as_product
from relwalk.runs.run import Run

Doubles = NDArray[np.float64]
ANSWERS = 10  # unless said
Query = tuple[str | None, str | None, str | None]  # head, relation, tail, of which one is None: what is asked
WINDOW = 1 << 14  # queries read ahead, so that those of a kind and relation are answered together
SCORES = 1 << 25  # numbers held at a time by a batch: 128 MB
NO_COVERAGE = "coverage is for heads and tails; found a question for a relation. Say k (-k) instead."
CELLS = 1 << 18  # answers whose confidences are found together


@dataclass(frozen=True)
class _Wanted:
    """How to answer."""

    k: int
    only_new: bool
    coverage: float | None
    fitted: Probabilities | None  # None: the model's own p alone
    why_not: str | None  # why it is not fitted
    index: KeyIndex | None = None


class Asker:
    """Scores the queries of a run: one process does so for all of them. One of several has a part of the model, scores
    all queries together with the others, and answers some (`sharded.answers`)."""

    def __init__(self, run: Run) -> None:
        self.run = run

    def part(self, count: int) -> slice:
        """Which of so many queries this process answers."""
        return slice(0, count)

    def score(self, ids: Longs, asked: int) -> Tensor:
        """The scores of every candidate for the queries of its part, in memory of its own.  # (queries, candidates)"""
        return _score(self.run, ids, asked)

    def from_all(self, answers: list[tuple[Answer, ...]]) -> list[tuple[Answer, ...]]:
        """The answers of all processes, in the order of the queries."""
        return answers


def predict(
    run: Run,
    *,
    head: str | None = None,
    relation: str | None = None,
    tail: str | None = None,
    k: int | None = None,
    only_new: bool = False,
    coverage: float | None = None,
    raw: bool = False,
    asker: Asker | None = None,
) -> Answers:
    """The k (10) most probable answers to (head, relation, ?), (?, relation, tail) or (head, ?, tail).

    Each has its `share` of p(t | h, R), p(h | R, t) or p(R | h, t) as fitted on valid, and a new link its
    `confidence`: `relwalk.evaluation.probabilities` says what they are. With `raw`, or of a run that is not calibrated,
    there is the model's own p alone. An entity is not offered as the answer to a question about itself, and takes no
    share, unless the graph shows the relation linking some entity to itself. `only_new` leaves out what the graph
    already says. Equal scores are listed in the order of the graph.

    `coverage` (0.9, say) asks in place of k for the shortest list of new answers that holds the true one with that
    probability, if there is one: over questions like those of valid, of the relation where it has enough of them.
    `asker` as in `predict_many`.
    """
    how = {"k": k, "only_new": only_new, "coverage": coverage, "raw": raw, "asker": asker}
    return next(predict_many(run, [(head, relation, tail)], **how))  # type: ignore[arg-type]


def predict_many(
    run: Run,
    queries: Iterable[Query],
    *,
    k: int | None = None,
    only_new: bool = False,
    coverage: float | None = None,
    raw: bool = False,
    batch: int | None = None,
    asker: Asker | None = None,
    index: KeyIndex | None = None,
) -> Iterator[Answers]:
    """What `predict` answers to each of many queries, in their order, by products of a batch of queries at a time.

    A query is (head, relation, tail) with None for what is asked. Scores agree with those of `predict` but for the
    rounding of float32. `batch` is how many to score at a time; left out, as many as 128 MB of scores allow. `asker`
    is what scores them, where this process has only a part of the model: all of them give the same answers.

    With an `index` (`relwalk.key_index`) the best answers are those of its short list, with the model's own scores.
    Shares and confidences then rest on that list and a sample of all other entities. Lists that cover, and questions
    for relations or with more known answers than a short list holds, are answered from all entities as ever.
    """
    if not isinstance(run, Run):
        raise RelWalkError(f"run is {shown(run)}; expected a Run. Train one, or read one: relwalk.load_run(folder)")
    if not isinstance(queries, Iterable) or isinstance(queries, str | bytes):
        raise RelWalkError(f"queries is {shown(queries)}; expected many (head, relation, tail), one of each three None")
    size = check_whole("batch", batch) if batch is not None else None
    return _in_windows(run, iter(queries), _wanted(run, k, only_new, coverage, raw, index), size, asker or Asker(run))


def _wanted(
    run: Run, k: int | None, only_new: bool, coverage: float | None, raw: bool, index: KeyIndex | None = None
) -> _Wanted:
    number = check_whole("k", k) if k is not None else ANSWERS
    if coverage is not None:
        coverage = check_number("coverage", coverage, 0, 1, above=True)
        if k is not None:
            raise RelWalkError("coverage makes the list as long as it must be: leave out k (-k), or coverage")
        if raw or run.probabilities is None:
            why = "raw p is not calibrated: leave out raw (--raw)" if raw else f"not calibrated: {run.uncalibrated}"
            raise RelWalkError(f"coverage needs what valid taught about the run, which is {why}. Or say k (-k).")
    fitted = None if raw else run.probabilities
    why_not = None if raw else run.uncalibrated
    short = index if coverage is None else None
    return _Wanted(number, only_new or coverage is not None, coverage, fitted, why_not, short)


def _in_windows(
    run: Run, queries: Iterator[Query], wanted: _Wanted, batch: int | None, asker: Asker
) -> Iterator[Answers]:
    while window := list(islice(queries, WINDOW)):
        found: list[tuple[Answer, ...]] = [()] * len(window)
        ids = np.array([_ids(run.graph, query) for query in window])  # (queries, 3), -1 for what is asked
        for asked, numbers_each in _kinds(run).items():
            rows = np.flatnonzero(ids[:, asked] < 0)
            rows = rows[np.argsort(ids[rows, 1], kind="stable")]  # a model wants them by relation
            size = batch if batch is not None else max(1, min(1024, SCORES // numbers_each))
            for start in range(0, len(rows), size):
                part = rows[start : start + size]
                some = asker.from_all(list(_answer(run, ids[part], asked, wanted, asker)))
                for row, answers in zip(part.tolist(), some, strict=True):
                    found[row] = answers
        for row, answers in enumerate(found):
            head, relation, tail = _labels(run.graph, ids[row].tolist())
            note = _note(wanted, relation is None) if answers else ""
            yield Answers(head, relation, tail, answers, note, wanted.coverage)


def _note(wanted: _Wanted, about_relations: bool) -> str:
    """What the numbers of the answers are."""
    if wanted.fitted is not None:
        return RELATIONS if about_relations else ENTITIES if wanted.index is None else INDEXED
    return f"p is the model's own, not calibrated: {wanted.why_not}" if wanted.why_not else "p is the model's own (raw)"


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


def check_queries(
    run: Run,
    queries: Iterable[Query],
    *,
    k: int | None = None,
    only_new: bool = False,
    coverage: float | None = None,
    raw: bool = False,
) -> None:
    """An error if `predict_many` could not answer one of them so; nothing is answered."""
    wanted = _wanted(run, k, only_new, coverage, raw)
    for query in queries:
        if _ids(run.graph, query)[1] < 0 and wanted.coverage is not None:
            raise RelWalkError(NO_COVERAGE)


def _labels(graph: Graph, ids: list[int]) -> list[str | None]:
    names = (graph.entities, graph.relations, graph.entities)
    return [vocabulary.label(i) if i >= 0 else None for vocabulary, i in zip(names, ids, strict=True)]


@torch.inference_mode()
def _answer(run: Run, ids: Longs, asked: int, wanted: _Wanted, asker: Asker) -> Iterator[tuple[Answer, ...]]:
    """The answers to those of the queries that are for this process; all ask for one place: 0 the head, 1 the relation,
    2 the tail."""
    names = run.graph.relations if asked == 1 else run.graph.entities
    if asked == 1 and wanted.coverage is not None:
        raise RelWalkError(NO_COVERAGE)
    found = _candidates(run, ids, asked, wanted, asker)
    ids = ids[asker.part(len(ids))]
    if len(ids) == 0:
        return
    scores, known, times = found.scores, found.known, found.times
    if asked != 1:
        own = np.flatnonzero(~run.graph.has_loops[ids[:, 1]])
        found.leave_out(own, ids[own, 2 - asked])
    scale = run.model.scale
    log_z = _log_z(scores, scale, times)
    weights = scores * scale if wanted.fitted is not None else scores
    betas = _betas(wanted.fitted, ids, asked, weights, found) if wanted.fitted is not None else np.ones(len(ids))
    log_shares = _log_z(weights, betas, times) if wanted.fitted is not None else log_z
    if wanted.only_new:
        scores[_tensor(known.row_of_each_value(), scores), _tensor(known.values, scores)] = -torch.inf
    if wanted.coverage is not None and wanted.fitted is not None:
        _shorten(scores, scale, wanted.fitted, wanted.coverage, ids[:, 1], "tail" if asked == 2 else "head")
    best = list(_best(found, wanted.k if wanted.coverage is None else None))
    sure = _confidences(wanted.fitted, ids, asked, weights, found, [places for places, _ in best])
    for row, (places, values) in enumerate(best):
        p = np.exp(scale * values - log_z[row])
        is_known = np.isin(places, known[row])
        shares = np.exp(betas[row] * scale * values - log_shares[row]).tolist() if wanted.fitted else [None] * len(p)
        confidences = [None if old else c for old, c in zip(is_known, sure[row], strict=True)]
        columns = (
            found.entities(row, places).tolist(),
            values.tolist(),
            p.tolist(),
            is_known.tolist(),
            shares,
            confidences,
        )
        yield tuple(Answer(names.names[i], names.label(i), *rest) for i, *rest in zip(*columns, strict=True))


def _candidates(run: Run, ids: Longs, asked: int, wanted: _Wanted, asker: Asker) -> Candidates:
    """What may be the answer to each query of this process: all there is, or a short list."""
    known = _known(run.graph, ids[asker.part(len(ids))], asked)
    if wanted.index is not None and asked != 1:
        h, r, t = torch.from_numpy(ids).to(run.model.device).T
        side: Side = "tail" if asked == 2 else "head"
        short = shortlisted(run, wanted.index, side, h if asked == 2 else t, r, known, wanted.k)
        if short is not None:
            return short
    return Candidates(asker.score(ids, asked), known)


def _betas(fitted: Probabilities, ids: Longs, asked: int, weights: Tensor, found: Candidates) -> Doubles:
    """1/T of each query.  # (queries,)"""
    if asked == 1:
        return np.full(len(ids), fitted.of_relations)
    side: Side = "tail" if asked == 2 else "head"
    return fitted.question_temperatures(side, ids[:, 1], weights, found.known, found.times)


def _confidences(
    fitted: Probabilities | None, ids: Longs, asked: int, weights: Tensor, of: Candidates, places: list[Longs]
) -> list[list[float | None]]:
    """Those of the answers of each query, some queries at a time: their lists may be long."""
    if fitted is None or asked == 1:
        return [[None] * len(own) for own in places]
    found: list[list[float | None]] = []
    size = max(1, CELLS // max(1, *map(len, places)))
    for start in range(0, len(places), size):
        rows = np.arange(start, min(start + size, len(places)))
        columns = np.zeros((len(rows), max(1, *(len(places[row]) for row in rows))), np.int64)
        for line, row in zip(columns, rows, strict=True):
            line[: len(places[row])] = places[row]
        times = of.times[start : start + size] if of.times is not None else None
        some = weights[start : start + size], of.known.take(rows), columns
        values = fitted.confidences("tail" if asked == 2 else "head", ids[rows, 1], *some, times=times)
        found += [line[: len(places[row])].tolist() for line, row in zip(values, rows, strict=True)]
    return found


def _shorten(
    scores: Tensor, scale: float, fitted: Probabilities, coverage: float, relations: Longs, side: Side
) -> None:
    """Take off a list, in place, what a list of this coverage need not hold; its first answer stays."""
    betas = scale * fitted.inverse_temperatures(side, relations)
    top = scores.amax(1, keepdim=True)
    nothing = top.isneginf()
    log_z = _log_z(scores.masked_fill(nothing, 0.0), betas)
    least = (log_z - fitted.longest(side, relations, coverage)) / betas
    bound = torch.minimum(torch.from_numpy(least).to(scores).unsqueeze(1), top)
    scores.masked_fill_(scores < bound, -torch.inf)


def _score(run: Run, ids: Longs, asked: int) -> Tensor:
    """The scores of every candidate, in memory of its own.  # (queries, candidates)"""
    model = run.model
    h, r, t = torch.from_numpy(ids).to(model.device).T
    if asked == 1:
        return model.score_relations(h, t).clone()
    side: Side = "tail" if asked == 2 else "head"
    given = h if asked == 2 else t
    if model.by_blocks:
        return model.score_all(side, given, r)
    product = as_product(model)
    if product is None or not product.shares_keys(side):
        return model.score_candidates(side, given, r).clone()
    scores = run.keys.products(side, product.queries(side, given, r))
    offsets = product.offsets(side, given, r)
    return scores if offsets is None else scores.add_(offsets.unsqueeze(1))


def _log_z(scores: Tensor, scale: float | Doubles, times: Tensor | None = None) -> Doubles:
    """log Σ exp(scale * score) of each row: exponentials in float32 of differences to the greatest, sums of them.

    `times`: as how many each counts, if not as one.
    """
    top = scores.amax(1, keepdim=True)
    if bool((top.isnan() | top.isposinf()).any()):
        raise RelWalkError("the model gives scores that are not numbers: it cannot predict. Train it again.")
    factor = torch.from_numpy(scale).to(scores).unsqueeze(1) if isinstance(scale, np.ndarray) else scale
    powers = exp_(torch.sub(scores, top).mul_(factor))
    total = powers.sum(1) if times is None else powers.mul_(times).sum(1)
    return np.asarray(scale * top.squeeze(1).double().cpu().numpy() + total.double().log().cpu().numpy())


def _best(found: Candidates, k: int | None) -> Iterator[tuple[Longs, Doubles]]:
    """Of each row the columns of the k greatest, or all, greatest first and equal ones by id; never -inf."""
    scores = found.scores
    rows, ids = greatest(scores, k) if k is not None else (scores > -torch.inf).nonzero(as_tuple=True)
    values = scores[rows, ids].double().cpu().numpy()
    row_of, column_of = rows.cpu().numpy(), ids.cpu().numpy()
    id_of = column_of if found.ids is None else found.ids[rows, ids].cpu().numpy()
    order = np.lexsort((id_of, -values, row_of))
    ends = np.searchsorted(row_of, np.arange(len(scores) + 1))
    for start, end in pairwise(ends.tolist()):
        own = order[start : end if k is None else min(end, start + k)]
        own = own[values[own] > -np.inf]
        yield column_of[own], values[own]


def _known(graph: Graph, ids: Longs, asked: int) -> Lists:
    """The answers that the graph already holds, of each query."""
    if asked != 1:
        return graph.known["tail" if asked == 2 else "head"].lookup(ids[:, 2 - asked], ids[:, 1])
    return graph.known["tail"].relations_between(ids[:, 0], ids[:, 2])


def _tensor(array: NDArray[np.integer], like: Tensor) -> Tensor:
    return torch.from_numpy(array.astype(np.int64)).to(like.device)
