from __future__ import annotations

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from relwalk.training.softmax import Own, Targets, Workspace, _exponentials, _Sample
from relwalk.training.softmax import softmax_loss as softmax_of_keys


def softmax_loss(q, e, b, *rest, **options) -> torch.Tensor:
    """A bias is one more part of the keys, where the queries have a one."""
    if b is None:
        return softmax_of_keys(q, e, *rest, **options)
    ones = torch.ones(len(q), 1, dtype=q.dtype)
    return softmax_of_keys(torch.cat([q, ones], 1), (e, b.unsqueeze(1)), *rest, **options)


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
    places = torch.randperm(rows * entities, generator=generator)[:pairs].sort().values
    at, to = places // entities, places % entities  # some rows have no target, some several, some all there are
    weights = torch.rand(len(places), generator=generator, dtype=torch.float64)
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


def test_keys_in_parts_are_the_keys() -> None:
    q, e, _, targets = problem(20, 200, 16, 40, 1.0, 0)
    targets = targets._replace(weights=targets.weights.float())
    found = []
    for parts in (1, 3):
        inputs = [x.float().requires_grad_() for x in (q, e)]
        keys = torch.tensor_split(inputs[1], parts, 1)
        loss = softmax_of_keys(inputs[0], keys, targets, Workspace(tile=64), smoothing=0.1)
        found.append((loss, *torch.autograd.grad(loss, inputs)))
    for a, c in zip(*found, strict=True):
        torch.testing.assert_close(a, c, rtol=1e-5, atol=1e-5)


CASES = 10_000


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("sampled", [True, False])
def test_no_sum_vanishes_or_turns_negative(dtype: torch.dtype, sampled: bool) -> None:
    """Rows whose targets hold nearly all of the sum, were drawn with extreme weights, or are beaten by far.

    What a tile says of a score is off by the rounding of its factors; the sum must be off by no more than that.
    """
    generator = torch.Generator().manual_seed(int(sampled))
    for size in (0.1, 1.0, 4.0, 12.0):
        rows, entities, drawn, dim = CASES // 4, 60, 40 if sampled else 60, 8
        q, e = (size * torch.randn(n, dim, generator=generator) for n in (rows, entities))
        b = size * torch.randn(entities, generator=generator)
        log_weights = 6 * torch.randn(drawn, generator=generator) if sampled else torch.zeros(entities)
        is_target = torch.rand(rows, entities, generator=generator) < torch.rand(rows, 1, generator=generator)
        is_target[torch.arange(rows), torch.randint(0, entities, (rows,), generator=generator)] = True
        log_w = torch.full((rows, entities), -torch.inf, dtype=torch.float64)
        log_w[:, :drawn] = log_weights.double()
        log_w[is_target] = 0.0
        scores = q.double() @ e.double().T + b.double()
        at, to = is_target.nonzero(as_tuple=True)
        keys, queries = (e[:drawn], b[:drawn].unsqueeze(1)), torch.cat([q, torch.ones(rows, 1)], 1)
        sample = _Sample(keys, log_weights if sampled else None, 16, dtype)
        own, once = Own(at, to, scores[at, to].float()), torch.ones(rows)
        made = _exponentials(queries, sample, own, once, Workspace(dtype=dtype, tile=16))
        assert bool((made.total > 0).all()) and bool(made.total.isfinite().all())
        terms = q.abs().double() @ e.abs().double().T + b.abs() + log_weights.abs().max()
        rounding = torch.finfo(dtype).eps * (4 * terms.amax(1) + 4)
        found = made.total.double().log() + made.shift
        assert bool(((found - torch.logsumexp(scores + log_w, 1)).abs() < rounding).all())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_blocks_of_rows_change_rounding_alone(dtype: torch.dtype) -> None:
    q, e, b, targets = problem(50, 90, 6, 70, 0.7, 3)
    weights = targets._replace(weights=targets.weights.float())
    results = []
    for numbers in (1 << 20, 7 * 90, 1):  # all rows at once, seven, one
        inputs = [x.float().requires_grad_() for x in (q, e, b)]
        workspace = Workspace(dtype=dtype, tile=32, numbers=numbers)
        loss = softmax_loss(*inputs, weights, workspace, smoothing=0.1)
        results.append((loss.detach(), *torch.autograd.grad(loss, inputs)))
        assert workspace._buffer.numel() <= max(numbers, 90)
    for other in results[1:]:
        for a, c in zip(results[0], other, strict=True):
            assert float((a - c).norm() / a.norm()) < 10 * torch.finfo(dtype).eps
