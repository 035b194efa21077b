"""What every model in MODELS promises."""

from __future__ import annotations

import pytest
import torch

from relwalk.errors import UnknownChoice
from relwalk.models import MODELS, Scorer, build_model
from relwalk.models.orthogonal import nearest_orthogonal

ENTITIES, RELATIONS, DIM, BATCH = 23, 5, 6, 11
VARIANTS = [(name, {}) for name in MODELS] + [("relwalk", {"orthogonality": "soft"})]


@pytest.fixture(params=VARIANTS, ids=lambda v: "-".join([v[0], *map(str, v[1].values())]))
def model(request: pytest.FixtureRequest) -> Scorer:
    name, options = request.param
    model = build_model(name, ENTITIES, RELATIONS, DIM, seed=3, options=options)
    with torch.no_grad():  # away from a start that could hide a mistake
        for weights in model.parameters():
            weights.add_(0.3 * torch.randn(weights.shape, generator=torch.Generator().manual_seed(4)))
        for weights in model.orthogonal():
            weights.copy_(nearest_orthogonal(weights))
    return model


@pytest.fixture
def triples() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(5)
    return tuple(torch.randint(0, size, (BATCH,), generator=generator) for size in (ENTITIES, RELATIONS, ENTITIES))


def test_the_ways_to_score_agree(model: Scorer, triples) -> None:
    h, r, t = triples
    expected = model.score(h, r, t)
    rows = torch.arange(BATCH)
    for found in (
        model.score_tails(h, r)[rows, t],
        model.score_heads(r, t)[rows, h],
        model.score_relations(h, t)[rows, r],
    ):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_candidates_are_columns_of_all(model: Scorer, triples) -> None:
    h, r, t = triples
    shared = torch.tensor([7, 0, 22, 7])
    own = torch.randint(0, ENTITIES, (BATCH, 4), generator=torch.Generator().manual_seed(6))
    for score, args in ((model.score_tails, (h, r)), (model.score_heads, (r, t))):
        every = score(*args)
        torch.testing.assert_close(score(*args, shared), every[:, shared], rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(score(*args, own), every.gather(1, own), rtol=1e-4, atol=1e-4)


def test_the_order_of_the_batch_does_not_matter(model: Scorer, triples) -> None:
    shuffled = torch.randperm(BATCH, generator=torch.Generator().manual_seed(7))
    expected = model.score(*triples)[shuffled]
    torch.testing.assert_close(model.score(*(x[shuffled] for x in triples)), expected, rtol=1e-5, atol=1e-5)


def test_conditionals_sum_to_one(model: Scorer, triples) -> None:
    h, r, t = triples
    for log_prob in (model.log_prob_tails(h, r), model.log_prob_heads(r, t), model.log_prob_relations(h, t)):
        torch.testing.assert_close(log_prob.exp().sum(-1), torch.ones(BATCH))


def test_gradients_agree_between_the_ways_to_score(model: Scorer, triples) -> None:
    h, r, t = triples
    by_score = torch.autograd.grad(model.score(h, r, t).sum(), list(model.parameters()))
    by_tails = torch.autograd.grad(model.score_tails(h, r, t.unsqueeze(1)).sum(), list(model.parameters()))
    by_heads = torch.autograd.grad(model.score_heads(r, t).gather(1, h.unsqueeze(1)).sum(), list(model.parameters()))
    if model.__class__.__name__ == "RelWalk" and model.exact:  # exact: only tangent directions of R2 count
        by_score, by_tails, by_heads = (_tangent(model, grads) for grads in (by_score, by_tails, by_heads))
    for found in (by_tails, by_heads):
        for a, b in zip(found, by_score, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-3)


def _tangent(model, grads):
    entity, R2 = grads
    skew = model.R2.detach().mT @ R2
    return entity, model.R2.detach() @ (skew - skew.mT) / 2


def test_the_same_seed_gives_the_same_model() -> None:
    a, b, c = (build_model("relwalk", 9, 2, 4, seed=seed, options={}) for seed in (1, 1, 2))
    assert torch.equal(a.entity, b.entity)
    assert not torch.equal(a.entity, c.entity)


def test_a_wrong_name_lists_the_known_ones() -> None:
    with pytest.raises(UnknownChoice, match="Did you mean 'relwalk'"):
        build_model("relwlk", 9, 2, 4, seed=0, options={})
    with pytest.raises(UnknownChoice, match="orthogonality"):
        build_model("relwalk", 9, 2, 4, seed=0, options={"orthogonalty": "soft"})
