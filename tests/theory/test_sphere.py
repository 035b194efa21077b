"""The sphere: its exact integral, uniform and tilted directions, small steps."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from relwalk.errors import RelWalkError
from relwalk.theory.sphere import displaced, log_sphere_integral, tilted_directions, uniform_directions


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("dim", [8, 50, 100, 500])
def test_the_bessel_form_agrees_with_monte_carlo_within_its_error(dim: int) -> None:
    c = uniform_directions(60_000, dim, generator(dim)).double()
    for norm in (0.1, 1.0, 0.5 * math.sqrt(dim), math.sqrt(dim), 1.5 * math.sqrt(dim)):
        drawn = (norm * c[:, 0]).exp()
        error = float(drawn.std() / drawn.mean()) / math.sqrt(len(c))
        exact = float(log_sphere_integral(np.array([norm]), dim)[0])
        assert abs(float(drawn.mean().log()) - exact) < 4 * error


def test_known_closed_forms() -> None:
    x = np.array([0.0, 1e-6, 0.3, 2.0, 30.0, 300.0])
    safe = np.where(x > 0, x, 1)
    line = x + np.log1p(np.exp(-2 * x)) - math.log(2)  # two points: cosh
    ball = np.where(x > 0, x + np.log(-np.expm1(-2 * safe) / (2 * safe)), 0)  # the sphere of R³: sinh(x) / x
    assert np.allclose(log_sphere_integral(x, 1), line, atol=1e-9)
    assert np.allclose(log_sphere_integral(x, 3), ball, atol=1e-9)


def test_series_and_bessel_function_meet_where_one_takes_over() -> None:
    for dim in (500, 2000, 20_000):
        x = np.geomspace(1e-3, 4 * dim, 400)
        values = log_sphere_integral(x, dim)
        assert np.isfinite(values).all() and (np.diff(values) > 0).all()
        small = x < 0.05 * dim**0.75
        correction = x**4 / (4 * dim**2 * (dim + 2))
        assert np.allclose(values[small], (x**2 / (2 * dim) - correction)[small], rtol=1e-4, atol=1e-12)


def test_no_dimension_no_sphere() -> None:
    with pytest.raises(RelWalkError, match="dimension 0"):
        log_sphere_integral(np.ones(1), 0)


@pytest.mark.parametrize("dim", [1, 2, 8, 100])
@pytest.mark.parametrize("norm", [0.0, 1.0, 20.0])
def test_tilted_directions_have_the_mean_that_the_integral_says(dim: int, norm: float) -> None:
    v = torch.zeros(1, dim)
    v[0, -1] = norm
    c = tilted_directions(v, 20_000, generator())[0]
    assert torch.allclose(c.norm(dim=-1), torch.ones(len(c)), atol=1e-5)
    step = 1e-4  # the mean of v·c is the derivative of the log of the integral
    up, down = log_sphere_integral(np.array([norm + step, abs(norm - step)]), dim)
    mean = (up - down) / (2 * step) if norm else 0.0
    along = c[:, -1].double()
    assert abs(float(along.mean()) - mean) < 4.5 * float(along.std()) / math.sqrt(len(c)) + 1e-6


def test_a_step_is_as_long_as_asked_and_stays_on_the_sphere() -> None:
    c = uniform_directions(100, 7, generator()).double()
    for step in (0.0, 0.01, 0.5, 2.0):
        moved = displaced(c, step, generator(1))
        assert torch.allclose((moved - c).norm(dim=-1), torch.full((100,), step, dtype=torch.float64), atol=1e-7)
        assert torch.allclose(moved.norm(dim=-1), torch.ones(100, dtype=torch.float64))
    with pytest.raises(RelWalkError, match="from 0 to 2"):
        displaced(c, 3.0, generator())
