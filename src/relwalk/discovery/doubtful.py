"""Known triples that look wrong: what speaks for them beside themselves is least, for their relation.

    doubt = - min(z of the head's neighbours, z of the tail's) - z of being linked otherwise

z is how far a piece of evidence lies from the median of its relation, in standard deviations: among the triples of
train, which the model was taught, or among those of valid and test, which it was not. A relation with few triples is
drawn towards what holds for all, by as much as `SHRINK` triples would weigh, so that it does not fill the list.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from relwalk.checks import check_whole
from relwalk.discovery.best import Doubles
from relwalk.discovery.evidence import evidence
from relwalk.discovery.judged import Judge
from relwalk.discovery.links import MOST, check_run, relation_ids
from relwalk.discovery.neighbours import directions, nearest
from relwalk.discovery.sweep import Sweep
from relwalk.discovery.table import Column, Tabular, named
from relwalk.graph.graph import SPLITS, Graph
from relwalk.graph.lists import Ints
from relwalk.progress import Count, Progress
from relwalk.progress import shown as shown_progress
from relwalk.runs.run import Run

NEIGHBOURS = 10
SHRINK = 20.0


@dataclass(frozen=True, eq=False, repr=False)
class DoubtfulTriples(Tabular):
    """Known triples, the most doubtful first; prints itself."""

    graph: Graph
    triples: Ints  # (triples, 3)
    split: NDArray[np.str_]  # (triples,) where each stands
    doubt: Doubles
    evidence: Doubles  # (triples, EVIDENCE), as z
    judged: int  # how many were looked at

    def __len__(self) -> int:
        return len(self.triples)

    def frame(self) -> pl.DataFrame:
        """A row for each triple: names, labels, split, doubt, and the evidence in standard deviations."""
        return self._frame

    @cached_property
    def _frame(self) -> pl.DataFrame:
        head, relation, tail = self.triples.T
        return pl.DataFrame(
            {
                **named(self.graph, head=head, relation=relation, tail=tail),
                "split": self.split,
                "doubt": self.doubt,
                "head_neighbours": self.evidence[:, 0],
                "tail_neighbours": self.evidence[:, 1],
                "linked": self.evidence[:, 2],
            }
        )

    def columns(self) -> tuple[Column, ...]:
        return (
            Column("head", "head_label"),
            Column("relation", "relation_label"),
            Column("tail", "tail_label"),
            Column("doubt", "doubt", "{:.1f}"),
            Column("head's neighbours", "head_neighbours", "{:+.1f}"),
            Column("tail's", "tail_neighbours", "{:+.1f}"),
            Column("linked", "linked", "{:+.1f}"),
            Column("in", "split"),
        )

    def title(self) -> str:
        return f"{len(self):,} of {self.judged:,} triples of {self.graph.name}, the most doubtful first"

    def remarks(self) -> tuple[str, ...]:
        return (
            "doubt: how little speaks for a triple beside itself, in standard deviations of its relation: whether "
            "entities like its head, or like its tail, would stand there too, and whether other triples link the two",
        )

    def as_dict(self) -> dict[str, Any]:
        return {"graph": self.graph.name, "judged": self.judged, "triples": self.frame().to_dicts()}


def doubtful(
    run: Run,
    *,
    k: int = 100,
    relations: str | Sequence[str] | None = None,
    block: int | None = None,
    progress: Progress = None,
) -> DoubtfulTriples:
    """The k triples of train, valid and test that least speaks for, of all relations or of those given."""
    graph = check_run(run).graph
    size, asked = check_whole("k", k, 1, MOST), relation_ids(graph, relations)
    chosen = np.flatnonzero(np.isin(graph.triples[:, 1], asked))
    triples = graph.triples[chosen]
    with shown_progress(progress) as on_progress:
        count = Count(on_progress, len(graph.entities), "comparing entities")
        near, _ = nearest(directions(run.model), NEIGHBOURS, count.add)
        sweep = Sweep(run.model, graph, Judge(run.probabilities, None), run.keys, block)
        found = evidence(sweep, near, triples, Count(on_progress, 2 * len(triples), "judging triples").add)
    split = np.repeat(np.array(SPLITS), [len(graph.split(name)) for name in SPLITS])[chosen]
    z = standardised(found, triples[:, 1], split == "train", len(graph.relations))
    doubt = -np.minimum(z[:, 0], z[:, 1]) - z[:, 2]
    best = np.lexsort((np.arange(len(doubt)), -doubt))[:size]
    return DoubtfulTriples(graph, triples[best], split[best], doubt[best], z[best], len(triples))


def standardised(values: Doubles, relation: Ints, learned: NDArray[np.bool_], relations: int) -> Doubles:
    """How far each value lies from the median of its relation, in standard deviations, among those that were learned,
    or among those that were not.  # (triples, columns)"""
    found = np.zeros_like(values)
    for group in (np.flatnonzero(learned), np.flatnonzero(~learned)):
        if len(group):
            found[group] = _standardised(values[group], relation[group], relations)
    return found


def _standardised(values: Doubles, relation: Ints, relations: int) -> Doubles:
    middle, spread = np.median(values, 0), values.var(0)
    found = np.empty_like(values)
    order = np.argsort(relation, kind="stable")
    for rows in np.split(order, np.searchsorted(relation[order], np.arange(1, relations))):
        if len(rows):
            found[rows] = _of_one_relation(values[rows], middle, spread)
    return found


def _of_one_relation(values: Doubles, middle: Doubles, spread: Doubles) -> Doubles:
    count = len(values)
    centre = (count * np.median(values, 0) + SHRINK * middle) / (count + SHRINK)
    variance = (count * values.var(0) + SHRINK * spread) / (count + SHRINK)
    found: Doubles = (values - centre) / np.sqrt(np.maximum(variance, 1e-12))
    return found
