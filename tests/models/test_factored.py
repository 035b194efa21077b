"""Relation matrices as factors: the same products, nearest when they are cut, and cheaper the fewer there are."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from relwalk.models.decomposition import decompose, leading, reflections
from relwalk.models.factored import FactoredMatrices, empty_matrices
from relwalk.models.orthogonal import random_rotations, random_signs

RELATIONS = 6
KINDS = [("eig", True), ("eig", False), ("svd", True), ("svd", False)]  # method, orthogonal


def matrices(dim: int, orthogonal: bool) -> torch.Tensor:
    """Rotations with an identity, a diagonal of signs and a reflection of one axis among them; or near them."""
    generator = torch.Generator().manual_seed(dim)
    found = random_rotations(RELATIONS, dim, generator)
    found[0], found[1] = torch.eye(dim), random_signs(1, dim, generator)[0]
    found[2] = torch.diag(torch.cat([-torch.ones(1), torch.ones(dim - 1)]))
    return found if orthogonal else found + 0.1 * torch.randn(found.shape, generator=generator)


def cut(
    dim: int, rank: int, method: str, orthogonal: bool, around: str = "identity"
) -> tuple[torch.Tensor, FactoredMatrices]:
    whole = matrices(dim, orthogonal)
    return whole, decompose(whole, method, around, orthogonal=orthogonal).cut(rank)


@pytest.mark.parametrize("around", ["identity", "signs", "nothing"])
@pytest.mark.parametrize(("method", "orthogonal"), KINDS)
@pytest.mark.parametrize("dim", [2, 7, 8])
def test_all_components_are_the_matrix(dim: int, method: str, orthogonal: bool, around: str) -> None:
    if around == "nothing" and method == "eig" and orthogonal:
        return  # planes of rotation are taken around signs or the identity
    whole, factors = cut(dim, dim, method, orthogonal, around)
    torch.testing.assert_close(factors.dense(), whole, rtol=0, atol=1e-5)
    check_products(factors, whole)


@pytest.mark.parametrize("dim", [1, 2, 7, 16])
def test_reflections_are_all_of_an_orthogonal_matrix(dim: int) -> None:
    whole = matrices(dim, True) if dim > 1 else torch.tensor([[[1.0]], [[-1.0]]])
    factors = reflections(whole)
    torch.testing.assert_close(factors.dense(), whole, rtol=0, atol=2e-6)
    assert sum(p.numel() for p in factors.parameters()) == len(whole) * (dim * (dim - 1) // 2 + dim)
    check_products(factors, whole)


def check_products(factors: FactoredMatrices, whole: torch.Tensor) -> None:
    """Rows of mixed relations, and of one, by the matrix and by its transpose."""
    generator = torch.Generator().manual_seed(1)
    relations = torch.randint(0, len(whole), (9,), generator=generator)
    rows = torch.randn(9, whole.shape[-1], generator=generator)
    for transposed in (False, True):
        each = whole.mT if transposed else whole
        expected = torch.einsum("bd,bde->be", rows, each[relations])
        torch.testing.assert_close(factors.project(rows, relations, transposed=transposed), expected, rtol=0, atol=3e-5)
        one = factors.project(rows, torch.tensor(1), transposed=transposed)
        torch.testing.assert_close(one, rows @ each[1], rtol=0, atol=3e-5)
    assert factors.project(rows[:0], relations[:0]).shape == (0, whole.shape[-1])


@pytest.mark.parametrize("around", ["identity", "signs"])
@pytest.mark.parametrize("rank", [1, 2, 3, 5, 8])
def test_eigenvectors_leave_an_orthogonal_matrix_orthogonal(rank: int, around: str) -> None:
    whole, factors = cut(8, rank, "eig", True, around)
    small = factors.dense()
    torch.testing.assert_close(small.mT @ small, torch.eye(8).expand(RELATIONS, -1, -1), rtol=0, atol=1e-5)
    base = torch.eye(8) if around == "identity" else torch.diag_embed(whole.diagonal(dim1=1, dim2=2).sign())
    assert bool((torch.linalg.matrix_rank(small - base, atol=1e-4) <= rank).all())


@pytest.mark.parametrize("orthogonal", [True, False])
def test_no_matrix_of_that_rank_is_nearer_than_the_svd(orthogonal: bool) -> None:
    dim = 8
    for rank in range(1, dim + 1):
        whole, by_svd = cut(dim, rank, "svd", orthogonal)
        left = torch.linalg.svdvals(whole - torch.eye(dim))[:, rank:].square().sum(-1).sqrt()
        lost = torch.linalg.matrix_norm(whole - by_svd.dense())
        torch.testing.assert_close(lost, left, rtol=1e-3, atol=1e-4)
        by_eig = torch.linalg.matrix_norm(whole - cut(dim, rank, "eig", orthogonal)[1].dense())
        assert bool((by_eig >= lost - 1e-4).all())


def test_eig_and_svd_agree_where_no_pair_is_parted() -> None:
    """R - I of an orthogonal R is normal: its singular values are |λ - 1|."""
    angles = torch.tensor([2.5, 1.0, 0.3])
    blocks = [torch.tensor([[a.cos(), a.sin()], [-a.sin(), a.cos()]]) for a in angles]
    basis = random_rotations(1, 6, torch.Generator().manual_seed(3))[0]
    R = (basis.T @ torch.block_diag(*blocks) @ basis).unsqueeze(0)
    for rank in (2, 4, 6):
        by_eig, by_svd = (decompose(R, m, "identity", orthogonal=True).cut(rank).dense() for m in ("eig", "svd"))
        torch.testing.assert_close(by_eig, by_svd, rtol=0, atol=1e-5)
    odd = decompose(R, "eig", "identity", orthogonal=True).cut(3).dense()
    torch.testing.assert_close(odd, decompose(R, "eig", "identity", orthogonal=True).cut(2).dense(), rtol=0, atol=1e-6)


@pytest.mark.parametrize("method", ["eig", "svd"])
def test_what_is_near_signs_needs_few_components_around_them(method: str) -> None:
    dim, generator = 12, torch.Generator().manual_seed(5)
    turn = torch.eye(dim)
    turn[:2, :2] = torch.tensor([[0.0, 1.0], [-1.0, 0.0]])
    basis = random_rotations(1, dim, generator)[0]
    whole = random_signs(RELATIONS, dim, generator) @ (basis.T @ turn @ basis)
    whole = whole + 0.003 * torch.randn(whole.shape, generator=generator)
    lost = {
        around: float((decompose(whole, method, around, orthogonal=False).cut(2).dense() - whole).norm())  # type: ignore[arg-type]
        for around in ("identity", "signs")
    }
    assert lost["signs"] < 0.2 < 3 < lost["identity"]


def test_pairs_stay_together_and_smaller_ones_fill_what_is_left() -> None:
    weights = np.array([3.0, 3.0, 2.0, 2.0, 1.0, 0.5])
    paired = np.array([True, True, True, True, False, False])
    assert leading(weights, paired, 1).tolist() == [4]
    assert leading(weights, paired, 2).tolist() == [0, 1]
    assert leading(weights, paired, 3).tolist() == [0, 1, 4]
    assert leading(weights, paired, 5).tolist() == [0, 1, 2, 3, 4]
    assert leading(weights, paired, 6).tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(("method", "orthogonal"), KINDS)
def test_numbers_held_and_multiplied_fall_with_the_rank(method: str, orthogonal: bool) -> None:
    dim, rows = 32, torch.zeros(10, 32)
    held, multiplied = [], []
    for rank in (4, 8, 16):
        _, factors = cut(dim, rank, method, orthogonal)
        held.append(sum(p.numel() for p in factors.parameters()))
        with FlopCounterMode(display=False) as flops:
            factors.project(rows, torch.zeros(10, dtype=torch.long))
        multiplied.append(flops.get_total_flops())
    one = 2 if method == "svd" or not orthogonal else 1
    assert held[0] < held[1] < held[2] < RELATIONS * dim * dim * 1.2
    assert held[0] <= RELATIONS * 4 * (one * dim + 2) + dim
    assert multiplied == [2 * len(rows) * 2 * dim * rank for rank in (4, 8, 16)]  # x Uᵀ, then times V; no dim x dim


@pytest.mark.parametrize("precision", ["float16", "int8"])
def test_rounded_factors_are_near(precision: str) -> None:
    whole = matrices(16, True)
    factors = decompose(whole, "eig", "identity", orthogonal=True).cut(16, precision)  # type: ignore[arg-type]
    assert float((factors.dense() - whole).abs().max()) < (0.005 if precision == "float16" else 0.05)
    assert not factors.orthogonal


@pytest.mark.parametrize("precision", ["float32", "float16", "int8"])
@pytest.mark.parametrize(("method", "orthogonal"), [*KINDS, ("lossless", True)])
def test_empty_matrices_have_the_place_that_full_ones_need(method: str, orthogonal: bool, precision: str) -> None:
    whole = matrices(7, orthogonal)
    for around in ("identity", "signs"):
        empty = empty_matrices(method, around, (RELATIONS, 3, 7), precision, orthogonal=orthogonal)  # type: ignore[arg-type]
        full = (
            reflections(whole)
            if method == "lossless"
            else decompose(whole, method, around, orthogonal=orthogonal).cut(3, precision)  # type: ignore[arg-type]
        )
        shapes = [{n: (t.dtype, t.shape) for n, t in x.state_dict().items()} for x in (empty, full)]
        assert shapes[0] == shapes[1]
