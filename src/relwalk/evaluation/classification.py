"""Is a triple true? One threshold per relation, chosen on validation, judged on test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from relwalk.checks import check_seed
from relwalk.display import Shown, caption, html_table
from relwalk.errors import GraphError
from relwalk.evaluation.metrics import Floats
from relwalk.evaluation.trained import Trained, model_and_graph
from relwalk.graph.graph import Graph, Split
from relwalk.graph.lists import Ints
from relwalk.models.base import Scorer
from relwalk.progress import Count, OnProgress, Progress, shown

TripleScores = Callable[[Ints], Floats]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False, repr=False)
class Thresholds(Shown):
    """A triple counts as true when its score is at least the threshold of its relation."""

    per_relation: Floats  # (relations,) the global one where validation shows nothing of the relation
    overall: float
    fitted: Bools  # (relations,)

    def __str__(self) -> str:
        return f"{int(self.fitted.sum()):,} of {len(self.fitted):,} relations fitted, {self.overall:.4g} for all others"

    def decide(self, triples: Ints, scores: Floats) -> Bools:
        return np.asarray(scores >= self.per_relation[triples[:, 1]])


def fit_thresholds(triples: Ints, scores: Floats, labels: Bools, relations: int) -> Thresholds:
    """The accuracy-optimal threshold of each relation, and one over all for relations without examples."""
    overall = best_threshold(scores, labels)
    per_relation, fitted = np.full(relations, overall), np.zeros(relations, bool)
    for relation in np.unique(triples[:, 1]).tolist():
        own = triples[:, 1] == relation
        per_relation[relation], fitted[relation] = best_threshold(scores[own], labels[own]), True
    return Thresholds(per_relation, overall, fitted)


def best_threshold(scores: Floats, labels: Bools) -> float:
    """The threshold with the most right decisions, exactly: every cut between two scores is tried at once.

    Of equally good cuts the one in the widest gap is taken, at its middle; a cut never parts equal scores.
    """
    order = np.argsort(scores, kind="stable")
    s, true = scores[order], labels[order]
    # With `cut` scores below the threshold: the false ones below it and the true ones above it are right.
    right = np.concatenate([[0], np.cumsum(~true)]) + true.sum() - np.concatenate([[0], np.cumsum(true)])
    edges = np.concatenate([[-np.inf], s, [np.inf]])
    gap = edges[1:] - edges[:-1]
    right = np.where(gap > 0, right, -1)
    best = right == right.max()
    cut = int(np.argmax(np.where(best, gap, -1.0)))
    low, high = edges[cut], edges[cut + 1]
    if np.isinf(low) or np.isinf(high):
        return float(high if np.isinf(low) else np.nextafter(low, np.inf))
    return float(high) if (low + high) / 2 <= low else float((low + high) / 2)


@dataclass(frozen=True)
class Verdicts:
    """Right and wrong decisions on the test triples, for one way of scoring."""

    accuracy: float
    f1: float
    roc_auc: float
    per_relation: dict[str, tuple[float, int]]  # accuracy, test triples


@dataclass(frozen=True, eq=False, repr=False)
class ClassificationResult(Shown):
    """Triple classification, with the count baseline beside it; prints itself."""

    graph: str
    model: Verdicts
    baseline: Verdicts
    negatives: str  # where the false triples came from
    test_triples: int
    valid_triples: int
    unfitted: tuple[str, ...]  # relations judged by the global threshold
    thresholds: Thresholds

    def as_dict(self) -> dict[str, Any]:
        return {
            "graph": self.graph,
            "protocol": self._protocol(),
            "accuracy": self.model.accuracy,
            "f1": self.model.f1,
            "roc_auc": self.model.roc_auc,
            "baseline_accuracy": self.baseline.accuracy,
            "baseline_f1": self.baseline.f1,
            "baseline_roc_auc": self.baseline.roc_auc,
            "test_triples": self.test_triples,
            "valid_triples": self.valid_triples,
            "by_relation": {
                name: {"accuracy": a, "triples": n, "baseline_accuracy": self.baseline.per_relation[name][0]}
                for name, (a, n) in self.model.per_relation.items()
            },
            "relations_without_validation": list(self.unfitted),
        }

    def _protocol(self) -> str:
        return f"one threshold per relation, fitted on valid, judged on test; negatives: {self.negatives}"

    def summary(self) -> str:
        figures = f"accuracy {self.model.accuracy:.4f} (count {self.baseline.accuracy:.4f})"
        return f"{self.graph}: {figures}, F1 {self.model.f1:.4f}, {self.test_triples:,} test triples"

    def _repr_html_(self) -> str:
        counted = self.baseline.per_relation
        rows = [
            (name, f"{a:.4f}", f"{counted[name][0]:.4f}", f"{n:,}") for name, (a, n) in self.model.per_relation.items()
        ]
        rows.append(
            ("overall", f"{self.model.accuracy:.4f}", f"{self.baseline.accuracy:.4f}", f"{self.test_triples:,}")
        )
        return caption(self._protocol()) + html_table(("", "accuracy", "count", "triples"), rows)

    def __str__(self) -> str:
        width = max(24, *(len(name) + 2 for name in self.model.per_relation))
        lines = [self._protocol(), f"{'':{width}}{'accuracy':>10}{'count':>8}{'triples':>10}"]
        lines += [
            f"{name:{width}}{a:>10.4f}{self.baseline.per_relation[name][0]:>8.4f}{n:>10,}"
            for name, (a, n) in self.model.per_relation.items()
        ]
        lines.append(
            f"{'overall':{width}}{self.model.accuracy:>10.4f}{self.baseline.accuracy:>8.4f}{self.test_triples:>10,}"
        )
        lines.append(
            f"F1 {self.model.f1:.4f}, ROC-AUC {self.model.roc_auc:.4f}; "
            "count: judged by how often train shows the tail with the relation"
        )
        return "\n".join(lines)


def classify(
    model: Scorer | Trained, graph: Graph | None = None, *, seed: int = 0, progress: Progress = None
) -> ClassificationResult:
    """Fit thresholds on valid, judge test: `classify(run)` or `classify(model, graph)`.

    The negatives are the graph's own where it ships them, else made by seed. `progress`: see `relwalk.progress`.
    """
    check_seed(seed)
    model, graph = model_and_graph(model, graph, "classify")
    with shown(progress) as on_progress:
        return _classify(model, graph, seed, on_progress)


def _classify(model: Scorer, graph: Graph, seed: int, on_progress: OnProgress) -> ClassificationResult:
    on_progress(0, 1, "making negatives")
    sets = {split: _labelled(graph, split, seed) for split in ("valid", "test")}
    count = Count(on_progress, sum(len(triples) for triples, _ in sets.values()), "classifying")
    results = []
    for scores_of in (model_scores(model, count), count_scores(graph)):
        scores = {split: scores_of(triples) for split, (triples, _) in sets.items()}
        thresholds = fit_thresholds(sets["valid"][0], scores["valid"], sets["valid"][1], len(graph.relations))
        results.append((_judge(graph, *sets["test"], scores["test"], thresholds), thresholds))
    (verdicts, thresholds), (baseline, _) = results
    seen = np.unique(sets["test"][0][:, 1])
    shipped = graph.valid_negatives is not None and graph.test_negatives is not None
    return ClassificationResult(
        graph=graph.name,
        model=verdicts,
        baseline=baseline,
        negatives="the data set's own" if shipped else f"made from argument candidates, seed {seed}",
        test_triples=len(sets["test"][0]),
        valid_triples=len(sets["valid"][0]),
        unfitted=tuple(graph.relations.names[r] for r in seen.tolist() if not thresholds.fitted[r]),
        thresholds=thresholds,
    )


def model_scores(model: Scorer, count: Count, block: int = 1 << 16) -> TripleScores:
    """Scores of triples by a model, in blocks that are counted."""
    device = next(model.parameters(), torch.zeros(0)).device

    def scores(triples: Ints) -> Floats:
        rows = torch.from_numpy(triples.astype(np.int64)).to(device)
        parts = []
        with torch.inference_mode():
            for part in torch.split(rows, block):
                parts.append(model.score(*part.unbind(1)))
                count.add(len(part))
        return torch.cat(parts).double().cpu().numpy()

    return scores


def count_scores(graph: Graph) -> TripleScores:
    """The baseline that learns nothing: how often train shows this tail with this relation."""
    keys, counts = np.unique(_tail_keys(graph.train, graph), return_counts=True)

    def scores(triples: Ints) -> Floats:
        wanted = _tail_keys(triples, graph)
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.where(keys[place] == wanted, counts[place], 0).astype(np.float64)

    return scores


def _tail_keys(triples: Ints, graph: Graph) -> NDArray[np.int64]:
    return triples[:, 1].astype(np.int64) * len(graph.entities) + triples[:, 2]


def corrupt(graph: Graph, split: Split, *, seed: int) -> Ints:
    """One false triple per true one: head or tail replaced by another entity of that argument.

    Nothing known to be true is made; a triple for which no such entity exists is left without a negative.
    """
    rng = np.random.default_rng([seed, len(split)])
    triples = graph.split(split)
    tail_side = rng.random(len(triples)) < 0.5
    false = triples.copy()
    pending = np.arange(len(triples))
    known = np.unique(_keys(graph.triples, graph))
    for _ in range(20):
        column = np.where(tail_side[pending], 2, 0)
        for side, where in (("head", 0), ("tail", 2)):
            rows = pending[column == where]
            lists = graph.argument_lists[side]  # type: ignore[index]
            starts, lengths = lists.offsets[triples[rows, 1]], lists.lengths[triples[rows, 1]]
            false[rows, where] = lists.values[starts + (rng.random(len(rows)) * lengths).astype(np.int64)]
        bad = np.isin(_keys(false[pending], graph), known)
        false[pending[bad]] = triples[pending[bad]]
        pending = pending[bad]
        tail_side[pending] = ~tail_side[pending]  # the other side may have room
        if len(pending) == 0:
            break
    return np.delete(false, pending, axis=0)


def _keys(triples: Ints, graph: Graph) -> NDArray[np.int64]:
    n = len(graph.entities)
    return (triples[:, 1].astype(np.int64) * n + triples[:, 0]) * n + triples[:, 2]


def _labelled(graph: Graph, split: Split, seed: int) -> tuple[Ints, Bools]:
    positives, negatives = graph.split(split), graph.negatives(split)
    if len(positives) == 0:
        raise GraphError(f"graph {graph.name!r} has no {split} triples: thresholds need valid, figures need test.")
    if negatives is None:
        negatives = corrupt(graph, split, seed=seed)
    labels = np.concatenate([np.ones(len(positives), bool), np.zeros(len(negatives), bool)])
    return np.concatenate([positives, negatives]), labels


def _judge(graph: Graph, triples: Ints, labels: Bools, scores: Floats, thresholds: Thresholds) -> Verdicts:
    decided = thresholds.decide(triples, scores)
    right = decided == labels
    true_positives = int((decided & labels).sum())
    per_relation = {
        graph.relations.label(r): (float(right[own].mean()), int(own.sum()))
        for r in np.unique(triples[:, 1]).tolist()
        for own in [triples[:, 1] == r]
    }
    f1 = 2 * true_positives / max(int(decided.sum()) + int(labels.sum()), 1)
    # A shift by the threshold makes the scores of different relations comparable.
    auc = roc_auc(scores - thresholds.per_relation[triples[:, 1]], labels)
    return Verdicts(float(right.mean()), f1, auc, per_relation)


def roc_auc(scores: Floats, labels: Bools) -> float:
    """The chance that a true triple scores above a false one, ties counting half (Mann-Whitney)."""
    positives, negatives = int(labels.sum()), int((~labels).sum())
    if positives == 0 or negatives == 0:
        return 0.5
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    mean_rank = np.cumsum(counts) - (counts - 1) / 2
    return float((mean_rank[place][labels].sum() - positives * (positives + 1) / 2) / (positives * negatives))
