from __future__ import annotations

import math

import pytest
import torch

from relwalk.errors import UnknownChoice
from relwalk.models import RelWalk
from relwalk.models.relation_matmul import project


def make(**options) -> RelWalk:
    return RelWalk(40, 3, 8, generator=torch.Generator().manual_seed(0), **options)


def test_the_score_is_the_papers_formula() -> None:
    model = make(orthogonality="soft", start_from="rotations")
    with torch.no_grad():
        model.free_R1.add_(0.2 * torch.randn(3, 8, 8, generator=torch.Generator().manual_seed(1)))
    h, r, t = 5, 2, 9
    by_hand = (model.R1[r].T @ model.entity.weight[h] + model.R2[r].T @ model.entity.weight[t]).square().sum()
    found = model.score(torch.tensor([h]), torch.tensor([r]), torch.tensor([t]))[0]
    torch.testing.assert_close(found, by_hand)


def test_only_the_product_of_orthogonal_matrices_is_seen() -> None:
    """R1 Q and R2 Q score as R1 and R2: what `exact` relies on when it fixes R1 = I."""
    soft, exact = make(orthogonality="soft", start_from="rotations"), make(start_from="rotations")
    q, _ = torch.linalg.qr(torch.randn(8, 8, generator=torch.Generator().manual_seed(2)))
    with torch.no_grad():
        soft.free_R1.copy_(soft.free_R1 @ q)
        soft.R2.copy_(soft.R2 @ q)
    h, r, t = torch.tensor([1, 2, 3]), torch.tensor([0, 1, 2]), torch.tensor([4, 5, 6])
    torch.testing.assert_close(soft.score(h, r, t), exact.score(h, r, t), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(soft.M, exact.M, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("orthogonality", ["exact", "soft"])
@torch.no_grad()
def test_log_prob_is_the_closed_form(orthogonality: str) -> None:
    model = make(orthogonality=orthogonality)
    h, r, t = torch.tensor([1, 2]), torch.tensor([0, 2]), torch.tensor([3, 4])
    found = model.log_prob(h, r, t, directions=4000, generator=torch.Generator().manual_seed(0))
    c = torch.randn(4000, 8, generator=torch.Generator().manual_seed(9), dtype=torch.float64)
    c = c / c.norm(dim=1, keepdim=True)
    for i in range(2):
        z1 = (model.entity.weight.double() @ model.R1[r[i]].double() @ c.T).exp().sum(0).mean()
        z2 = (model.entity.weight.double() @ model.R2[r[i]].double() @ c.T).exp().sum(0).mean()
        expected = float(model.score(h, r, t)[i]) / 16 - math.log(z1) - math.log(z2)
        assert float(found[i]) == pytest.approx(expected, abs=0.01)


@torch.no_grad()
def test_log_probabilities_of_all_pairs_sum_to_about_one() -> None:
    """The theorem: Σ over h, t of p(h, t | R) is 1 up to its error terms, for entities of moderate norm."""
    model = RelWalk(60, 1, 50, generator=torch.Generator().manual_seed(0), entity_scale=0.3)
    h, t = (x.flatten() for x in torch.meshgrid(torch.arange(60), torch.arange(60), indexing="ij"))
    r = torch.zeros_like(h)
    total = model.log_prob(h, r, t, directions=2000, generator=torch.Generator().manual_seed(0)).exp().sum()
    assert float(total) == pytest.approx(1, abs=0.05)


def test_a_prior_moves_the_probabilities_of_relations() -> None:
    model = make()
    h, t = torch.tensor([1]), torch.tensor([2])
    certain = torch.tensor([1.0, 0.0, 0.0])
    torch.testing.assert_close(model.log_prob_relations(h, t, certain).exp(), certain.unsqueeze(0))


@torch.no_grad()
def test_soft_has_a_penalty_and_exact_none() -> None:
    broken = make(orthogonality="soft", lambda1=2.0, lambda2=3.0)
    with torch.no_grad():
        broken.free_R1[1].mul_(2)  # ||4I - I||² = 9 * 8
    assert float(broken.penalty(torch.tensor([1]))) == pytest.approx(2 * 72)
    assert float(broken.penalty(torch.tensor([0]))) == 0
    assert float(make().penalty(torch.tensor([0]))) == 0


def test_an_unknown_orthogonality_is_refused() -> None:
    with pytest.raises(UnknownChoice, match="exact"):
        make(orthogonality="hard")


def test_project_agrees_with_gathered_matrices_and_autograd() -> None:
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(17, 4, generator=generator, dtype=torch.float64, requires_grad=True)
    matrices = torch.randn(6, 4, 4, generator=generator, dtype=torch.float64, requires_grad=True)
    relations = torch.randint(0, 5, (17,), generator=generator)  # relation 5 never occurs
    for transposed in (False, True):
        own = matrices[relations].mT if transposed else matrices[relations]
        expected = torch.einsum("bd,bde->be", rows, own)
        torch.testing.assert_close(project(rows, matrices, relations, transposed=transposed), expected)
        assert torch.autograd.gradcheck(
            lambda x, m, t=transposed: project(x, m, relations, transposed=t), (rows, matrices)
        )
