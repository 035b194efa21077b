"""All of the theory's claims, measured on one model and its graph.

    orthogonality  kinship  concentration  lemma  correlation  theorem  limits  calibration

Each part is a frozen value, or `Absent` with the reason why it does not apply to this model or graph.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from relwalk.errors import choose
from relwalk.evaluation.ranking import CandidateRule, rank
from relwalk.graph.graph import Graph
from relwalk.models.base import Scorer
from relwalk.models.relwalk import RelWalk
from relwalk.theory.calibration import calibration
from relwalk.theory.concentration import NOT_RELWALK, Concentration, concentration
from relwalk.theory.correlation import chance_by_relation, correlations, hits_by_relation
from relwalk.theory.estimate import Absent
from relwalk.theory.kinship import kinships
from relwalk.theory.lemma import shrinkage
from relwalk.theory.orthogonality import Orthogonality, orthogonality
from relwalk.theory.sweep import limits
from relwalk.theory.theorem import check_theorem


class Part(Protocol):
    """What every part is: something that prints itself and becomes JSON."""

    def as_dict(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Analysis:
    """The parts that were asked for, by name, with the settings that made them."""

    model: str
    graph: str
    settings: Mapping[str, Any]
    parts: Mapping[str, Part]

    def __getitem__(self, part: str) -> Part:
        return choose("part of the analysis", part, self.parts)

    def as_dict(self) -> dict[str, Any]:
        head = {"model": self.model, "graph": self.graph, "settings": dict(self.settings)}
        return head | {name: part.as_dict() for name, part in self.parts.items()}

    def __str__(self) -> str:
        title = f"{self.model} on {self.graph}"
        return "\n\n".join([title, *(f"{name}\n{part}" for name, part in self.parts.items())])


def analyse(
    model: Scorer,
    graph: Graph,
    *,
    directions: int = 1000,
    sample: int = 10_000,
    step: float = 0.01,
    candidates: CandidateRule = "argument",
    seed: int = 0,
    parts: Collection[str] | None = None,
    progress: Callable[[str], None] | None = None,
) -> Analysis:
    """Measure `parts` (all of `PARTS` unless said) of the theory on a trained model.

    `directions` knowledge vectors, `sample` entities for the paper's sigma, `step` the length of c' - c,
    `candidates` the rule for the H@10 that is correlated ("argument" is the paper's).
    """
    wanted = list(PARTS) if parts is None else [name for name in PARTS if name in parts]
    for name in parts or ():
        choose("part of the analysis", name, PARTS)
    bench = _Bench(model, graph, directions, sample, step, candidates, seed, progress)
    found: dict[str, Part] = {}
    for name in wanted:
        bench.tell(name)
        found[name] = PARTS[name](bench)
    settings = {"directions": directions, "sample": sample, "step": step, "candidates": candidates, "seed": seed}
    return Analysis(f"{model.title} d={model.dim}", graph.name, settings, found)


@dataclass
class _Bench:
    """What the parts share; each measurement is made once, when first asked for."""

    model: Scorer
    graph: Graph
    directions: int
    sample: int
    step: float
    candidates: CandidateRule
    seed: int
    progress: Callable[[str], None] | None

    def tell(self, what: str) -> None:
        if self.progress is not None:
            self.progress(what)

    @cached_property
    def matrices(self) -> Orthogonality | Absent:
        return orthogonality(self.model, self.graph)

    @cached_property
    def spread(self) -> Concentration | Absent:
        return concentration(
            self.model,
            self.graph,
            directions=self.directions,
            sample=self.sample,
            seed=self.seed,
            progress=self.progress,
        )

    def lemma(self) -> Part:
        if not isinstance(self.model, RelWalk):
            return Absent(NOT_RELWALK.format(self.model.title))
        return shrinkage(self.model.entity.detach().cpu(), directions=self.directions, seed=self.seed)

    def correlation(self) -> Part:
        if isinstance(self.spread, Absent):
            return self.spread
        if len(self.graph.test) == 0:
            return Absent(f"graph {self.graph.name!r} has no test triples, so no H@10 to correlate.")
        ranks = rank(self.model, self.graph, "test", candidates=self.candidates)
        hits, chance = hits_by_relation(ranks), chance_by_relation(ranks)
        return correlations(hits, chance, self.matrices, self.spread, seed=self.seed)

    def theorem(self) -> Part:
        return check_theorem(self.model, self.graph, directions=self.directions, step=self.step, seed=self.seed)


PARTS: dict[str, Callable[[_Bench], Part]] = {
    "orthogonality": lambda bench: bench.matrices,
    "kinship": lambda bench: kinships(bench.model, bench.graph, seed=bench.seed),
    "concentration": lambda bench: bench.spread,
    "lemma": _Bench.lemma,
    "correlation": _Bench.correlation,
    "theorem": _Bench.theorem,
    "limits": lambda bench: limits(bench.model, step=bench.step, seed=bench.seed),
    "calibration": lambda bench: calibration(bench.model, bench.graph, seed=bench.seed),
}
