"""Which model when: the README's table of every model that has a record, and what each is the best for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from relwalk.models import MODELS
from relwalk.progress import duration
from relwalk.recipes import RECIPES
from relwalk.reproduction.markdown import markdown_table
from relwalk.reproduction.record import ResultRecord
from relwalk.reproduction.table import best_line, figure, title

BEGIN, END = "<!-- which model when, made by make results -->", "<!-- end of which model when -->"
GRAPHS = {"fb15k-237": "FB15k-237", "wn18rr": "WN18RR"}
NEAR = 0.03  # MRR below the best within which a model that is faster or smaller is still worth a word


@dataclass(frozen=True)
class Candidate:
    """A model with what its best records reach, `mrr` by graph, and what they cost."""

    name: str
    mrr: Mapping[str, float]
    accuracy: float | None
    seconds: float | None  # of training, all its graphs together
    numbers: int | None  # that it learned, of all its graphs together

    @property
    def order(self) -> tuple[int, float]:
        """The best first: models with all graphs, then by their mean."""
        return -len(self.mrr), -sum(self.mrr.values())


def choice_table(records: Sequence[ResultRecord]) -> str:
    """Every model that has a record, the best first, and for what it is the one to take."""
    models = sorted(filter(None, (_candidate(name, records) for name in MODELS)), key=lambda found: found.order)
    whole = [found for found in models if len(found.mrr) == len(GRAPHS)]
    words = _words(models, whole)
    head = ["model", *(f"{name}, MRR" for name in GRAPHS.values()), "FB13, accuracy", "training", "numbers", "take it"]
    rows = [[*_cells(found), "; ".join(words.get(found.name, [])) or "-"] for found in models]
    return "\n".join([BEGIN, markdown_table(head, rows), END])


def _candidate(name: str, records: Sequence[ResultRecord]) -> Candidate | None:
    named = [record for record in records if record.recipe in RECIPES]  # what a user gets by a word
    lines = {graph: best_line(name, graph, named) for graph in GRAPHS}
    mrr = {
        graph: value for graph, line in lines.items() if line is not None and (value := line.ours("mrr")) is not None
    }
    judged = [r for r in records if r.model == name and r.accuracy is not None]
    best = max(judged, key=lambda r: r.metrics.valid_mrr or 0.0, default=None)
    if not mrr and best is None:
        return None
    costs = [line.records[0].cost for line in lines.values() if line is not None]
    seconds, numbers = [cost.seconds for cost in costs], [cost.numbers for cost in costs]
    return Candidate(
        name,
        mrr,
        None if best is None else best.accuracy,
        sum(filter(None, seconds)) if costs and None not in seconds else None,
        sum(filter(None, numbers)) if costs and None not in numbers else None,
    )


def _words(models: Sequence[Candidate], whole: Sequence[Candidate]) -> dict[str, list[str]]:
    """What each model is the first in, from the figures alone."""
    words: dict[str, list[str]] = {}

    def name_first(of: Sequence[Candidate], measure: Callable[[Candidate], float | None], praise: str) -> None:
        known = [(value, found) for found in of if (value := measure(found)) is not None]
        if known:
            first = max(known, key=lambda pair: pair[0])[1]
            words.setdefault(first.name, []).append(praise)

    name_first(models, lambda m: m.mrr.get("fb15k-237"), "where entities have many triples (19 each in FB15k-237)")
    name_first(models, lambda m: m.mrr.get("wn18rr"), "where they have few (2 each in WN18RR)")
    name_first(models, lambda m: m.accuracy, "to tell true from false (FB13)")
    if whole:
        near = [m for m in whole if m.order[1] / len(GRAPHS) <= whole[0].order[1] / len(GRAPHS) + NEAR]
        name_first(
            near, lambda m: None if m.numbers is None else -m.numbers, f"for few numbers within {NEAR} of the best"
        )
        name_first(
            near, lambda m: None if m.seconds is None else -m.seconds, f"for little time within {NEAR} of the best"
        )
    return words


def _cells(found: Candidate) -> list[str]:
    ranked = [figure("mrr", found.mrr[graph]) if graph in found.mrr else "-" for graph in GRAPHS]
    judged = "-" if found.accuracy is None else figure("accuracy", found.accuracy)
    time = "-" if found.seconds is None else duration(found.seconds)
    numbers = "-" if found.numbers is None else f"{found.numbers / 1e6:.1f} M"
    return [title(found.name), *ranked, judged, time, numbers]
