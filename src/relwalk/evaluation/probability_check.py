"""Whether a run keeps its word on test: shares, lists of a coverage, confidences.

Shares are judged by `calibration`. A list must hold the test answer as often as it was asked to. For confidences, test
takes the place of valid in confidence_fit.py: its facts are hidden, and of links of a confidence as many must be such
facts as it says, its odds being changed to as many missing facts as test has.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from relwalk.checks import check_number, check_seed, check_whole
from relwalk.display import Shown
from relwalk.errors import GraphError
from relwalk.evaluation.calibration import Calibration, calibration
from relwalk.evaluation.confidence_fit import candidates, draw_questions
from relwalk.evaluation.probabilities import Floats, Probabilities
from relwalk.evaluation.score_blocks import leave_out, sample, score_blocks
from relwalk.graph.answers import SIDES, Side
from relwalk.graph.graph import Graph
from relwalk.graph.lists import Ints
from relwalk.models.base import Scorer

COVERAGES = (0.8, 0.9)
EDGES = (0.0, 0.01, 0.03, 0.1, 0.3, 0.6, 1.0)  # of confidences that are judged together


@dataclass(frozen=True)
class ListCheck:
    """Lists of one coverage: how many hold the test answer, and how long they are.

    A list has one answer at least. Of a relation whose first answers are right more often than was asked, such lists
    hold more than was asked, and `found` is then above `coverage` for all together: `found_longer` is of the others.
    """

    coverage: float
    found: float
    found_longer: float | None  # of lists with more than one answer; None: there are none
    single: float  # share of lists with one answer
    mean_length: float
    median_length: float
    questions: int


@dataclass(frozen=True)
class ConfidenceCheck:
    """New links with a confidence from low to high: what was said of them, and how many are test facts."""

    asked: bool  # of questions that the graph has an answer to
    low: float
    high: float
    links: float  # that the sample stands for
    facts: int  # in the sample
    said: float
    found: float


@dataclass(frozen=True, repr=False)
class ProbabilityCheck(Shown):
    """All that a run says of its probabilities beside what test says."""

    graph: str
    shares: Calibration
    lists: tuple[ListCheck, ...]
    confidences: tuple[ConfidenceCheck, ...]

    def as_dict(self) -> dict[str, Any]:
        return {
            "graph": self.graph,
            "shares": [
                {"name": m.name, "ece": m.ece.as_dict(), "chance": m.chance, "confidence": m.confidence}
                | {"accuracy": m.accuracy, "nll": m.nll}
                for m in self.shares.methods
            ],
            "questions": self.shares.queries["test"],
            "lists": [asdict(check) for check in self.lists],
            "confidences": [asdict(check) for check in self.confidences],
        }

    def __str__(self) -> str:
        lines = [f"{self.graph}: first answers of {self.shares.queries['test']:,} test questions"]
        lines += [f"  {method}" for method in self.shares.methods]
        lines += [
            f"lists of coverage {c.coverage:g}: {c.found:.3f} hold the answer; {c.mean_length:,.1f} answers on average"
            f", median {c.median_length:,.0f}; {c.single:.1%} have one"
            + ("" if c.found_longer is None else f", of the others {c.found_longer:.3f} hold it")
            for c in self.lists
        ]
        for c in self.confidences:
            kind = "with" if c.asked else "without"
            lines.append(
                f"confidence {c.low:g} to {c.high:g}, questions {kind} a known answer: said {c.said:.3f}, "
                f"found {c.found:.3f} ({c.facts:,} facts)"
            )
        return "\n".join(lines)


def check_probabilities(
    model: Scorer,
    graph: Graph,
    fitted: Probabilities,
    *,
    coverages: tuple[float, ...] = COVERAGES,
    most: int = 2000,
    seed: int = 0,
) -> ProbabilityCheck:
    """Judge shares, lists and confidences on at most so many triples of test, drawn by the seed."""
    check_seed(seed)
    check_whole("most", most)
    for coverage in coverages:
        check_number("coverage", coverage, 0, 1, above=True)
    if len(graph.test) == 0:
        raise GraphError(f"graph {graph.name!r} has no test triples to judge probabilities by. Give it a test split.")
    shares = calibration(model, graph, fitted, most=most, seed=seed)
    assert isinstance(shares, Calibration)
    rng = np.random.default_rng([seed, *b"check"])
    triples = graph.test[sample(len(graph.test), most, rng)]
    lists = check_lists(model, graph, fitted, triples, coverages)
    return ProbabilityCheck(graph.name, shares, lists, check_confidences(model, graph, fitted, most // 2 + 1, rng))


def check_lists(
    model: Scorer, graph: Graph, fitted: Probabilities, triples: Ints, coverages: tuple[float, ...] = COVERAGES
) -> tuple[ListCheck, ...]:
    """Both questions of the triples, each with its own answer new to the graph."""
    parts = [_lists(model, graph, side, fitted, triples, coverages) for side in SIDES]
    held, lengths = (np.concatenate([part[i] for part in parts], 1) for i in range(2))  # (coverages, questions)
    return tuple(
        ListCheck(
            c,
            float(h.mean()),
            float(h[n > 1].mean()) if (n > 1).any() else None,
            float((n <= 1).mean()),
            float(n.mean()),
            float(np.median(n)),
            len(h),
        )
        for c, h, n in zip(coverages, held, lengths, strict=True)
    )


def _lists(
    model: Scorer, graph: Graph, side: Side, fitted: Probabilities, triples: Ints, coverages: tuple[float, ...]
) -> tuple[Floats, Floats]:
    """Whether each list holds the answer, and its length.  # (coverages, questions) both"""
    given, asked = (0, 2) if side == "tail" else (2, 0)
    held, lengths = np.empty((2, len(coverages), len(triples)))
    for rows, scores in score_blocks(model, graph, side, triples[:, given], triples[:, 1]):
        own = triples[rows]
        known = graph.known[side].lookup(own[:, given], own[:, 1])
        row = known.row_of_each_value()
        other = known.values != own[row, asked]
        leave_out(scores, row[other], known.values[other])
        w = scores.double().numpy() * fitted.inverse_temperatures(side, own[:, 1])[:, None]
        top = w.max(1)
        log_z = top + np.log(np.exp(w - top[:, None]).sum(1))
        truth = w[np.arange(len(rows)), own[:, asked]]
        for i, coverage in enumerate(coverages):
            bound = np.minimum(log_z - fitted.longest(side, own[:, 1], coverage), top)
            held[i, rows] = truth >= bound
            lengths[i, rows] = (w >= np.maximum(bound, -1e300)[:, None]).sum(1)
    return held, lengths


def check_confidences(
    model: Scorer, graph: Graph, fitted: Probabilities, most: int, rng: np.random.Generator
) -> tuple[ConfidenceCheck, ...]:
    """Links by their confidence, both sides together."""
    found: list[ConfidenceCheck] = []
    sides = []
    for side in SIDES:
        questions = draw_questions(graph, side, graph.test, most, rng)
        sides.append(candidates(model, graph, side, questions, fitted.side(side).temperatures, rng))
    for number, asked in enumerate((True, False)):
        own = [part[number] for part in sides]
        said = np.concatenate(
            [fitted.confidence_of(s, c.relation, asked, c.features) for s, c in zip(SIDES, own, strict=True)]
        )
        odds = said / (1 - said) * len(graph.test) / fitted.facts
        said = odds / (1 + odds)
        fact, weight = (np.concatenate([getattr(c, name) for c in own]) for name in ("fact", "weight"))
        place = np.clip(np.searchsorted(EDGES, said, side="right") - 1, 0, len(EDGES) - 2)
        for i in np.unique(place).tolist():
            here = place == i
            links = weight[here]
            found.append(
                ConfidenceCheck(
                    asked=asked,
                    low=EDGES[i],
                    high=EDGES[i + 1],
                    links=float(links.sum()),
                    facts=int(fact[here].sum()),
                    said=float(np.average(said[here], weights=links)),
                    found=float(np.average(fact[here], weights=links)),
                )
            )
    return tuple(found)
