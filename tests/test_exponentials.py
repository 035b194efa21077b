"""Exponentials of scores: sums as exact as float32 has them, whatever lies far below."""

from __future__ import annotations

import pytest
import torch

from relwalk.exponentials import exp_


@pytest.mark.parametrize("spread", [1.0, 30.0, 300.0, 1e6])
def test_sums_are_those_of_all_terms(spread: float) -> None:
    x = -spread * torch.rand(20, 5000, generator=torch.Generator().manual_seed(0))
    x[:, 7], x[:, 8] = 0.0, -torch.inf
    exact = x.double().exp().sum(1)
    assert exp_(x.clone()).sum(1).double() == pytest.approx(exact, rel=1e-5)


def test_it_works_in_place_and_makes_nothing_faint() -> None:
    x = torch.tensor([[0.0, -88.0, -95.0, -1000.0, -torch.inf]])
    assert exp_(x) is x and x[0, 0] == 1.0
    assert (x >= torch.finfo(torch.float32).tiny).all() and x[0, 1:].sum() < 1e-30
