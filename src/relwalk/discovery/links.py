"""The links that a graph lacks, over all its questions: the most confident first, by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import expit, logit

from relwalk.checks import check_number, check_whole, shown
from relwalk.discovery.best import LEAST, Best, Doubles, Links, from_all
from relwalk.discovery.judged import Judge, rounded
from relwalk.discovery.questions import SideQuestions, whole_graph
from relwalk.discovery.shares import fitted_shares
from relwalk.discovery.sweep import Sweep
from relwalk.discovery.table import Column, Tabular, named
from relwalk.errors import RelWalkError
from relwalk.evaluation.labelled import triple_keys
from relwalk.evaluation.scores import Scores
from relwalk.graph.answers import Side
from relwalk.graph.graph import Graph
from relwalk.graph.lists import Longs
from relwalk.progress import Count, OnProgress, Progress
from relwalk.progress import shown as shown_progress
from relwalk.runs.run import Run
from relwalk.together import ALONE

MOST = 5_000_000  # links asked for at most
MOST_LIKELY = 1 - 1e-12
PROPOSED, FEWEST = 4, 20_000  # links that are judged from both sides: so many times k, and at least so many


@dataclass(frozen=True)
class Link:
    """A link that the graph does not hold.

    `confidence` is the chance that it is a fact, by the mean of the log-odds that its two questions give it (None: not
    calibrated). `asked` is the side of the one that gives more; `share` is p(t | h, R) or p(h | R, t) there, among all
    answers, and `rank` its place among the new ones.
    """

    head: str
    relation: str
    tail: str
    head_label: str
    relation_label: str
    tail_label: str
    share: float
    confidence: float | None
    rank: int
    asked: str


@dataclass(frozen=True, eq=False, repr=False)
class Discovery(Tabular):
    """New links, the most confident first; prints itself."""

    graph: Graph
    links: Links
    confidence: Doubles | None  # (links,)
    questions: int  # how many were asked
    missing: float | None  # facts that the graph is thought to lack

    def __len__(self) -> int:
        return len(self.links)

    def __iter__(self) -> Iterator[Link]:
        return (Link(**row) for row in self.frame().iter_rows(named=True))

    def frame(self) -> pl.DataFrame:
        """A row for each link, with the fields of `Link`."""
        return self._frame

    @cached_property
    def _frame(self) -> pl.DataFrame:
        links = self.links
        return pl.DataFrame(
            {
                **named(self.graph, head=links.head, relation=links.relation, tail=links.tail),
                "share": links.share,
                "confidence": pl.Series(self.confidence, dtype=pl.Float64)
                if self.confidence is not None
                else pl.repeat(None, len(links), dtype=pl.Float64, eager=True),
                "rank": links.rank,
                "asked": np.where(links.by_tail, "tail", "head"),
            }
        )

    def columns(self) -> tuple[Column, ...]:
        confidence = [Column("confidence", "confidence", "{:.1%}")] if self.confidence is not None else []
        return (
            Column("head", "head_label"),
            Column("relation", "relation_label"),
            Column("tail", "tail_label"),
            *confidence,
            Column("share", "share", "{:.2%}"),
            Column("rank", "rank", "{:,}"),
        )

    def title(self) -> str:
        if len(self):
            return (
                f"{len(self):,} new links, the most confident of {self.questions:,} questions about {self.graph.name}"
            )
        return f"no new links from {self.questions:,} questions about {self.graph.name}"

    def remarks(self) -> tuple[str, ...]:
        if self.missing is None:
            return ("not calibrated: the graph has no valid triples to judge by, so links come by share",)
        return (
            f"confidence: how many of such links are facts, if {self.graph.name} lacks {self.missing:,.0f} facts of "
            "the kind of valid's; what else is true comes on top",
        )

    def as_dict(self) -> dict[str, Any]:
        return {
            "graph": self.graph.name,
            "questions": self.questions,
            "calibrated": self.confidence is not None,
            "missing": self.missing,
            "links": self.frame().to_dicts(),
        }


def discover(
    run: Run,
    *,
    k: int = 100,
    relations: str | Sequence[str] | None = None,
    min_confidence: float | None = None,
    missing: int | None = None,
    all_questions: bool = False,
    block: int | None = None,
    progress: Progress = None,
    scores: Mapping[Side, Scores] | None = None,
) -> Discovery:
    """The k most confident links that train, valid and test of a run's graph do not hold.

    Asks (h, R, ?) for every entity seen as a head of R, and (?, R, t) for every one seen as a tail (the graph's own
    lists, where it ships some), or for every entity with `all_questions`; of all relations, or of those given. Links
    that either question proposes are judged by both, and what counts is the mean of their log-odds, or what the one
    that is asked gives, where the other one is not and gives more. An entity is linked to itself only by relations that
    do so in the graph, and a triple that it holds as a false one is no link. With
    `min_confidence` only links of at least that confidence come. `missing` is how many facts the graph is thought to
    lack, if not as many as valid holds. `block` is how many scores to hold at a time. `progress`: see
    `relwalk.progress`. `scores` is what scores the questions of each side in the model's place, where this process has
    only a part of it: all of them find the same links.
    """
    graph, judge = check_run(run).graph, _judge(run, min_confidence, missing)
    size, least = check_whole("k", k, 1, MOST), min_confidence or 0.0
    asked = whole_graph(graph, relation_ids(graph, relations), every=all_questions)
    sweep = Sweep(run.model, graph, judge, run.keys, block, scores)
    with shown_progress(progress) as on_progress:
        links = _most_worth(sweep, asked, size, least, on_progress)
    links = links.take(np.flatnonzero((links.worth >= least) & ~_known_false(graph, links))[:size])
    fitted = judge.probabilities
    if sweep.together is not ALONE:
        links = replace(links, rank=sweep.ranks(links))
    if fitted is not None:
        links = replace(links, share=fitted_shares(run.model, graph, fitted, links, scores))
    lacking = None if fitted is None else float(judge.missing or fitted.facts)
    return Discovery(graph, links, None if fitted is None else links.worth, sum(map(len, asked.values())), lacking)


def _most_worth(sweep: Sweep, asked: dict[Side, SideQuestions], k: int, least: float, on_progress: OnProgress) -> Links:
    """Links by the mean of both sides, best first; the first k are the best of all.

    A mean is no more than the greater of the two, which was proposed unless it was below the bar, and nothing is worth
    more than to the question that proposed it, the other one may not be asked: so what was missed is below the bar as
    well. Where fewer than k are above it, more are proposed.
    """
    room = max(PROPOSED * k, FEWEST)
    while True:
        best = Best(room, least)
        count = Count(on_progress, sum(map(len, asked.values())), "discovering")
        for questions in asked.values():
            sweep.offer(questions, best, count.add)
        if sweep.together is not ALONE:
            found, best = from_all(best.found(), sweep.together), Best(room, least)
            best.offer(found)
        links = _judged_by_both(sweep, best.found(), on_progress)
        if not best.full or links.worth[k - 1] >= best.bar or room >= PROPOSED * MOST:
            return links
        room = min(PROPOSED * room, PROPOSED * MOST)


def _judged_by_both(sweep: Sweep, links: Links, on_progress: OnProgress) -> Links:
    other, count = np.zeros(len(links)), Count(on_progress, len(links), "judging")
    back: tuple[tuple[Side, NDArray[np.bool_]], ...] = (("head", links.by_tail), ("tail", ~links.by_tail))
    for side, rows in back:
        other[rows] = sweep.worth(side, links.take(rows), count.add)
    judged = replace(links, worth=np.minimum(mean_odds(links.worth, other), links.worth))
    return judged.take(judged.best_first())


def _known_false(graph: Graph, links: Links) -> NDArray[np.bool_]:
    """Whether the graph itself holds a link as a false triple, or people rejected it (`relwalk.graph.judgements`)."""
    false = [triple_keys(part, graph) for part in (graph.valid_negatives, graph.test_negatives) if part is not None]
    own = np.stack([links.head, links.relation, links.tail], 1)
    return np.isin(triple_keys(own, graph), np.concatenate(false)) if false else np.zeros(len(links), np.bool_)


def mean_odds(p: Doubles, q: Doubles) -> Doubles:
    """The probability whose log-odds are the mean of two: never above the greater, and small where one of them is."""
    odds = (logit(np.clip(p, LEAST, MOST_LIKELY)) + logit(np.clip(q, LEAST, MOST_LIKELY))) / 2
    found: Doubles = np.minimum(rounded(expit(odds)), np.maximum(p, q))
    return found


def _judge(run: Run, min_confidence: float | None, missing: int | None) -> Judge:
    """How links are judged, once what was asked for is possible."""
    given = {"min_confidence": min_confidence, "missing": missing}
    if min_confidence is not None:
        check_number("min_confidence", min_confidence, 0, 1)
    if missing is not None:
        check_whole("missing", missing)
    for name, value in given.items():
        if value is not None and run.probabilities is None:
            raise RelWalkError(
                f"{name} is {shown(value)}, and this run has no confidences: it was not calibrated, for want of valid "
                f"triples or by an earlier relwalk. Leave {name} out, or train again on a graph with valid triples."
            )
    return Judge(run.probabilities, missing)


def check_run(run: object) -> Run:
    if not isinstance(run, Run):
        raise RelWalkError(f"run is {shown(run)}; expected a Run. Train one, or read one: relwalk.load_run(folder)")
    return run


def relation_ids(graph: Graph, relations: str | Iterable[str] | None) -> Longs:
    """The relations of these names, ascending; all of them for None."""
    if relations is None:
        return np.arange(len(graph.relations))
    names = [relations] if isinstance(relations, str) else list(relations)
    if not names:
        raise RelWalkError("relations is empty; expected at least one name, or None for all of them")
    return np.unique(np.array([graph.relations.id(name) for name in names], np.int64))
