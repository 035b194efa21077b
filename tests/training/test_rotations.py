from __future__ import annotations

import pytest
import torch

from relwalk.models.orthogonal import defect, start
from relwalk.models.relation_matmul import project
from relwalk.training.optim import Group
from relwalk.training.orthogonal_adagrad import POLISH_EVERY, OrthogonalAdagrad


def worst(matrices: torch.Tensor) -> float:
    return float(defect(matrices.detach()).abs().max())


@pytest.mark.parametrize("lr", [0.001, 0.3, 5.0])
@pytest.mark.parametrize("dim", [1, 2, 9, 64])
def test_every_step_stays_orthogonal_and_in_its_component(dim: int, lr: float) -> None:
    generator = torch.Generator().manual_seed(0)
    matrices = torch.nn.Parameter(start("rotations", 6, dim, generator))
    component = torch.linalg.det(matrices.detach()).sign()
    optimizer = OrthogonalAdagrad([Group([matrices], lr)])
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
    optimizer = OrthogonalAdagrad([Group([matrices], 0.1)])
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
    optimizer = OrthogonalAdagrad([Group([matrices], 0.3)])
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
    OrthogonalAdagrad([Group([matrices], 0.3)]).step()
    torch.testing.assert_close(matrices.detach(), before, rtol=0, atol=1e-3)


def step_by_rows(matrices: torch.nn.Parameter, rows, slopes, relations, transposed: bool, lr: float) -> None:
    """One step down the gradient of Σ slopes · project(rows)."""
    optimizer = OrthogonalAdagrad([Group([matrices], lr)])
    with optimizer.collecting():
        (slopes * project(rows, matrices, relations, transposed=transposed)).sum().backward()
    assert matrices.grad is None  # no d x d gradient was made
    optimizer.step()


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("count", [1, 3, 7, 40], ids=lambda c: f"{c} rows")
def test_a_few_rows_and_a_whole_gradient_make_the_same_rotation(count: int, transposed: bool) -> None:
    dim, lr = 32, 0.01
    generator = torch.Generator().manual_seed(count)
    first = start("rotations", 3, dim, generator)
    rows, slopes = (torch.randn(count, dim, generator=generator) for _ in range(2))
    relations = torch.tensor([0, 2])[torch.randint(0, 2, (count,), generator=generator)]
    by_rows, by_gradient = torch.nn.Parameter(first.clone()), torch.nn.Parameter(first.clone())
    step_by_rows(by_rows, rows, slopes, relations, transposed, lr)

    optimizer = OrthogonalAdagrad([Group([by_gradient], lr)])
    chosen = first[relations].mT if transposed else first[relations]
    outer = torch.einsum("bi,bj->bij", rows, slopes)
    by_gradient.grad = torch.zeros_like(first).index_add_(0, relations, outer.mT if transposed else outer)
    optimizer.step()
    assert chosen.shape == outer.shape
    moved = (by_gradient - first).norm()
    assert (by_rows - by_gradient).norm() < 1e-3 * moved  # Cayley and exponential differ at third order
    assert torch.equal(by_rows[1], first[1])


def test_a_step_by_few_rows_is_cayleys() -> None:
    dim = 16
    generator = torch.Generator().manual_seed(5)
    first = start("rotations", 1, dim, generator)
    matrices = torch.nn.Parameter(first.clone())
    rows, slopes = (torch.randn(2, dim, generator=generator) for _ in range(2))
    step_by_rows(matrices, rows, slopes, torch.tensor([0, 0]), False, 0.1)
    A = first[0].double().T @ (rows.double().T @ slopes.double())
    A = (A - A.T) / 2
    A *= min(0.1 * dim**0.5, 1.0) / A.norm()
    eye = torch.eye(dim, dtype=torch.float64)
    expected = first[0].double() @ torch.linalg.solve(eye + A / 2, eye - A / 2)
    torch.testing.assert_close(matrices[0].detach().double(), expected, rtol=0, atol=3e-6)


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_steps_by_rows_stay_orthogonal(size: float) -> None:
    generator = torch.Generator().manual_seed(6)
    matrices = torch.nn.Parameter(start("signs", 20, 24, generator))
    component = torch.linalg.det(matrices.detach()).sign()
    optimizer = OrthogonalAdagrad([Group([matrices], 1.0)])
    for _ in range(5 * POLISH_EVERY):
        optimizer.zero_grad()
        relations = torch.randint(0, 20, (60,), generator=generator)
        rows, slopes = torch.randn(60, 24, generator=generator), size * torch.randn(60, 24, generator=generator)
        with optimizer.collecting():
            (slopes * project(rows, matrices, relations)).sum().backward()
        optimizer.step()
        assert worst(matrices) < 1e-5
    assert torch.equal(torch.linalg.det(matrices.detach()).sign(), component)


@pytest.mark.parametrize("rows_each", [2, 30])
def test_blocks_move_as_matrices_of_their_own(rows_each: int) -> None:
    """A stack (relations, blocks, width, width) is relations x blocks small matrices, in products and in steps."""
    relations, blocks, width = 3, 4, 8
    generator = torch.Generator().manual_seed(9)
    first = start("rotations", relations * blocks, width, generator)
    of_rows = torch.randint(0, relations, (rows_each * relations,), generator=generator)
    rows, slopes = (torch.randn(len(of_rows), blocks * width, generator=generator) for _ in range(2))
    together = torch.nn.Parameter(first.clone().view(relations, blocks, width, width))
    apart = torch.nn.Parameter(torch.stack([torch.block_diag(*first[r * blocks : (r + 1) * blocks]) for r in range(3)]))
    for transposed in (False, True):
        torch.testing.assert_close(
            project(rows, together, of_rows, transposed=transposed),
            project(rows, apart, of_rows, transposed=transposed),
        )
    optimizer = OrthogonalAdagrad([Group([together], 0.05)])
    with optimizer.collecting():
        (slopes * project(rows, together, of_rows)).sum().backward()
    optimizer.step()
    alone = torch.nn.Parameter(first.clone())
    single = OrthogonalAdagrad([Group([alone], 0.05)])
    index = (of_rows.unsqueeze(1) * blocks + torch.arange(blocks)).flatten()
    with single.collecting():
        (slopes.view(-1, width) * project(rows.view(-1, width), alone, index)).sum().backward()
    single.step()
    assert worst(together.flatten(0, 1)) < 1e-5
    assert float((alone - first).detach().abs().max()) > 1e-3
    torch.testing.assert_close(together.detach().flatten(0, 1), alone.detach())
