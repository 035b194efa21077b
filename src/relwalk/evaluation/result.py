"""What a ranking found: a frozen value that keeps the ranks and prints itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from relwalk.display import Shown, caption, html_table
from relwalk.evaluation.metrics import Floats, RankMetrics, rank_metrics
from relwalk.graph.answers import SIDES, Side
from relwalk.graph.cardinality import cardinalities
from relwalk.graph.graph import Graph
from relwalk.graph.lists import Ints, Longs

RankRule = Literal["optimistic", "realistic", "pessimistic"]
RANK_RULES: tuple[RankRule, ...] = ("optimistic", "realistic", "pessimistic")
Sides = Literal["head", "tail", "both"]
ALL_SIDES: tuple[Sides, ...] = ("head", "tail", "both")


@dataclass(frozen=True)
class Protocol:
    """Under which rules the figures were made; printed with them."""

    split: str
    filtered: bool
    candidates: str
    shipped_lists: bool = False

    def __str__(self) -> str:
        known = (
            "filtered (known answers of train, valid and test left out)" if self.filtered else "raw (nothing left out)"
        )
        source = "the data set's own lists" if self.shipped_lists else "train, valid and test"
        candidates = {
            "all": "all entities",
            "argument": f"the entities of the relation's argument ({source}: the paper's rule)",
            "argument-train": "the entities of the relation's argument in train",
        }[self.candidates]
        return f"{self.split} triples, {known}; candidates: {candidates}; every triple kept, both sides"

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"text": str(self)}


@dataclass(frozen=True, repr=False)
class SideRanks(Shown):
    """The rank of each triple's true head, or tail, by the two extreme rules for ties."""

    optimistic: Longs  # ties are below the truth
    pessimistic: Longs  # ties are above it
    candidates: Longs  # how many were ranked, the truth included

    def __str__(self) -> str:
        return f"of {len(self.optimistic):,} triples, median {np.median(self.by_rule('realistic')):g}"

    def by_rule(self, rule: RankRule) -> Floats:
        low, high = self.optimistic.astype(np.float64), self.pessimistic.astype(np.float64)
        return {"optimistic": low, "realistic": (low + high) / 2, "pessimistic": high}[rule]


@dataclass(frozen=True, eq=False, repr=False)
class RankingResult(Shown):
    """The ranks of a split, and every figure that follows from them."""

    graph: Graph
    triples: Ints
    protocol: Protocol
    ranks: Mapping[Side, SideRanks]

    def metrics(
        self, side: Sides = "both", rule: RankRule = "realistic", where: NDArray[np.bool_] | None = None
    ) -> RankMetrics:
        """The figures of one side, or of both together, over all triples or those of a mask."""
        chosen = where if where is not None else np.ones(len(self.triples), bool)
        sides = SIDES if side == "both" else (side,)
        ranks = np.concatenate([self.ranks[s].by_rule(rule)[chosen] for s in sides])
        candidates = np.concatenate([self.ranks[s].candidates[chosen] for s in sides])
        return rank_metrics(ranks, candidates)

    @property
    def mrr(self) -> float:
        return self.metrics().mrr

    @property
    def unseen_triples(self) -> int:
        """How many of the ranked triples hold an entity that train never shows."""
        return int(np.isin(self.triples[:, [0, 2]], self.graph.unseen).any(axis=1).sum())

    def by_relation(self, side: Sides = "both") -> dict[str, RankMetrics]:
        """The figures of each relation that occurs, most frequent first."""
        ids, counts = np.unique(self.triples[:, 1], return_counts=True)
        in_order = ids[np.argsort(-counts, kind="stable")]
        return {self.graph.relations.label(int(r)): self.metrics(side, where=self.triples[:, 1] == r) for r in in_order}

    def by_cardinality(self, side: Sides = "both") -> dict[str, RankMetrics]:
        """The figures of 1-1, 1-N, N-1 and N-N relations, of those that occur."""
        classes = np.array(cardinalities(self.graph))[self.triples[:, 1]]
        return {name: self.metrics(side, where=classes == name) for name in sorted(set(classes.tolist()))}

    def as_dict(self) -> dict[str, Any]:
        return {
            "graph": self.graph.name,
            "protocol": self.protocol.as_dict(),
            "metrics": {s: {rule: self.metrics(s, rule).as_dict() for rule in RANK_RULES} for s in ALL_SIDES},
            "triples": len(self.triples),
            "queries": 2 * len(self.triples),
            "unseen_triples": self.unseen_triples,
            "unseen_entities": len(self.graph.unseen),
            "by_relation": {
                name: {s: self.metrics(s, where=mask).as_dict() for s in ALL_SIDES}
                for name, mask in self._relation_masks()
            },
            "by_cardinality": {s: {name: m.as_dict() for name, m in self.by_cardinality(s).items()} for s in ALL_SIDES},
        }

    def _relation_masks(self) -> list[tuple[str, NDArray[np.bool_]]]:
        ids = np.unique(self.triples[:, 1]).tolist()
        return [(self.graph.relations.names[r], self.triples[:, 1] == r) for r in ids]

    def summary(self) -> str:
        m = self.metrics()
        how = f"{self.graph.name} {self.protocol.split}, {'filtered' if self.protocol.filtered else 'raw'}"
        return f"{how}, {self.protocol.candidates}: MRR {m.mrr:.3f}, H@10 {m.hits_at_10:.3f}, {m.queries:,} queries"

    def _repr_html_(self) -> str:
        rows = [(side, *_figures(self.metrics(side))) for side in ALL_SIDES]
        return caption(str(self.protocol)) + html_table(("", *FIGURES), rows)

    def __str__(self) -> str:
        lines = [str(self.protocol), *_table({side: self.metrics(side) for side in ALL_SIDES})]
        if self.unseen_triples:
            of = f"{self.unseen_triples:,} of the {len(self.triples):,} triples"
            lines.append(f"{of} hold an entity that train never shows")
        return "\n".join(lines)

    def details(self, most: int = 40) -> str:
        """The figures of each relation, most frequent first, and of each cardinality class, as text."""
        relations = self.by_relation()
        shown = {name: relations[name] for name in list(relations)[:most]}
        lines = _table({**shown, **{f"all {name}": m for name, m in self.by_cardinality().items()}})
        more = len(relations) - len(shown)
        return "\n".join([*lines, f"and {more:,} rarer relations (--json has them all)"] if more else lines)


FIGURES = {"MRR": 7, "MR": 9, "AMRI": 7, "H@1": 7, "H@3": 7, "H@10": 7, "queries": 10}  # and their widths


def _table(rows: Mapping[str, RankMetrics]) -> list[str]:
    width = min(60, max(12, *(len(name) + 2 for name in rows)))
    head = f"{'':{width}}" + "".join(f"{name:>{columns}}" for name, columns in FIGURES.items())
    lines = [head]
    for name, metrics in rows.items():
        figures = zip(_figures(metrics), FIGURES.values(), strict=True)
        lines.append(f"{_clip(name, width - 2):{width}}" + "".join(f"{text:>{columns}}" for text, columns in figures))
    return lines


def _clip(name: str, width: int) -> str:
    return name if len(name) <= width else "…" + name[1 - width :]


def _figures(m: RankMetrics) -> list[str]:
    """The figures of `FIGURES`, as text."""
    hits = [f"{share:.3f}" for share in (m.hits_at_1, m.hits_at_3, m.hits_at_10)]
    return [f"{m.mrr:.3f}", f"{m.mr:.1f}", f"{m.amri:.3f}", *hits, f"{m.queries:,}"]
