"""What a comparison of models found: frozen values that print themselves, and are written to and read from JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter

from relwalk.display import WIDEST, Shown, caption, html_table
from relwalk.errors import RunError
from relwalk.evaluation.metrics import RankMetrics
from relwalk.evaluation.records import read_json, told, with_metrics
from relwalk.graph.graph import Graph
from relwalk.progress import duration

FORMAT, VERSION = "relwalk-compare", 1
RULES = ("all", "argument")  # of candidates: both protocols
CURE = "Restore it, or compare again elsewhere."


@dataclass(frozen=True)
class Moment:
    """A point of a learning curve: after so many seconds of training."""

    seconds: float
    epoch: int
    loss: float
    valid_mrr: float | None


def curve_of(history: Iterable[Mapping[str, Any]]) -> tuple[Moment, ...]:
    """The epochs of a history that were validated, by the time of training until then."""
    seconds, curve = 0.0, []
    for epoch in history:
        seconds += epoch["seconds"]
        if epoch["metric"] is not None:
            curve.append(Moment(seconds, epoch["epoch"], epoch["loss"], epoch["metric"]))
    return tuple(curve)


@dataclass(frozen=True)
class Compared:
    """One model of a comparison: what was asked of it, and what came of it. A failed one has a reason, no figures."""

    name: str
    asked: dict[str, Any]  # model, and the settings that were given for it
    status: Literal["waiting", "finished", "failed"] = "waiting"
    reason: str = ""
    dim: int | None = None
    settings: dict[str, Any] = field(default_factory=dict)  # all of its training and its model's options
    test: dict[str, RankMetrics] = field(default_factory=dict)  # by the rule of candidates
    valid_mrr: float | None = None
    best_epoch: int | None = None
    epochs: int | None = None
    seconds: float | None = None  # of training; validation and ranking beside it:
    validation_seconds: float | None = None
    ranking_seconds: float | None = None
    peak_bytes: int | None = None  # of its process
    numbers: int | None = None  # that it learned
    bytes: int | None = None  # of those
    curve: tuple[Moment, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"test": {rule: metrics.as_dict() for rule, metrics in self.test.items()}}


@dataclass(frozen=True)
class ComparedGraph:
    """Which graph."""

    name: str
    source: str
    fingerprint: str
    entities: int
    relations: int
    train: int
    valid: int
    test: int


def graph_facts(graph: Graph, source: str) -> ComparedGraph:
    """What is kept of a graph, and where it came from."""
    return ComparedGraph(
        name=graph.name,
        source=source,
        fingerprint=graph.fingerprint,
        entities=len(graph.entities),
        relations=len(graph.relations),
        train=len(graph.train),
        valid=len(graph.valid),
        test=len(graph.test),
    )


@dataclass(frozen=True, repr=False)
class Comparison(Shown):
    """Models that were trained on one graph for the same time, and what each reaches on test."""

    graph: ComparedGraph
    budget: float  # seconds of training for each
    seed: int
    models: tuple[Compared, ...]
    machine: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    created: str = ""
    path: str | None = None  # of its folder

    @property
    def complete(self) -> bool:
        return all(row.status != "waiting" for row in self.models)

    @property
    def protocol(self) -> str:
        """Under which rules the figures were made."""
        spent = sum((row.validation_seconds or 0) + (row.ranking_seconds or 0) for row in self.models)
        return (
            f"{self.graph.name}: {duration(self.budget)} of training for each model, seed {self.seed}, best epoch on "
            "valid. Test triples, filtered, both sides; candidates: all entities, or those of the relation's argument. "
            f"Not counted as training: validation and ranking, {duration(spent)} in all."
        )

    def as_dict(self) -> dict[str, Any]:
        head = {"format": FORMAT, "version": VERSION, "created": self.created, "path": self.path}
        about = {"graph": asdict(self.graph), "budget": self.budget, "seed": self.seed, "protocol": self.protocol}
        where = {"machine": self.machine, "versions": self.versions}
        return {**head, **about, **where, "models": [row.as_dict() for row in self.models]}

    def summary(self) -> str:
        best = max((row for row in self.models if row.test), key=lambda row: row.test["all"].mrr, default=None)
        found = f"best {best.name}, MRR {best.test['all'].mrr:.3f}" if best else "no figures"
        return f"{self.graph.name}, {len(self.models)} models, {duration(self.budget)} each: {found}"

    def __str__(self) -> str:
        width = max(7, *(len(row.name) for row in self.models)) + 2
        lines = [*textwrap.wrap(self.protocol, WIDEST), f"{'model':{width}}{'candidates':<12}" + _joined(COLUMNS)]
        for row in self.models:
            if row.status == "finished":
                lines += [f"{name:{width}}{rule:<12}" + _joined(cells) for name, rule, *cells in _cells(row)]
            else:
                lines.append(f"{row.name:{width}}{row.status}: {row.reason}".rstrip(": "))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows: list[list[str]] = []
        for row in self.models:
            rows += _cells(row) if row.status == "finished" else [[row.name, f"{row.status}: {row.reason}"]]
        head = ["model", "candidates", *COLUMNS]
        return caption(self.protocol) + html_table(head, [r + [""] * (len(head) - len(r)) for r in rows])


COLUMNS = ("MRR", "MR", "H@1", "H@3", "H@10", "epochs", "time", "memory", "numbers", "MB")
WIDTHS = (7, 9, 7, 7, 7, 8, 9, 10, 13, 9)


def figures(metrics: RankMetrics) -> list[str]:
    """The figures of one protocol, as text."""
    hits = (metrics.hits_at_1, metrics.hits_at_3, metrics.hits_at_10)
    return [f"{metrics.mrr:.3f}", f"{metrics.mr:.1f}", *(f"{share:.3f}" for share in hits)]


def costs(row: Compared) -> list[str]:
    """What a model took, as text."""
    return [
        f"{row.epochs or 0:,}",
        duration(row.seconds or 0.0),
        f"{(row.peak_bytes or 0) / 1e6:,.0f} MB" if row.peak_bytes else "",
        f"{row.numbers or 0:,}",
        f"{(row.bytes or 0) / 1e6:,.1f}",
    ]


def _cells(row: Compared) -> list[list[str]]:
    """A line for each protocol; what a model took stands in the first."""
    taken = [costs(row), *[[""] * 5] * (len(RULES) - 1)]
    names = [row.name, *[""] * (len(RULES) - 1)]
    return [[name, rule, *figures(row.test[rule]), *cost] for name, rule, cost in zip(names, RULES, taken, strict=True)]


def _joined(cells: tuple[str, ...] | list[str]) -> str:
    return "".join(f"{cell:>{width}}" for cell, width in zip(cells, WIDTHS, strict=True)).rstrip()


_COMPARISON, _COMPARED = TypeAdapter(Comparison), TypeAdapter(Compared)


def read_comparison(path: Path) -> Comparison:
    """A comparison from its file, checked."""
    content = read_json(path, "comparison", CURE)
    if content.get("format") != FORMAT or content.get("version") != VERSION:
        raise RunError(f'{path} was not written by this relwalk: expected "format": "{FORMAT}", version {VERSION}.')
    kept = ("graph", "budget", "seed", "machine", "versions", "created", "path")
    rows = content.get("models")
    with told(path, "comparison", CURE):
        values = {name: content.get(name) for name in kept}
        return _COMPARISON.validate_python(
            {**values, "models": [*map(with_metrics, rows if isinstance(rows, list) else ())]}
        )


def read_compared(path: Path) -> Compared:
    """One model of a comparison, from the file that its process left."""
    content = read_json(path, "comparison", CURE)
    with told(path, "comparison", CURE):
        return _COMPARED.validate_python(with_metrics(content))
