"""Calibration: by hand, on a model that knows its own probabilities, and on one made too sure of itself."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from relwalk.evaluation.calibration import Calibration, calibration, expected_calibration_error, isotonic
from relwalk.evaluation.estimate import Absent
from relwalk.models import MODELS, build_model
from tests.conftest import TEST, TRAIN, VALID, make_graph


def test_expected_calibration_error_by_hand() -> None:
    confidence = np.array([0.95, 0.95, 0.55, 0.55])
    correct = np.array([1.0, 0.0, 1.0, 0.0])  # bins: |0.5 - 0.95|, |0.5 - 0.55|
    assert expected_calibration_error(confidence, correct, 10) == pytest.approx((0.45 + 0.05) / 2)
    assert expected_calibration_error(np.array([1.0, 0.0]), np.array([1.0, 0.0])) == 0


def test_pooling_adjacent_violators_by_hand() -> None:
    x = np.array([1.0, 2.0, 3.0, 4.0, 4.0])
    knots, values = isotonic(x, np.array([0.0, 1.0, 0.0, 1.0, 0.0]))
    assert knots.tolist() == [1, 2, 3, 4] and values.tolist() == [0, 0.5, 0.5, 0.5]
    assert isotonic(x, x)[1].tolist() == [1, 2, 3, 4]
    rng = np.random.default_rng(0)
    a, b = rng.random(500), rng.random(500)
    assert (np.diff(isotonic(a, b)[1]) >= 0).all() and isotonic(a, b)[1].mean() == pytest.approx(b.mean())


def certain_world(sure: float) -> tuple:
    """Test and valid answers are drawn from the model's own p(t | h, R); its scores are then multiplied."""
    generator = torch.Generator().manual_seed(0)
    model = build_model("rescal", 40, 1, 8, seed=0, options={})
    with torch.no_grad():
        model.entity.weight.mul_(2.0)
        heads = torch.randint(0, 40, (3000,), generator=generator)
        p = model.log_prob_tails(heads, torch.zeros(3000, dtype=torch.long)).exp()
        tails = torch.multinomial(p, 1, generator=generator)[:, 0]
        model.M.mul_(sure)
    rows = torch.stack([heads, torch.zeros_like(heads), tails], 1).tolist()
    from relwalk.graph.graph import Graph
    from relwalk.graph.vocabulary import Vocabulary

    def names(kind: str, n: int) -> Vocabulary:
        return Vocabulary(kind, tuple(f"{kind}{i}" for i in range(n)))

    arrays = [np.array(x, np.int32) for x in (rows[:10], rows[10:1500], rows[1500:])]
    return model, Graph("drawn", names("entity", 40), names("relation", 1), *arrays)


def test_a_model_made_too_sure_is_cooled_back() -> None:
    model, graph = certain_world(sure=4.0)
    found = calibration(model, graph)
    assert isinstance(found, Calibration)
    plain, cooled, mapped = found.methods
    assert found.temperature is not None and found.temperature > 1.5
    assert plain.confidence > plain.accuracy + 0.1
    assert cooled.ece.value < plain.ece.value / 2 and mapped.ece.value < plain.ece.value / 2
    assert cooled.nll is not None and plain.nll is not None and cooled.nll < plain.nll
    assert sum(b.count for b in plain.bins) == found.queries["test"] == 3000
    json.dumps(found.as_dict(), allow_nan=False)
    assert "isotonic" in str(found)


def test_newton_finds_the_best_temperature() -> None:
    from relwalk.evaluation.calibration import _Sample

    model, graph = certain_world(sure=3.0)
    valid = _Sample(model, graph, "valid", 500, 0)
    best = valid.best_inverse_temperature()
    at = [found.nll.mean() for found in valid.answers(*(best * f for f in (0.97, 1.0, 1.03)))]
    assert at[1] < at[0] and at[1] < at[2]


@pytest.mark.parametrize("name", sorted(MODELS))
def test_it_applies_to_every_model(name: str) -> None:
    graph = make_graph(TRAIN, VALID, TEST, relations=3)
    found = calibration(build_model(name, 5, 3, 4, seed=0, options={}), graph)
    assert isinstance(found, Calibration)
    assert [r.message for r in found.relations] == [None, None, "no test triples"]
    json.dumps(found.as_dict(), allow_nan=False)
    assert "no test triples" in str(found)


def test_without_test_or_valid_triples() -> None:
    model = build_model("relwalk", 5, 2, 4, seed=0, options={})
    found = calibration(model, make_graph(TRAIN))
    assert isinstance(found, Absent) and "no test triples" in found.reason
    some = calibration(model, make_graph(TRAIN, [], TEST))
    assert isinstance(some, Calibration) and some.temperature is None and len(some.methods) == 1
    assert some.note is not None and "no valid" in some.note
    json.dumps(some.as_dict(), allow_nan=False)
