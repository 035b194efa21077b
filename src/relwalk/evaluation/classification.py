"""Is a triple true, and how probably? One threshold per relation and a probability, from valid, judged on test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from relwalk.checks import check_number, check_seed
from relwalk.display import Shown, caption, html_table
from relwalk.evaluation.labelled import labelled
from relwalk.evaluation.metrics import Floats
from relwalk.evaluation.trained import Trained, model_and_graph
from relwalk.evaluation.truth import Truth, fit_truth, truth_error
from relwalk.graph.graph import Graph
from relwalk.graph.lists import Ints
from relwalk.models.base import Scorer
from relwalk.progress import Count, OnProgress, Progress, shown, silent

TripleScores = Callable[[Ints], Floats]
Bools = NDArray[np.bool_]
FOLDS = 5


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
    truth: Truth  # from scores to probabilities
    ece: float  # of those probabilities, on test
    brier: float

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
            "probabilities": {**self.truth.as_dict(), "ece": self.ece, "brier": self.brier},
        }

    def _protocol(self) -> str:
        return f"one threshold per relation, fitted on valid, judged on test; negatives: {self.negatives}"

    def _probabilities(self) -> str:
        usual = self.truth.base_rate == self.truth.labelled
        rate = f"{self.truth.base_rate:.3g}" + (
            " of triples are true, as in valid" if usual else " of triples are true"
        )
        return f"probabilities, if {rate}: ECE {self.ece:.4f}, Brier {self.brier:.4f}"

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
        lines.append(self._probabilities())
        return "\n".join(lines)


def classify(
    model: Scorer | Trained,
    graph: Graph | None = None,
    *,
    base_rate: float | None = None,
    seed: int = 0,
    progress: Progress = None,
) -> ClassificationResult:
    """Fit thresholds and probabilities on valid, judge test: `classify(run)` or `classify(model, graph)`.

    The negatives are the graph's own where it ships them, else made by seed. `base_rate` is how many of all triples
    are true, for their probabilities; left out, as many as in valid with its negatives. `progress`: see
    `relwalk.progress`.
    """
    check_seed(seed)
    if base_rate is not None:
        base_rate = check_number("base_rate", base_rate, 1e-9, 1 - 1e-9)
    model, graph = model_and_graph(model, graph, "classify")
    with shown(progress) as on_progress:
        return _classify(model, graph, base_rate, seed, on_progress)


def _classify(
    model: Scorer, graph: Graph, base_rate: float | None, seed: int, on_progress: OnProgress
) -> ClassificationResult:
    on_progress(0, 1, "making negatives")
    sets = {split: labelled(graph, split, seed) for split in ("valid", "test")}
    count = Count(on_progress, sum(len(triples) for triples, _ in sets.values()), "classifying")
    results = []
    sizes = len(graph.relations)
    for scores_of in (model_scores(model, count), count_scores(graph)):
        scores = {split: scores_of(triples) for split, (triples, _) in sets.items()}
        thresholds = fit_thresholds(sets["valid"][0], scores["valid"], sets["valid"][1], sizes)
        results.append((_judge(graph, *sets["test"], scores["test"], thresholds), thresholds, scores))
    (verdicts, thresholds, scores), (baseline, _, _) = results
    truth = _fit_truth(*sets["valid"], scores["valid"], sizes, base_rate, seed)
    p = truth.probability(scores["test"] - thresholds.per_relation[sets["test"][0][:, 1]])
    ece, brier = truth_error(p, sets["test"][1], base_rate)
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
        truth=truth,
        ece=ece,
        brier=brier,
    )


def _fit_truth(
    triples: Ints, labels: Bools, scores: Floats, relations: int, base_rate: float | None, seed: int
) -> Truth:
    """From scores less thresholds that other folds chose."""
    fold = np.random.default_rng([seed, FOLDS]).permutation(len(triples)) % FOLDS
    margins = np.empty(len(triples))
    for held in range(FOLDS):
        own = fold == held
        rest = ~own if not own.all() else own
        chosen = fit_thresholds(triples[rest], scores[rest], labels[rest], relations)
        margins[own] = scores[own] - chosen.per_relation[triples[own, 1]]
    return fit_truth(margins, labels, base_rate)


def fit_classifier(
    model: Scorer, graph: Graph, *, base_rate: float | None = None, seed: int = 0
) -> tuple[Thresholds, Truth]:
    """The thresholds and the probabilities that valid teaches, without a look at test."""
    triples, labels = labelled(graph, "valid", seed)
    scores = model_scores(model, Count(silent, len(triples), "classifying"))(triples)
    thresholds = fit_thresholds(triples, scores, labels, len(graph.relations))
    return thresholds, _fit_truth(triples, labels, scores, len(graph.relations), base_rate, seed)


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
