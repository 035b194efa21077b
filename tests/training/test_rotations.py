from __future__ import annotations

import pytest
import torch

from relwalk.models.orthogonal import defect, start
from relwalk.training.rotations import POLISH_EVERY, OrthogonalAdagrad


def worst(matrices: torch.Tensor) -> float:
    return float(defect(matrices.detach()).abs().max())


@pytest.mark.parametrize("lr", [0.001, 0.3, 5.0])
@pytest.mark.parametrize("dim", [1, 2, 9, 64])
def test_every_step_stays_orthogonal_and_in_its_component(dim: int, lr: float) -> None:
    generator = torch.Generator().manual_seed(0)
    matrices = torch.nn.Parameter(start("rotations", 6, dim, generator))
    component = torch.linalg.det(matrices.detach()).sign()
    optimizer = OrthogonalAdagrad([matrices], lr=lr)
    for _ in range(3 * POLISH_EVERY):
        matrices.grad = torch.randn(6, dim, dim, generator=generator)
        optimizer.step()
        assert worst(matrices) < 1e-5
    if lr < 1:  # a step of more than a half turn may land anywhere
        assert torch.equal(torch.linalg.det(matrices.detach()).sign(), component)


def test_it_finds_the_rotation_between_two_sets_of_points() -> None:
    generator = torch.Generator().manual_seed(1)
    points = torch.randn(50, 5, generator=generator)
    wanted = start("rotations", 2, 5, generator)
    matrices = torch.nn.Parameter(wanted @ torch.linalg.matrix_exp(0.3 * _skew(2, 5, generator)))
    optimizer = OrthogonalAdagrad([matrices], lr=0.1)
    for _ in range(200):
        optimizer.zero_grad()
        (points @ matrices - points @ wanted).square().sum().backward()
        optimizer.step()
    torch.testing.assert_close(matrices.detach(), wanted, rtol=0, atol=1e-3)


def _skew(count: int, dim: int, generator: torch.Generator) -> torch.Tensor:
    free = torch.randn(count, dim, dim, generator=generator)
    return (free - free.mT) / 2


def test_matrices_without_a_gradient_keep_their_bits() -> None:
    matrices = torch.nn.Parameter(start("rotations", 3, 4, torch.Generator().manual_seed(2)))
    before = matrices.detach().clone()
    optimizer = OrthogonalAdagrad([matrices], lr=0.3)
    matrices.grad = torch.zeros(3, 4, 4)
    matrices.grad[1] = torch.randn(4, 4, generator=torch.Generator().manual_seed(3))
    for _ in range(POLISH_EVERY):
        optimizer.step()
    assert torch.equal(matrices[0], before[0])
    assert torch.equal(matrices[2], before[2])
    assert not torch.equal(matrices[1], before[1])


def test_a_gradient_that_leads_nowhere_on_the_group_moves_nothing() -> None:
    """Scaling R is no rotation: the symmetric part of RᵀG is ignored."""
    matrices = torch.nn.Parameter(start("rotations", 1, 4, torch.Generator().manual_seed(4)))
    before = matrices.detach().clone()
    matrices.grad = 3 * before
    OrthogonalAdagrad([matrices], lr=0.3).step()
    torch.testing.assert_close(matrices.detach(), before, rtol=0, atol=1e-3)
