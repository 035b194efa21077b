"""Does accuracy follow the theory's conditions? H@10 of each relation against nu_R, sigma_c, sigma_c' and √(σ²+σ'²).

    Pearson  r = cov(x, y) / sd(x) sd(y);   Spearman = Pearson of the ranks (ties share theirs)

With eleven relations r has an interval about ±0.6 wide and one of several columns is easily large by chance: each
coefficient stands beside its bootstrap interval (relations resampled) and its permutation p-value, two-sided, and
`significant` asks for p below 0.05 divided by the number of columns tried.

A trap: when the candidates are the argument's entities, a small argument makes both H@10 high and sigma what it is;
even an untrained model shows that correlation. So the argument's size is a column of its own, and the argument's
spread is also correlated with the accuracy above chance, (H@10 - a) / (1 - a), a = mean of min(1, 10 / candidates).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

from relwalk.display import Shown
from relwalk.errors import RelWalkError
from relwalk.evaluation.estimate import Absent, Estimate, Floats, estimate, resampling_weights
from relwalk.evaluation.result import RankingResult
from relwalk.theory.concentration import SETS, Concentration
from relwalk.theory.orthogonality import Orthogonality

BOOTSTRAP, PERMUTATIONS, FEWEST = 2000, 10_000, 4


@dataclass(frozen=True)
class Correlation:
    """Pearson and Spearman of two columns; None with a message where they do not exist."""

    name: str
    n: int
    pearson: Estimate | None = None
    pearson_p: float | None = None
    spearman: Estimate | None = None
    spearman_p: float | None = None
    message: str | None = None

    def as_dict(self) -> dict[str, Any]:
        estimates = {k: getattr(self, k).as_dict() if getattr(self, k) else None for k in ("pearson", "spearman")}
        return self.__dict__ | estimates

    def __str__(self) -> str:
        if self.pearson is None or self.spearman is None:
            return f"{self.name:30} n = {self.n}: {self.message}"
        return (
            f"{self.name:30} n = {self.n:<4} Pearson {_text(self.pearson)} p {self.pearson_p:.3f}   "
            f"Spearman {_text(self.spearman)} p {self.spearman_p:.3f}"
        )


def _text(r: Estimate) -> str:
    return f"{r.value:+.2f} [{r.low:+.2f}, {r.high:+.2f}]"


def correlate(name: str, x: Sequence[float | None], y: Sequence[float | None], *, seed: int = 0) -> Correlation:
    """Correlate the pairs in which both are known."""
    if len(x) != len(y):
        raise RelWalkError(f"{len(x)} values against {len(y)}: a correlation needs pairs")
    pairs = np.array([(a, b) for a, b in zip(x, y, strict=True) if a is not None and b is not None], np.float64)
    n = len(pairs)
    if n < FEWEST:
        return Correlation(name, n, message=f"{n} relations with both figures; a correlation needs {FEWEST}")
    a, b = pairs.T
    for what, column in ((name, a), ("the accuracy", b)):
        if float(np.ptp(column)) <= 1e-9 * float(np.abs(column).max(initial=0)):
            return Correlation(name, n, message=f"{what} is the same for every relation: there is nothing to correlate")
    pearson, pearson_p = _coefficient(a, b, seed)
    spearman, spearman_p = _coefficient(rankdata(a), rankdata(b), seed)
    return Correlation(name, n, pearson, pearson_p, spearman, spearman_p)


def _coefficient(a: Floats, b: Floats, seed: int) -> tuple[Estimate, float]:
    a, b = (a - a.mean()) / a.std(), (b - b.mean()) / b.std()
    r = float((a * b).mean())
    weights = resampling_weights(len(a), BOOTSTRAP, seed)
    drawn = _weighted(weights, a, b)
    shuffled = np.random.default_rng(seed).permuted(np.tile(b, (PERMUTATIONS, 1)), axis=1) @ a / len(a)
    p = (1 + int((np.abs(shuffled) >= abs(r) - 1e-12).sum())) / (1 + PERMUTATIONS)
    return estimate(r, drawn[np.isfinite(drawn)]), p


def _weighted(w: Floats, a: Floats, b: Floats) -> Floats:
    """Pearson of every resample; not a number for one that drew the same pair only."""
    ma, mb = w @ a, w @ b
    va, vb = w @ a**2 - ma**2, w @ b**2 - mb**2
    with np.errstate(divide="ignore", invalid="ignore"):
        r = (w @ (a * b) - ma * mb) / np.sqrt(va * vb)
    return np.asarray(np.clip(np.where((va > 1e-12) & (vb > 1e-12), r, np.nan), -1, 1))


@dataclass(frozen=True, repr=False)
class Correlations(Shown):
    """H@10 per relation against every condition of the theory, with a verdict."""

    hits: dict[str, float | None]  # relation -> H@10, None without test triples
    columns: tuple[Correlation, ...]
    verdict: str

    @property
    def significant(self) -> tuple[Correlation, ...]:
        return tuple(c for c in self.columns if c.pearson_p is not None and c.pearson_p < 0.05 / len(self.columns))

    def as_dict(self) -> dict[str, Any]:
        return {
            "applies": True,
            "relations": [
                {"relation": name, "hits@10": h, "message": None if h is not None else "no test triples"}
                for name, h in self.hits.items()
            ],
            "columns": [c.as_dict() for c in self.columns],
            "verdict": self.verdict,
        }

    def __str__(self) -> str:
        return "\n".join(["H@10 of each relation against", *(f"  {c}" for c in self.columns), self.verdict])


def _above(hits: float | None, chance: float | None) -> float | None:
    """Accuracy above that of a random order; None where even a random order is always right."""
    return None if hits is None or chance is None or chance > 1 - 1e-9 else (hits - chance) / (1 - chance)


def chance_by_relation(result: RankingResult, k: int = 10) -> dict[str, float | None]:
    """The H@k of a random order: min(1, k / candidates), averaged over each relation's questions."""
    return _averages(result, np.mean([np.minimum(1, k / result.ranks[side].candidates) for side in result.ranks], 0))


def hits_by_relation(result: RankingResult, k: int = 10) -> dict[str, float | None]:
    """H@k of each relation, both sides together; None for one that the split does not test."""
    return _averages(result, np.mean([result.ranks[side].by_rule("realistic") <= k for side in result.ranks], 0))


def _averages(result: RankingResult, of_triples: Floats) -> dict[str, float | None]:
    relation, names = result.triples[:, 1], result.graph.relations.names
    count = np.bincount(relation, minlength=len(names))
    total = np.bincount(relation, of_triples, minlength=len(names))
    return {name: float(total[r] / count[r]) if count[r] else None for r, name in enumerate(names)}


def correlations(
    hits: Mapping[str, float | None],
    chance: Mapping[str, float | None],
    matrices: Orthogonality | Absent,
    spread: Concentration | Absent,
    *,
    seed: int = 0,
) -> Correlations | Absent:
    """Correlate H@10 with what the two analyses measured."""
    if isinstance(matrices, Absent) or isinstance(spread, Absent):
        return matrices if isinstance(matrices, Absent) else spread  # type: ignore[return-value]
    columns: dict[str, dict[str, float | None]] = {"nu_R": {r.relation: r.nu for r in matrices.relations}}
    for of in SETS:
        sides = {"sigma_c": "head", "sigma_c'": "tail"}
        for symbol, side in sides.items():
            found = {r.relation: getattr(r, side)[of] for r in spread.relations}
            columns[f"{symbol} ({of})"] = {k: s.sigma.value if s and s.sigma else None for k, s in found.items()}
        columns[f"√(σ_c² + σ_c'²) ({of})"] = {r.relation: r.combined(of) for r in spread.relations}
    for side in ("head", "tail"):  # sums over arguments differ in length: their sigma is mostly that length
        found = {r.relation: getattr(r, side)["argument"] for r in spread.relations}
        columns[f"σ / mean, {side} (argument)"] = {k: s.relative.value if s else None for k, s in found.items()}
        columns[f"log size of {side} argument"] = {k: math.log(s.entities) if s else None for k, s in found.items()}
    y = list(hits.values())
    computed = [correlate(name, [column.get(r) for r in hits], y, seed=seed) for name, column in columns.items()]
    lift = [_above(h, chance.get(r)) for r, h in hits.items()]
    for name in ("σ / mean, head (argument)", "σ / mean, tail (argument)"):
        x = [columns[name].get(r) for r in hits]
        computed.append(correlate(f"{name.removesuffix(' (argument)')}: above chance", x, lift, seed=seed))
    return Correlations(dict(hits), tuple(computed), _verdict(tuple(computed), matrices.exact))


def _verdict(columns: tuple[Correlation, ...], exact: bool) -> str:
    tried = [c for c in columns if c.pearson is not None]
    passed = [c.name for c in tried if c.pearson_p is not None and c.pearson_p < 0.05 / len(columns)]
    text = (
        f"Of {len(tried)} columns these pass p < 0.05 / {len(columns)}: {'; '.join(passed)}."
        if passed
        else f"None of the {len(tried)} columns passes p < 0.05 / {len(columns)}: "
        f"at this number of relations the data show no correlation beyond chance."
    )
    if exact:
        text += (
            " Orthogonality is exact: nu_R is rounding, and sigma over all or sampled entities is the same law for"
            " every relation, so a coefficient of theirs, whatever its size, is noise."
        )
    text += " The argument's columns follow its size, which by itself decides much of H@10: read them above chance."
    return text
