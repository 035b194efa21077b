"""The answers to a question, by name, and what their numbers are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from relwalk.display import Shown, caption, html_table

ENTITIES = (
    "share: p(answer | question) among all answers, fitted on valid; confidence: how often such new links were "
    "held-out facts, a lower bound, as the graph is incomplete"
)
INDEXED = f"{ENTITIES}; by an index: over its short list and a sample of the other entities"
RELATIONS = "share: p(relation | head, tail) among all relations, fitted on valid"


@dataclass(frozen=True)
class Answer:
    """One candidate: its score, the model's own p (`probability`, not calibrated), whether the graph already says so.

    `share` is p as fitted on valid, `confidence` the chance that a new link is a fact that the graph lacks
    (`relwalk.evaluation.probabilities`). Both are None where they were not asked for or the run is not calibrated, and
    `confidence` also for a known answer and for a relation.
    """

    name: str
    label: str
    score: float
    probability: float
    known: bool
    share: float | None = None
    confidence: float | None = None


@dataclass(frozen=True, repr=False)
class Answers(Shown):
    """The best answers to one question, best first; prints itself. `note` says what the numbers are."""

    head: str | None
    relation: str | None
    tail: str | None
    answers: tuple[Answer, ...]
    note: str = ""
    coverage: float | None = None  # with which the list holds the true answer, if that was asked for

    def __iter__(self) -> Iterator[Answer]:
        return iter(self.answers)

    def __len__(self) -> int:
        return len(self.answers)

    def __getitem__(self, index: int) -> Answer:
        return self.answers[index]

    def as_dict(self) -> dict[str, Any]:
        # Not by `asdict`, which copies whatever it finds: a service makes ten of these for every answer.
        return {**vars(self), "answers": [dict(vars(answer)) for answer in self.answers]}

    @property
    def question(self) -> str:
        return " ".join(part if part is not None else "?" for part in (self.head, self.relation, self.tail))

    def summary(self) -> str:
        shares = (a.share if a.share is not None else a.probability for a in self.answers)
        found = ", ".join(f"{a.label} {p:.1%}" for a, p in zip(self.answers, shares, strict=True))
        return f"{self.question}: {found or 'none'}"

    def _columns(self) -> tuple[list[str], list[list[str]]]:
        """Headings and cells: share and confidence, or p."""
        fitted = any(a.share is not None for a in self.answers)
        confident = fitted and self.relation is not None
        names = ["share", *(["confidence"] if confident else [])] if fitted else ["p"]
        rows = []
        for a in self.answers:
            p = a.share if a.share is not None else a.probability
            sure = [f"{a.confidence:.2%}" if a.confidence is not None else "-"] if confident else []
            rows.append([a.label, f"{p:.2%}", *sure, f"{a.score:.2f}", "known" if a.known else "new"])
        return ["answer", *names, "score", ""], rows

    def _repr_html_(self) -> str:
        return caption(self.question) + html_table(*self._columns()) + (caption(self.note) if self.note else "")

    def table(self) -> str:
        """The question and its answers, without what the numbers are."""
        names, rows = self._columns()
        width = max([12, *(len(answer.label) for answer in self.answers)])
        lines = [
            f"  {label:{width}}"
            + "".join(f"  {cell:>{max(7, len(name))}}" for name, cell in zip(names[1:-2], cells, strict=True))
            + f"  {score:>9}"
            + (f"  {known}" if known else "")
            for label, *cells, score, known in [names, *rows]
        ]
        title = self.question
        if self.coverage is not None:
            title += (
                f"  (an answer that the graph lacks is one of these {len(self):,} in {100 * self.coverage:g}% of cases)"
            )
        return "\n".join([title, *lines])

    def __str__(self) -> str:
        return self.table() + (f"\n{self.note}" if self.note else "")
