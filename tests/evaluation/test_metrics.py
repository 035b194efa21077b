from __future__ import annotations

import numpy as np
import pytest

from relwalk.evaluation.metrics import adjusted_mean_rank_index, rank_metrics


def test_by_hand() -> None:
    found = rank_metrics(np.array([1.0, 2.0, 4.0, 20.0]), np.array([21, 21, 21, 21]))
    assert found.mrr == pytest.approx((1 + 1 / 2 + 1 / 4 + 1 / 20) / 4)
    assert found.mr == pytest.approx(6.75)
    assert (found.hits_at_1, found.hits_at_3, found.hits_at_10) == (0.25, 0.5, 0.75)
    assert found.amri == pytest.approx(1 - 5.75 / 10)
    assert set(found.as_dict()) == {"mrr", "mr", "amri", "hits@1", "hits@3", "hits@10", "queries"}


def test_amri_is_one_for_perfect_zero_for_middling_minus_one_for_worst() -> None:
    candidates = np.array([11, 5])
    assert adjusted_mean_rank_index(np.array([1.0, 1.0]), candidates) == 1
    assert adjusted_mean_rank_index(np.array([6.0, 3.0]), candidates) == 0
    assert adjusted_mean_rank_index(np.array([11.0, 5.0]), candidates) == -1
    assert adjusted_mean_rank_index(np.array([1.0]), np.array([1])) == 1
