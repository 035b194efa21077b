"""A random order and popularity, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from relwalk.evaluation.baselines import Popularity, popularity, random_order
from relwalk.evaluation.ranking import rank
from relwalk.models import build_model
from tests.conftest import TEST, TRAIN, VALID, make_graph


def test_baselines_by_hand() -> None:
    graph = make_graph(TRAIN, VALID, TEST)
    counts = Popularity(graph)
    assert counts.tails[0].tolist() == [0, 1, 2, 0, 0] and counts.heads[0].tolist() == [2, 1, 0, 0, 0]
    model = build_model("relwalk", 5, 2, 4, seed=0, options={})
    result = rank(model, graph, "test")
    expected = random_order(result)
    sizes = np.concatenate([s.candidates for s in result.ranks.values()])
    assert expected.mr == pytest.approx(float(((sizes + 1) / 2).mean())) and expected.hits_at_10 == 1
    assert expected.mrr == pytest.approx(np.mean([np.mean(1 / np.arange(1, n + 1)) for n in sizes]))
    # Ranks of 3 in (0, likes, ?) among three of no count, 0 in (?, likes, 3), 4 in (2, knows, ?), 2 in (?, knows, 4).
    found = popularity(graph, "all")
    assert found is not None and found.mrr == pytest.approx((1 / 2 + 1 + 1 / 3 + 1 / 1.5) / 4)
