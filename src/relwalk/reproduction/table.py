"""Lines that put a published figure, ours and their difference side by side; ours are means over the seeds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from relwalk.models import MODELS
from relwalk.report.anchors import ANCHORS
from relwalk.report.paper import PAPER_TABLE, Published
from relwalk.reproduction.record import ResultRecord

RANKED = {"mrr": "MRR", "mr": "MR", "hits@1": "H@1", "hits@3": "H@3", "hits@10": "H@10"}
JUDGED = {"accuracy": "accuracy", "combined_accuracy": "combined"}
PLACES = {"mr": 0, "accuracy": 4, "combined_accuracy": 4}  # decimals; three elsewhere


@dataclass(frozen=True)
class Line:
    """A system on a data set by one protocol: records of one recipe, which may be none, beside one published figure."""

    dataset: str
    system: str
    candidates: str  # "all", "argument" or "classification"
    records: tuple[ResultRecord, ...] = ()  # one for each seed
    published: Published | None = None

    @property
    def names(self) -> dict[str, str]:
        return JUDGED if self.candidates == "classification" else RANKED

    @property
    def finished(self) -> tuple[ResultRecord, ...]:
        return tuple(record for record in self.records if record.status == "finished")

    @property
    def recipe(self) -> str:
        """How ours were trained, or why there are none."""
        if not self.records:
            return "not trained"
        failed = [record.reason for record in self.records if record.status == "failed"]
        words = self.records[0].recipe_words
        return f"{words}; failed: {failed[0]}" if failed else words

    def ours(self, name: str) -> float | None:
        """The mean over seeds."""
        values = self._values(name)
        return fmean(values) if values else None

    def spread(self, name: str) -> float | None:
        """The standard deviation over seeds, from two on."""
        values = self._values(name)
        return stdev(values) if len(values) > 1 else None

    def theirs(self, name: str) -> float | None:
        return None if self.published is None else self.published.figures().get(name.removeprefix("combined_"))

    def difference(self, name: str) -> float | None:
        ours, theirs = self.ours(name), self.theirs(name)
        return None if ours is None or theirs is None else ours - theirs

    def _values(self, name: str) -> list[float]:
        found = [
            record.judged(name) if self.candidates == "classification" else record.figure(self.candidates, name)
            for record in self.finished
        ]
        return [value for value in found if value is not None]

    def as_dict(self) -> dict[str, Any]:
        return {
            "dataset": self.dataset,
            "system": self.system,
            "candidates": self.candidates,
            "recipe": self.recipe,
            "seeds": [record.seed for record in self.finished],
            "source": self.published.source if self.published else None,
            **{
                name: {
                    "published": self.theirs(name),
                    "ours": self.ours(name),
                    "difference": self.difference(name),
                    "spread": self.spread(name),
                }
                for name in self.names
            },
            "records": [record.name for record in self.records],
        }

    def cells(self) -> list[str]:
        """As text: system, candidates, figures as `ours (published, difference)`, how ours were made, source."""
        return [
            self.system,
            self.candidates,
            *(self._cell(name) for name in self.names),
            self.recipe + (f", {len(self.finished)} seeds" if len(self.finished) > 1 else ""),
            self.published.source if self.published else "-",
        ]

    def own_cell(self, name: str) -> str:
        """Our figure alone, with its spread."""
        ours, spread = self.ours(name), self.spread(name)
        if ours is None:
            return "-"
        return figure(name, ours) + (f" ± {figure(name, spread)}" if spread is not None else "")

    def _cell(self, name: str) -> str:
        theirs, difference = self.theirs(name), self.difference(name)
        if theirs is None:
            return self.own_cell(name)
        beside = "" if difference is None else f", {figure(name, difference, sign=True)}"
        return f"{self.own_cell(name)} ({figure(name, theirs)}{beside})"


def figure(name: str, value: float, *, sign: bool = False) -> str:
    """A figure with as many decimals as its kind has."""
    places = PLACES.get(name, 3)
    return f"{value:+.{places}f}" if sign else f"{value:.{places}f}"


def heading(lines: Sequence[Line]) -> list[str]:
    return ["system", "candidates", *lines[0].names.values(), "ours", "published by"]


def by_dataset(lines: Iterable[Line]) -> dict[str, list[Line]]:
    found: dict[str, list[Line]] = {}
    for line in lines:
        found.setdefault(line.dataset, []).append(line)
    return found


def table2_lines(
    records: Sequence[ResultRecord], datasets: Sequence[str], published: Sequence[Published] | None = None
) -> list[Line]:
    """Every system of the paper's table and every record, by each protocol, beside each figure that is published."""
    every = (*PAPER_TABLE, *ANCHORS) if published is None else tuple(published)
    lines = []
    for dataset in datasets:
        known = [p for p in every if p.dataset == dataset and p.model]
        own = [record for record in records if record.dataset == dataset]
        judged = any(p.candidates == "classification" for p in known) or any(
            record.metrics.classification is not None for record in own
        )
        tasks = ("classification",) if judged else ("all", "argument")
        listed = [p.model for p in PAPER_TABLE if p.dataset == dataset]
        for model in dict.fromkeys([*listed, *(record.model for record in own)]):
            for group in groups([record for record in own if record.model == model]) or [()]:
                lines += _lines(dataset, model, tasks, group, known)
    return lines


def _lines(
    dataset: str, model: str, tasks: Sequence[str], group: tuple[ResultRecord, ...], known: Sequence[Published]
) -> list[Line]:
    lines = []
    for task in tasks:
        beside: list[Published | None] = [p for p in known if p.model == model and p.candidates == task]
        if group and not beside:
            beside = [None]
        lines += [Line(dataset, title(model), task, group, p) for p in beside]
    return lines


def groups(records: Sequence[ResultRecord]) -> list[tuple[ResultRecord, ...]]:
    """Records that differ in their seed alone, together."""
    found: dict[str, list[ResultRecord]] = {}
    for record in records:
        found.setdefault(record.recipe_words, []).append(record)
    return [tuple(sorted(group, key=lambda record: record.seed)) for group in found.values()]


def title(model: str) -> str:
    """What a system is called in print."""
    names = {p.model: p.system for p in PAPER_TABLE}
    return names.get(model) or (MODELS[model].__name__ if model in MODELS else model)


def best_line(model: str, dataset: str, records: Sequence[ResultRecord]) -> Line | None:
    """All entities ranked, by the recipe that is best on valid; None without a record."""
    own = [r for r in records if (r.model, r.dataset, r.status) == (model, dataset, "finished")]
    found = groups([record for record in own if record.metrics.valid_mrr is not None])
    if not found:
        return None
    return Line(dataset, model, "all", max(found, key=lambda group: max(r.metrics.valid_mrr or 0.0 for r in group)))
