"""The theorem against Monte Carlo: where it holds, where it stops, and on whom it says nothing."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch

from relwalk.errors import RelWalkError
from relwalk.evaluation.estimate import Absent
from relwalk.models import RelWalk, build_model
from relwalk.models.orthogonal import random_rotations
from relwalk.theory.sweep import Sweep, limits, sweep
from relwalk.theory.theorem import TheoremCheck, check_theorem, fit, log_probs
from tests.conftest import TEST, TRAIN, VALID, make_graph


def test_a_fit_by_hand() -> None:
    found = fit(np.array([0.0, 1.0, 2.0]), np.array([1.0, 3.0, 5.0]))
    assert (found.slope, found.r2, found.bias, found.largest_error) == pytest.approx((2, 1, 2, 3))
    flat = fit(np.zeros(4), np.arange(4.0))
    assert flat.slope is None and flat.r2 is None and flat.largest_error == 3


def test_with_one_entity_everything_is_certain() -> None:
    R = torch.eye(3)
    one = torch.zeros(1, dtype=torch.long)
    found = log_probs(
        torch.ones(1, 3), R, R, one, one, step=0.0, directions=50, draws=50, generator=torch.Generator().manual_seed(0)
    )
    assert found.truth == pytest.approx([0], abs=0.6)  # Z_c is exp(h·c) itself: nothing concentrates
    assert found.plain == pytest.approx([0], abs=1e-5)


@pytest.mark.parametrize("dim", [8, 50, 100, 500])
def test_tilted_and_plain_draws_agree_within_their_errors(dim: int) -> None:
    generator = torch.Generator().manual_seed(dim)
    entity = 0.5 * torch.randn(300, dim, generator=generator)
    R1, R2 = random_rotations(2, dim, generator)
    pairs = torch.randint(0, 300, (2, 12), generator=generator)
    found = log_probs(entity, R1, R2, *pairs, step=0.1, directions=4000, draws=400, generator=generator)
    gap = np.abs(found.plain - found.truth) / np.hypot(found.plain_error, found.truth_error)
    assert (found.plain_sample > 100).all() and gap.max() < 4


def test_the_joint_sums_to_one() -> None:
    generator = torch.Generator().manual_seed(5)
    entity = torch.randn(12, 6, generator=generator)
    R1, R2 = random_rotations(2, 6, generator)
    every = torch.cartesian_prod(torch.arange(12), torch.arange(12)).T
    found = log_probs(entity, R1, R2, *every, step=0.05, directions=500, draws=500, generator=generator)
    assert np.exp(found.plain).sum() == pytest.approx(1, abs=1e-6)
    assert np.exp(found.truth).sum() == pytest.approx(1, abs=0.02)


def test_the_theorem_holds_for_small_norms_and_fails_for_large_ones() -> None:
    found = sweep({"norm": (0.25, 2.0)}, base={"dim": 50}, pairs=32, draws=64, directions=400)
    small, large = found.rows
    assert small.holds and small.theorem.slope == pytest.approx(1, abs=0.1) and small.theorem.r2 > 0.95
    assert not large.holds and found.breaks_at == {"norm": 2.0}
    assert large.exact.largest_error < large.theorem.largest_error
    json.dumps(found.as_dict(), allow_nan=False)
    assert "norm 2" in str(found)


def test_the_limits_of_a_model_say_where_it_stands() -> None:
    model = trained_like(3.0)
    found = limits(model, step=0.02)
    assert isinstance(found, Sweep) and found.here is not None
    assert found.here["norm"] == pytest.approx(3, rel=0.1) and found.here["step"] == 0.02
    assert found.base["dim"] == model.dim == 20 and found.breaks_at["norm"] is not None
    assert {row.changed for row in found.rows} == {"norm", "dim", "entities", "step"}
    errors = [row.theorem.largest_error for row in found.rows_of("norm")]
    assert errors[-1] > 10 * errors[0] and found.here["norm"] > found.breaks_at["norm"]
    assert "norm 3.0" in found.verdict or "norm 2.9" in found.verdict
    assert json.loads(json.dumps(found.as_dict(), allow_nan=False))["here"]["entities"] == 26
    assert isinstance(limits(build_model("distmult", 5, 2, 4, seed=0, options={})), Absent)


def trained_like(scale: float, orthogonality: str = "exact") -> RelWalk:
    return RelWalk(
        26, 2, 20, generator=torch.Generator().manual_seed(0), orthogonality=orthogonality, entity_scale=scale
    )


@pytest.mark.parametrize("orthogonality", ["exact", "soft"])
def test_a_model_is_checked_on_true_and_random_triples(orthogonality: str) -> None:
    graph = make_graph(TRAIN, VALID, TEST, entities=26)
    near = check_theorem(trained_like(0.05, orthogonality), graph, directions=200)
    far = check_theorem(trained_like(3.0, orthogonality), graph, directions=200)
    assert isinstance(near, TheoremCheck) and isinstance(far, TheoremCheck)
    assert near.triples == 8 and len(near.relations) == 2 and near.holds and not far.holds
    assert near.plain_gap is not None and near.plain_gap < 5
    assert math.isclose(near.squared["random"], 2 * 0.05**2, rel_tol=0.5)
    assert "does not hold" in str(far)
    assert [r.relation for r in far.relations] == ["likes", "knows"] and sum(r.triples for r in far.relations) == 16
    assert max(r.theorem_error for r in far.relations) == far.theorem["both"].largest_error
    assert max(r.exact_error for r in far.relations) == far.exact["both"].largest_error
    json.dumps([near.as_dict(), far.as_dict()], allow_nan=False)


def test_other_models_and_wrong_numbers() -> None:
    graph = make_graph(TRAIN)
    found = check_theorem(build_model("transe", 5, 2, 4, seed=0, options={}), graph)
    assert isinstance(found, Absent) and "TransE" in found.reason
    with pytest.raises(RelWalkError, match="0 triples"):
        check_theorem(trained_like(0.1), graph, triples=0)
