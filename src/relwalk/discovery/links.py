"""The links that a graph lacks, over all its questions: the most confident first, by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from relwalk.checks import check_number, check_whole, shown
from relwalk.discovery.best import Best, Doubles, Links, together
from relwalk.discovery.confidence import fit_confidence
from relwalk.discovery.expected import ExpectedAnswers
from relwalk.discovery.questions import questions
from relwalk.discovery.sweep import Inverse, Sweep
from relwalk.discovery.table import Column, Tabular, named
from relwalk.errors import RelWalkError
from relwalk.graph.answers import SIDES
from relwalk.graph.graph import Graph
from relwalk.graph.lists import Ints, Longs
from relwalk.progress import Count, Progress
from relwalk.progress import shown as shown_progress
from relwalk.runs.run import Run

MOST = 10_000_000  # links: half a gigabyte of ids and shares
JUDGED = 20_000  # links that confidences are fitted on, at least, if there are so many
MISSING = 1 / 3  # facts that a graph lacks for each one of valid, unless said otherwise


@dataclass(frozen=True)
class Link:
    """A link that the graph does not hold.

    `share` is p(t | h, R), or p(h | R, t) where that is greater: `asked` says which. `confidence` is the chance that
    it is a fact (None: not calibrated), `rank` its place among the new answers to the question that was asked.
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
    missing: float | None  # facts that the graph is thought to lack, which confidences are about
    facts: int  # of valid, which they were fitted on

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
            return f"{len(self):,} new links, the most confident of {self.questions:,} questions about {self.graph.name}"
        return f"no new links from {self.questions:,} questions about {self.graph.name}"

    def remarks(self) -> tuple[str, ...]:
        if self.confidence is None or self.missing is None:
            return (
                "not calibrated: the graph has no valid triples to judge shares by, so links are ordered by share",
            )
        return (
            f"confidence: how many of such links are facts, if the graph lacks {self.missing:,.0f} facts like the "
            f"{self.facts:,} of valid; it may lack more",
        )

    def as_dict(self) -> dict[str, Any]:
        return {
            "graph": self.graph.name,
            "questions": self.questions,
            "calibrated": self.confidence is not None,
            "missing": self.missing,
            "valid_facts": self.facts,
            "links": self.frame().to_dicts(),
        }


def discover(
    run: Run,
    *,
    k: int = 100,
    relations: str | Sequence[str] | None = None,
    min_confidence: float | None = None,
    missing: float | None = None,
    all_questions: bool = False,
    block: int | None = None,
    progress: Progress = None,
) -> Discovery:
    """The k most confident links that train, valid and test of a run's graph do not hold.

    Asks (h, R, ?) for every entity seen as a head of R, and (?, R, t) for every one seen as a tail (the graph's own
    lists, where it ships some), or for every entity with `all_questions`; of all relations, or of those given. A link
    that both questions find counts once, with its greater share. An entity is linked to itself only by relations that
    do so in the graph. `missing` is how many facts the graph lacks, as a share of those it has; left out, a third as
    many as valid holds. With `min_confidence` only links of at least that confidence come. `block` is how many scores
    to hold at a time. `progress`: see `relwalk.progress`.
    """
    graph = check_run(run).graph
    size, asked = check_whole("k", k, 1, MOST), relation_ids(graph, relations)
    least = check_number("min_confidence", min_confidence, 0, 1) if min_confidence is not None else 0.0
    lacking = _missing(graph, missing)
    if not len(graph.valid) and (min_confidence is not None or missing is not None):
        what = "min_confidence" if min_confidence is not None else "missing"
        raise RelWalkError(
            f"{what} is {shown(min_confidence if min_confidence is not None else missing)}, and this run has no "
            f"confidences: its graph has no valid triples to judge shares by. Leave it out, or train with valid triples."
        )
    facts = graph.valid[np.isin(graph.valid[:, 1], asked)]
    best = Best(max(size, JUDGED))
    every = questions(graph, asked, every=all_questions)
    total = sum(map(len, every.values()))
    with shown_progress(progress) as on_progress:
        sweep = Sweep(run.model, graph, best, ExpectedAnswers(graph), _inverse(run), run.keys, block)
        count = Count(on_progress, total, "discovering")
        held = together([sweep.ask(every[side], facts, count) for side in SIDES]).once_each()
    links = best.found()
    confidence = None
    if len(graph.valid):
        confidence = fit_confidence(links.worth, held.worth, lacking / len(graph.valid))(links.worth)
        confidence = confidence[: np.searchsorted(-confidence, -least, side="right")]  # they fall
        links = links.take(np.arange(len(confidence)))
    links, confidence = links.take(np.arange(min(size, len(links)))), confidence[:size] if confidence is not None else None
    return Discovery(graph, links, confidence, total, lacking if len(graph.valid) else None, len(facts))


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


def _missing(graph: Graph, missing: float | None) -> float:
    """How many facts the graph lacks."""
    if missing is None:
        return MISSING * len(graph.valid)
    return check_number("missing", missing, 0, 1e6, above=True) * len(graph.triples)


def _inverse(run: Run) -> Inverse:
    """1 / temperature of each question; 1 where none were fitted."""
    probabilities = getattr(run, "probabilities", None)
    if probabilities is not None:
        found: Inverse = probabilities.inverse_temperatures
        return found
    return lambda side, relations: np.ones(len(relations))
