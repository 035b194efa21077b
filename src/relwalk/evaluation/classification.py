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
from relwalk.evaluation.combination import combined_scores
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
    """Triple classification, with the count baseline beside it; prints itself.

    `combined` is the same by all that speaks for a triple (`relwalk.evaluation.combination`), where that was asked for;
    thresholds and probabilities are then of that.
    """

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
    combined: Verdicts | None = None

    @property
    def _columns(self) -> dict[str, Verdicts]:
        together = {} if self.combined is None else {"combined": self.combined}
        return {"accuracy": self.model, **together, "count": self.baseline}

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
            **({} if self.combined is None else _named("combined", self.combined)),
            "test_triples": self.test_triples,
            "valid_triples": self.valid_triples,
            "by_relation": {
                name: {"accuracy": a, "triples": n, "baseline_accuracy": self.baseline.per_relation[name][0]}
                | ({} if self.combined is None else {"combined_accuracy": self.combined.per_relation[name][0]})
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
        together = "" if self.combined is None else f"combined {self.combined.accuracy:.4f}, "
        figures = f"accuracy {self.model.accuracy:.4f} ({together}count {self.baseline.accuracy:.4f})"
        return f"{self.graph}: {figures}, F1 {self.model.f1:.4f}, {self.test_triples:,} test triples"

    def _rows(self) -> list[tuple[str, ...]]:
        """Each relation and all together: accuracy by each way, and triples."""
        rows = [
            (name, *(f"{v.per_relation[name][0]:.4f}" for v in self._columns.values()), f"{n:,}")
            for name, (_, n) in self.model.per_relation.items()
        ]
        return [*rows, ("overall", *(f"{v.accuracy:.4f}" for v in self._columns.values()), f"{self.test_triples:,}")]

    def _repr_html_(self) -> str:
        return caption(self._protocol()) + html_table(("", *self._columns, "triples"), self._rows())

    def __str__(self) -> str:
        width = max(24, *(len(name) + 2 for name in self.model.per_relation))
        rows = [("", *self._columns, "triples"), *self._rows()]
        lines = [self._protocol()]
        lines += [f"{row[0]:{width}}" + "".join(f"{cell:>10}" for cell in row[1:]) for row in rows]
        if self.combined is not None:
            lines.append(
                "combined: score, log p(t | h, R), log p(h | R, t), log p(R | h, t) and counts, weighed on valid for "
                f"each relation: F1 {self.combined.f1:.4f}, ROC-AUC {self.combined.roc_auc:.4f}"
            )
        lines.append(
            f"F1 {self.model.f1:.4f}, ROC-AUC {self.model.roc_auc:.4f}; "
            "count: judged by how often train shows the tail with the relation"
        )
        lines.append(self._probabilities())
        return "\n".join(lines)


def _named(prefix: str, v: Verdicts) -> dict[str, float]:
    return {f"{prefix}_{name}": getattr(v, name) for name in ("accuracy", "f1", "roc_auc")}


def classify(
    model: Scorer | Trained,
    graph: Graph | None = None,
    *,
    combine: bool = False,
    base_rate: float | None = None,
    seed: int = 0,
    progress: Progress = None,
) -> ClassificationResult:
    """Fit thresholds and probabilities on valid, judge test: `classify(run)` or `classify(model, graph)`.

    With `combine` triples are also judged by all that speaks for them: the score, log p(t | h, R), log p(h | R, t),
    log p(R | h, t) and counts of train, weighed on valid for each relation; the plain score's figures stand beside it.

    The negatives are the graph's own where it ships them, else made by seed. `base_rate` is how many of all triples
    are true, for their probabilities; left out, as many as in valid with its negatives. `progress`: see
    `relwalk.progress`.
    """
    check_seed(seed)
    if base_rate is not None:
        base_rate = check_number("base_rate", base_rate, 1e-9, 1 - 1e-9)
    model, graph = model_and_graph(model, graph, "classify")
    with shown(progress) as on_progress:
        return _classify(model, graph, combine, base_rate, seed, on_progress)


def _classify(
    model: Scorer, graph: Graph, combine: bool, base_rate: float | None, seed: int, on_progress: OnProgress
) -> ClassificationResult:
    on_progress(0, 1, "making negatives")
    sets = {split: labelled(graph, split, seed) for split in ("valid", "test")}
    total = sum(len(triples) for triples, _ in sets.values())
    count = Count(on_progress, total * (1 + combine), "classifying")
    (valid, labels), (test, truths) = sets["valid"], sets["test"]
    plain, counted = model_scores(model, count), count_scores(graph)
    ways = [(plain(valid), plain(test)), (counted(valid), counted(test))]
    if combine:
        judged, scores_of = combined_scores(model, graph, sets["valid"], seed, count)
        ways.append((judged, scores_of(test)))
    results = []
    for of_valid, of_test in ways:
        fitted = fit_thresholds(valid, of_valid, labels, len(graph.relations))
        results.append((_judge(graph, test, truths, of_test, fitted), fitted))
    chosen = 2 if combine else 0
    thresholds, (of_valid, of_test) = results[chosen][1], ways[chosen]
    truth = _fit_truth(valid, labels, of_valid, len(graph.relations), base_rate, seed)
    ece, brier = truth_error(truth.probability(of_test - thresholds.per_relation[test[:, 1]]), truths, base_rate)
    seen = np.unique(sets["test"][0][:, 1])
    shipped = graph.valid_negatives is not None and graph.test_negatives is not None
    return ClassificationResult(
        graph=graph.name,
        model=results[0][0],
        baseline=results[1][0],
        combined=results[2][0] if combine else None,
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
    model: Scorer, graph: Graph, *, combine: bool = False, base_rate: float | None = None, seed: int = 0
) -> tuple[TripleScores, Thresholds, Truth]:
    """How triples are scored, and the thresholds and probabilities that valid teaches, without a look at test."""
    triples, labels = labelled(graph, "valid", seed)
    count = Count(silent, len(triples), "classifying")
    scores_of = model_scores(model, count)
    if combine:
        scores, scores_of = combined_scores(model, graph, (triples, labels), seed, count)
    else:
        scores = scores_of(triples)
    thresholds = fit_thresholds(triples, scores, labels, len(graph.relations))
    return scores_of, thresholds, _fit_truth(triples, labels, scores, len(graph.relations), base_rate, seed)


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
