"""All of the theory's claims, measured on one model and its graph.

    orthogonality  similarity  concentration  lemma  correlation  theorem  limits  calibration

Each part is a frozen value, or `Absent` with the reason why it does not apply to this model or graph.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from relwalk.checks import DIRECTIONS, check_number, check_seed, check_whole
from relwalk.display import Shown, caption, folded
from relwalk.errors import choose
from relwalk.evaluation.calibration import calibration
from relwalk.evaluation.estimate import Absent
from relwalk.evaluation.probabilities import Probabilities
from relwalk.evaluation.ranking import CandidateRule, rank
from relwalk.evaluation.trained import Trained, model_and_graph
from relwalk.graph.graph import Graph
from relwalk.models.base import Scorer
from relwalk.models.relwalk import RelWalk
from relwalk.progress import OnProgress, Progress, part_of, shown, silent
from relwalk.theory.concentration import NOT_RELWALK, Concentration, concentration
from relwalk.theory.correlation import chance_by_relation, correlations, hits_by_relation
from relwalk.theory.lemma import shrinkage
from relwalk.theory.orthogonality import Orthogonality, orthogonality
from relwalk.theory.relation_similarity import relation_similarity
from relwalk.theory.sweep import limits
from relwalk.theory.theorem import check_theorem


class Part(Protocol):
    """What every part is: something that prints itself, in full and in a few words, and becomes JSON."""

    def summary(self) -> str: ...
    def as_dict(self) -> dict[str, Any]: ...


@dataclass(frozen=True, repr=False)
class Analysis(Shown):
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

    def summary(self) -> str:
        return f"{self.model} on {self.graph}: {', '.join(self.parts)}"

    def _repr_html_(self) -> str:
        parts = [folded(f"{name}: {part.summary()}", str(part)) for name, part in self.parts.items()]
        return caption(f"{self.model} on {self.graph}") + "".join(parts)

    def __str__(self) -> str:
        title = f"{self.model} on {self.graph}"
        return "\n\n".join([title, *(f"{name}\n{part}" for name, part in self.parts.items())])


def analyse(
    model: Scorer | Trained,
    graph: Graph | None = None,
    *,
    directions: int = 1000,
    sample: int = 10_000,
    step: float = 0.01,
    candidates: CandidateRule = "argument",
    seed: int = 0,
    parts: Collection[str] | None = None,
    progress: Progress = None,
) -> Analysis:
    """Measure `parts` (all of `PARTS` unless said) of the theory: `analyse(run)` or `analyse(model, graph)`.

    `directions` knowledge vectors, `sample` entities for the paper's sigma, `step` the length of c' - c,
    `candidates` the rule for the H@10 that is correlated ("argument" is the paper's). `progress`: see
    `relwalk.progress`.
    """
    fitted = getattr(model, "probabilities", None) if graph is None else None  # of the run, on its own graph
    model, graph = model_and_graph(model, graph, "analyse")
    check_whole("directions", directions, 2, DIRECTIONS)
    check_whole("sample", sample, 2)
    check_number("step", step, 0, 2)
    check_seed(seed)
    wanted = list(PARTS) if parts is None else [name for name in PARTS if name in parts]
    for name in parts or ():
        choose("part of the analysis", name, PARTS)
    bench = _Bench(model, graph, fitted, directions, sample, step, candidates, seed)
    found: dict[str, Part] = {}
    with shown(progress) as on_progress:
        for number, name in enumerate(wanted):
            bench.on_progress = part_of(on_progress, number, len(wanted), name)
            bench.on_progress(0, 1, name)
            found[name] = PARTS[name](bench)
    settings = {"directions": directions, "sample": sample, "step": step, "candidates": candidates, "seed": seed}
    return Analysis(f"{model.title} d={model.dim}", graph.name, settings, found)


@dataclass
class _Bench:
    """What the parts share; each measurement is made once, when first asked for."""

    model: Scorer
    graph: Graph
    probabilities: Probabilities | None
    directions: int
    sample: int
    step: float
    candidates: CandidateRule
    seed: int
    on_progress: OnProgress = silent  # of the part that is being measured

    @cached_property
    def matrices(self) -> Orthogonality | Absent:
        return orthogonality(self.model, self.graph, progress=self.on_progress)

    @cached_property
    def spread(self) -> Concentration | Absent:
        return concentration(
            self.model,
            self.graph,
            directions=self.directions,
            sample=self.sample,
            seed=self.seed,
            progress=self.on_progress,
        )

    def lemma(self) -> Part:
        if not isinstance(self.model, RelWalk):
            return Absent(NOT_RELWALK.format(self.model.title))
        plain = self.model.unfold()
        return shrinkage(
            plain.vectors().detach().cpu(),
            blocks=plain.blocks,
            directions=self.directions,
            seed=self.seed,
            progress=self.on_progress,
        )

    def correlation(self) -> Part:
        if isinstance(self.spread, Absent):
            return self.spread
        if len(self.graph.test) == 0:
            return Absent(f"graph {self.graph.name!r} has no test triples, so no H@10 to correlate.")
        ranks = rank(self.model, self.graph, "test", candidates=self.candidates, progress=self.on_progress)
        hits, chance = hits_by_relation(ranks), chance_by_relation(ranks)
        return correlations(hits, chance, self.matrices, self.spread, seed=self.seed)

    def theorem(self) -> Part:
        return check_theorem(
            self.model,
            self.graph,
            directions=self.directions,
            step=self.step,
            seed=self.seed,
            progress=self.on_progress,
        )


PARTS: dict[str, Callable[[_Bench], Part]] = {
    "orthogonality": lambda bench: bench.matrices,
    "similarity": lambda bench: relation_similarity(bench.model, bench.graph, seed=bench.seed),
    "concentration": lambda bench: bench.spread,
    "lemma": _Bench.lemma,
    "correlation": _Bench.correlation,
    "theorem": _Bench.theorem,
    "limits": lambda bench: limits(bench.model, step=bench.step, seed=bench.seed, progress=bench.on_progress),
    "calibration": lambda bench: calibration(
        bench.model, bench.graph, bench.probabilities, seed=bench.seed, progress=bench.on_progress
    ),
}
