"""The greatest numbers of a row are found as by a sort."""

from __future__ import annotations

import pytest
import torch

from relwalk.greatest import WIDTH, greatest


@pytest.mark.parametrize("k", [1, 3, 10, 5000])
@pytest.mark.parametrize("columns", [1, 7, WIDTH, 41 * WIDTH, 41 * WIDTH + 17])
@pytest.mark.parametrize("level", [False, True])
def test_they_are_those_of_a_sort(k: int, columns: int, level: bool) -> None:
    scores = torch.randn(5, columns, generator=torch.Generator().manual_seed(k))
    if level:
        scores = scores.mul(2).round()
        scores[2, 1:] = -torch.inf
    least = scores.topk(min(k, columns)).values[:, -1:]
    rows, places = (scores >= least).nonzero(as_tuple=True)
    found = greatest(scores, k)
    assert found[0].tolist() == rows.tolist()
    assert sorted(zip(*map(torch.Tensor.tolist, found), strict=True)) == list(
        zip(rows.tolist(), places.tolist(), strict=True)
    )
