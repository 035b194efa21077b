"""The probability that a triple is true: right on test, wrong with labels shuffled, moved by the base rate."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import relwalk
from relwalk.errors import RelWalkError
from relwalk.evaluation.calibration import expected_calibration_error
from relwalk.evaluation.classification import classify
from relwalk.evaluation.judged import judge_triples
from relwalk.evaluation.truth import Truth, fit_truth, truth_error
from relwalk.graph.graph import Graph
from relwalk.runs.run import Run
from tests.entry import answer
from tests.entry import relwalk as command


@pytest.fixture(scope="module")
def run(world: Graph, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return relwalk.train(world, dim=16, epochs=8, out=tmp_path_factory.mktemp("runs") / "world", threads=1)


def drawn(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Margins, and labels that are true with the probability 1 / (1 + exp(0.5 - 2 x))."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=count)
    return x, rng.random(count) < 1 / (1 + np.exp(0.5 - 2 * x))


def test_what_is_fitted_is_right_and_what_is_not_is_wrong() -> None:
    (x, labels), (unseen, truth) = drawn(4000, 0), drawn(4000, 1)
    fitted = fit_truth(x, labels, None)
    ece, brier = truth_error(fitted.probability(unseen), truth, None)
    assert ece < 0.03
    shuffled = fit_truth(x, np.random.default_rng(2).permutation(labels), None)
    assert truth_error(shuffled.probability(unseen), truth, None)[1] > brier + 0.05
    unfitted = Truth(knots=(-9.0, 9.0), values=(-90.0, 90.0), labelled=0.5, base_rate=0.5)
    assert truth_error(unfitted.probability(unseen), truth, None)[0] > 0.1


def test_a_probability_rises_with_the_score_and_stays_within_bounds() -> None:
    x, labels = drawn(500, 0)
    fitted = fit_truth(x, labels, None)
    p = fitted.probability(np.array([-1e6, -1.0, 0.0, 1.0, 1e6]))
    assert (np.diff(p) >= 0).all() and p[1] < p[2] < p[3] and p.min() > 0 and p.max() < 1
    falling = fit_truth(-x, labels, None)
    assert (np.diff(falling.probability(np.sort(x))) >= 0).all()  # a higher score is never less probable
    one = fit_truth(np.zeros(3), np.array([True, True, True]), None)
    assert 0.5 < one.probability(np.zeros(1))[0] < 1


def test_the_base_rate_moves_the_odds_and_keeps_them_right() -> None:
    (x, labels), (unseen, truth) = drawn(6000, 0), drawn(6000, 1)
    usual, rare = fit_truth(x, labels, None), fit_truth(x, labels, 0.02)
    odds = [p / (1 - p) for p in (usual.probability(unseen), rare.probability(unseen))]
    ratio = (0.02 / 0.98) / (usual.labelled / (1 - usual.labelled))
    assert odds[1] / odds[0] == pytest.approx(np.full(len(unseen), ratio))
    assert truth_error(rare.probability(unseen), truth, 0.02)[0] < 0.01
    assert truth_error(usual.probability(unseen), truth, 0.02)[0] > 0.1  # the wrong base rate


def test_a_weighted_calibration_error_by_hand() -> None:
    said, right = np.array([0.9, 0.9, 0.1]), np.array([1.0, 0.0, 0.0])
    found = expected_calibration_error(said, right, 10, np.array([3.0, 1.0, 4.0]))
    assert found == pytest.approx((abs(3 * 0.1 - 0.9) + 4 * 0.1) / 8)


def test_classification_says_how_right_its_probabilities_are(run: Run) -> None:
    found = classify(run)
    assert found.ece < 0.06 and found.brier < 0.2
    assert found.truth.base_rate == found.truth.labelled == pytest.approx(0.5)
    assert "as in valid: ECE" in str(found)
    rare = classify(run, base_rate=0.01)
    assert rare.as_dict()["probabilities"]["base_rate"] == 0.01 and rare.brier < found.brier
    assert rare.model == found.model  # verdicts are the thresholds' own
    for wrong in (0.0, 1.0, -1, "half", float("nan")):
        with pytest.raises(RelWalkError, match="base_rate is"):
            classify(run, base_rate=wrong)


def test_triples_by_name_have_probabilities(run: Run) -> None:
    asked = [("France", "borders", "Spain"), ("France", "borders", "Japan"), ("Kyoto", "near", "Osaka")]
    found = judge_triples(run, asked)
    p = [triple.probability for triple in found]
    assert p[0] > p[1] and p[2] > 0.5 and [t.known for t in found] == [True, False, True]
    assert all(t.verdict == (t.probability >= 0.5) or abs(t.probability - 0.5) < 0.2 for t in found)
    rare = judge_triples(run, asked, base_rate=0.001)
    assert all(a.probability < b for a, b in zip(rare, p, strict=True))
    assert "0.5 of all triples" in str(found) and "0.001" in rare.note
    assert len(judge_triples(run, [])) == 0
    with pytest.raises(RelWalkError, match="expected \\(head, relation, tail\\)"):
        judge_triples(run, ["France"])  # type: ignore[list-item]


def test_the_command_line(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "triples.tsv"
    file.write_text("# two\nFrance\tborders\tSpain\nFrance\tborders\tJapan\n")
    found = answer("classify", run.path, "--triples", file, "--base-rate", 0.1)
    assert [t["head"] for t in found["triples"]] == ["France"] * 2 and found["base_rate"] == 0.1
    assert found["triples"][0]["probability"] > found["triples"][1]["probability"]
    text = command("classify", run.path, "--triples", file).stdout
    assert "probability" in text and "drawn, seed 0" in text
    file.write_text("France\tborders\tAtlantis\n")
    assert "Atlantis" in command("classify", run.path, "--triples", file, status=1).stderr
    file.write_text("# nothing\n")
    assert "found no triples" in command("classify", run.path, "--triples", file, status=1).stderr
    assert "base_rate is 2.0" in command("classify", run.path, "--base-rate", 2, status=1).stderr
    assert answer("classify", run.path, "--base-rate", 0.1)["probabilities"]["ece"] < 0.1


def test_predict_on_the_command_line(run: Run) -> None:
    asked = ("predict", run.path, "--head", "Kyoto", "--relation", "near")
    found = answer(*asked, "-k", 3, "--only-new")["answers"]
    assert all(0 < a["share"] < 1 and 0 < a["confidence"] < 1 for a in found)
    text = command(*asked).stdout
    assert "confidence" in text and "lower bound" in text
    raw = command(*asked, "--raw").stdout
    assert "lower bound" not in raw and answer(*asked, "--raw")["answers"][0]["share"] is None
    held = answer(*asked, "--coverage", 0.8)
    assert held["coverage"] == 0.8 and not any(a["known"] for a in held["answers"])
    assert "leave out k" in command(*asked, "--coverage", 0.8, "-k", 3, status=1).stderr
