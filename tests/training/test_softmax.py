from __future__ import annotations

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from relwalk.training.softmax import Targets, Workspace, softmax_loss


def reference(q, e, b, targets: Targets, smoothing: float) -> torch.Tensor:
    """The definition, in float64, with the whole matrix of scores."""
    log_prob = torch.log_softmax(q @ e.T + b, dim=1)
    rows, columns, weights = targets
    hits = -(weights * log_prob[rows, columns]).sum()
    totals = torch.zeros(len(q), dtype=q.dtype).index_add_(0, rows, weights)
    return (1 - smoothing) * hits - smoothing * (totals * log_prob.mean(1)).sum()


def problem(rows: int, entities: int, dim: int, pairs: int, size: float, seed: int):
    generator = torch.Generator().manual_seed(seed)
    q, e = (size * torch.randn(n, dim, generator=generator, dtype=torch.float64) for n in (rows, entities))
    b = size * torch.randn(entities, generator=generator, dtype=torch.float64)
    at = torch.randint(0, rows, (pairs,), generator=generator).sort().values  # some rows have none, some several
    to = torch.randint(0, entities, (pairs,), generator=generator)  # the same target may come twice
    weights = torch.rand(pairs, generator=generator, dtype=torch.float64)
    return q, e, b, Targets(at, to, weights)


@example(rows=1, entities=1, dim=1, pairs=13, size=0.01, tile=1, smoothing=0.0, seed=0)  # a loss of exactly zero
@example(rows=5, entities=4, dim=4, pairs=1, size=5.0, tile=1, smoothing=0.0, seed=8465)  # sums fit, slopes do not
@settings(max_examples=60, deadline=None)
@given(
    rows=st.integers(1, 9),
    entities=st.integers(1, 40),
    dim=st.integers(1, 8),
    pairs=st.integers(0, 20),
    size=st.sampled_from([0.01, 1.0, 5.0]),
    tile=st.sampled_from([1, 3, 16, 1024]),
    smoothing=st.sampled_from([0.0, 0.3]),
    seed=st.integers(0, 10_000),
)
def test_value_and_gradients_agree_with_float64(rows, entities, dim, pairs, size, tile, smoothing, seed) -> None:
    q, e, b, targets = problem(rows, entities, dim, pairs, size, seed)
    exact = [x.clone().requires_grad_() for x in (q, e, b)]
    expected = reference(*exact, targets, smoothing)
    slopes = torch.autograd.grad(expected, exact)
    single = [x.float().requires_grad_() for x in (q, e, b)]
    workspace = Workspace(tile=tile)
    found = softmax_loss(*single, targets._replace(weights=targets.weights.float()), workspace, smoothing=smoothing)
    torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-4 * size * size)
    for a, c in zip(torch.autograd.grad(found, single), slopes, strict=True):
        torch.testing.assert_close(a.double(), c, rtol=1e-3, atol=1e-4 * max(1.0, size))


@pytest.mark.parametrize("spread", [30.0, 300.0, 3000.0])
def test_extreme_scores_do_not_overflow(spread: float) -> None:
    """A rival that scores e^3000 times the target: the loss is their difference."""
    q = torch.tensor([[1.0], [1.0]], requires_grad=True)
    e = torch.tensor([[0.0], [spread], [-spread]], requires_grad=True)
    targets = Targets(torch.tensor([0, 1]), torch.tensor([0, 1]), torch.ones(2))
    loss = softmax_loss(q, e, None, targets, Workspace(tile=2))
    loss.backward()
    assert float(loss.detach()) == pytest.approx(spread)
    torch.testing.assert_close(e.grad, torch.tensor([[-1.0], [1.0], [0.0]]))


def test_a_workspace_is_used_again_for_other_shapes() -> None:
    workspace = Workspace(tile=8)
    for rows, entities in ((5, 30), (2, 7), (9, 30)):
        q, e, b, targets = problem(rows, entities, 4, 6, 1.0, rows)
        found = softmax_loss(
            q.float(), e.float(), b.float(), targets._replace(weights=targets.weights.float()), workspace
        )
        torch.testing.assert_close(found.double(), reference(q, e, b, targets, 0.0), rtol=1e-4, atol=1e-4)


def test_bfloat16_is_close() -> None:
    q, e, b, targets = problem(20, 200, 16, 40, 0.5, 0)
    weights = targets._replace(weights=targets.weights.float())
    results = []
    for dtype in (torch.float32, torch.bfloat16):
        inputs = [x.float().requires_grad_() for x in (q, e, b)]
        loss = softmax_loss(*inputs, weights, Workspace(dtype=dtype, tile=64))
        results.append((loss.detach(), *torch.autograd.grad(loss, inputs)))
    for a, c in zip(*results, strict=True):
        assert float((a - c).norm() / a.norm()) < 0.02
