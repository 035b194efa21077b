from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from relwalk.errors import UnknownChoice
from relwalk.models.orthogonal import STARTS, defect, nearest_orthogonal, soft_penalty, start


def worst(matrices: torch.Tensor) -> float:
    return float(defect(matrices).abs().max())


@pytest.mark.parametrize(("name", "dim"), list(itertools.product(STARTS, [1, 2, 7, 64])))
def test_every_start_is_orthogonal(name: str, dim: int) -> None:
    assert worst(start(name, 6, dim, torch.Generator().manual_seed(0))) < 1e-5


@pytest.mark.parametrize("name", ["signs", "rotations"])
def test_random_starts_reach_both_components(name: str) -> None:
    determinants = torch.linalg.det(start(name, 40, 5, torch.Generator().manual_seed(1)))
    assert (determinants > 0.9).any()
    assert (determinants < -0.9).any()


def test_an_unknown_start_is_named() -> None:
    with pytest.raises(UnknownChoice, match="signs"):
        start("sign", 1, 2, torch.Generator())


@settings(max_examples=30, deadline=None)
@given(dim=st.integers(1, 20), size=st.floats(0, 30), seed=st.integers(0, 1000))
def test_the_nearest_orthogonal_matrix_is_the_polar_factor(dim: int, size: float, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    away = start("rotations", 3, dim, generator) + size * torch.randn(3, dim, dim, generator=generator) / dim
    found = nearest_orthogonal(away)
    assert worst(found) < 1e-5
    u, s, vh = torch.linalg.svd(away.double())
    if float(s.min()) > 0.05:  # else the factor is not well defined
        torch.testing.assert_close(found.double(), u @ vh, rtol=0, atol=2e-3)


def test_the_soft_penalty_is_the_papers() -> None:
    broken = torch.tensor([[[2.0, 0.0], [1.0, 1.0]]])  # RᵀR - I = [[4, 1], [1, 0]]
    assert float(soft_penalty(broken)) == pytest.approx(16 + 1 + 1)
    assert float(soft_penalty(torch.eye(3).unsqueeze(0))) == 0
