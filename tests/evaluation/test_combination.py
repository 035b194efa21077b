"""All that speaks for a triple, weighed on valid: each part is what it is called, and together they judge better."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from relwalk.evaluation.classification import classify
from relwalk.evaluation.combination import FEWEST, combined_scores, fit_combination
from relwalk.evaluation.labelled import corrupt, labelled
from relwalk.evaluation.triple_features import FEATURES, triple_features
from relwalk.experiment import train
from relwalk.graph.graph import Graph
from relwalk.graph.read import read_graph
from relwalk.models import build_model
from relwalk.progress import Count, silent
from relwalk.runs.run import Run
from tests.entry import answer


def count() -> Count:
    return Count(silent, 1, "")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    graph = read_graph("world")
    return train(graph, dim=16, epochs=10, threads=1, out=tmp_path_factory.mktemp("combination") / "run")


@pytest.mark.parametrize("name", ["relwalk", "complex", "ntn"])
def test_every_feature_is_what_it_is_called(five: Graph, name: str) -> None:
    model = build_model(name, 5, 2, 4, seed=3, options={})
    triples = np.array([[0, 0, 1], [0, 0, 2], [4, 1, 2]], np.int32)
    found = dict(zip(FEATURES, triple_features(model, five, triples, count()).T, strict=True))
    h, r, t = (torch.from_numpy(column.astype(np.int64)) for column in triples.T)
    rows = torch.arange(3)
    prior = torch.tensor([3.0, 2.0]) / 5  # of the two relations in train
    with torch.no_grad():
        expected = {
            "score": model.scale * model.score(h, r, t),
            "log p(t | h, R)": model.log_prob_tails(h, r)[rows, t],
            "log p(h | R, t)": model.log_prob_heads(r, t)[rows, h],
            "log p(R | h, t)": model.log_prob_relations(h, t, prior)[rows, r],
        }
    for feature, values in expected.items():
        assert found[feature] == pytest.approx(values.numpy(), abs=1e-4), feature
    # train: 0 likes 1, 0 likes 2, 1 likes 2, 2 knows 3, 3 knows 0
    assert np.expm1(found["n(R, t)"]).round(6).tolist() == [1, 2, 0]
    assert np.expm1(found["n(h, R)"]).round(6).tolist() == [2, 2, 0]
    assert np.expm1(found["n(h)"]).round(6).tolist() == [2, 2, 0]
    assert np.expm1(found["n(t)"]).round(6).tolist() == [1, 2, 2]


def test_a_relation_with_enough_triples_has_slopes_of_its_own() -> None:
    """In relation 0 the first feature tells truth, in relation 1 its opposite; relation 2 is too rare to say."""
    rng = np.random.default_rng(0)
    n = 400
    relation = np.repeat([0, 1, 2], [n, n, FEWEST])
    x = rng.normal(size=(len(relation), 2))
    sign = np.where(relation == 1, -1.0, 1.0)
    labels = sign * x[:, 0] + 0.1 * rng.normal(size=len(relation)) > 0
    triples = np.stack([0 * relation, relation, 0 * relation], 1).astype(np.int32)
    found = fit_combination(triples, x, labels, 4)
    right = (found.log_odds(triples, x) > 0) == labels
    assert right[relation < 2].mean() > 0.95
    assert found.slopes[0, 0] > 1 > -1 > found.slopes[1, 0] and abs(found.slopes[0, 1]) < 0.5
    assert np.array_equal(found.slopes[2], found.slopes[3])  # both have the shared ones


def test_valid_is_judged_by_other_folds(run: Run) -> None:
    """Labels that mean nothing cannot be learned: judged by itself a triple would seem to be told well."""
    triples, labels = labelled(run.graph, "valid", 0)
    shuffled = np.random.default_rng(1).permutation(labels)
    judged, scores_of = combined_scores(run.model, run.graph, (triples, shuffled), 0, count())
    features = triple_features(run.model, run.graph, triples, count())
    itself = fit_combination(triples, features, shuffled, len(run.graph.relations)).log_odds(triples, features)
    assert ((itself > 0) == shuffled).mean() > ((judged > 0) == shuffled).mean() + 0.02
    assert ((judged > 0) == shuffled).mean() == pytest.approx(0.5, abs=0.05)
    assert scores_of(triples) == pytest.approx(itself)


def test_together_they_judge_better_than_the_score_alone(run: Run) -> None:
    plain, both = classify(run), classify(run, combine=True)
    assert plain.combined is None and both.combined is not None
    assert (both.model, both.baseline) == (plain.model, plain.baseline)  # the plain figures stand beside it
    assert both.combined.accuracy > plain.model.accuracy + 0.01
    found = both.as_dict()
    assert found["combined_accuracy"] == both.combined.accuracy and "combined_accuracy" not in plain.as_dict()
    weighted = sum(row["combined_accuracy"] * row["triples"] for row in found["by_relation"].values())
    assert weighted / both.test_triples == pytest.approx(both.combined.accuracy)
    assert "combined" in str(both) and "combined" not in str(plain) and both.ece < 0.1


def test_nothing_of_test_is_looked_at(run: Run) -> None:
    """The order of test, and which of it is false, changes no decision: thresholds and weights are valid's."""
    false = {f"{split}_negatives": corrupt(run.graph, split, seed=0) for split in ("valid", "test")}
    graph = replace(run.graph, **false)
    cut = replace(graph, test=graph.test[::2].copy(), test_negatives=graph.test[1::2].copy())
    whole, half = (classify(run.model, some, combine=True) for some in (graph, cut))
    assert np.array_equal(whole.thresholds.per_relation, half.thresholds.per_relation)


def test_the_command(run: Run, tmp_path: Path) -> None:
    found = answer("classify", run.path, "--combine")
    assert found["combined_accuracy"] > found["accuracy"]
    (tmp_path / "t.tsv").write_text("France\tborders\tSpain\nFrance\tborders\tJapan\n")
    judged = answer("classify", run.path, "--combine", "--triples", tmp_path / "t.tsv")["triples"]
    assert judged[0]["probability"] > judged[1]["probability"]


def test_a_part_of_fb13(benchmarks: Path) -> None:
    """With the data set's own false triples, some of them, before any training."""
    graph = read_graph("fb13", data_dir=benchmarks)
    rng = np.random.default_rng(0)
    names = ("valid", "valid_negatives", "test", "test_negatives")
    some = replace(graph, **{name: rng.permutation(getattr(graph, name))[:1500] for name in names})
    model = build_model("relwalk", len(graph.entities), len(graph.relations), 4, seed=0, options={})
    found = classify(model, some, combine=True)
    assert found.combined is not None and found.negatives == "the data set's own"
    # The model has learned nothing, and the counts are among what is weighed.
    assert found.model.accuracy < 0.6 < found.baseline.accuracy - 0.1
    assert found.combined.accuracy > found.baseline.accuracy - 0.02
