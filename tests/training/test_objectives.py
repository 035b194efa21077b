from __future__ import annotations

import math

import pytest
import torch

from relwalk.training.objectives import OBJECTIVES
from relwalk.training.settings import TrainingSettings

POSITIVE = torch.tensor([5.0, 1.0])
NEGATIVE = torch.tensor([[1.0, 4.5], [3.0, -1.0]])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("margin", [0.5, 3.0]),  # 0 + (1 + 4.5 - 5), (1 + 3 - 1) + 0
        ("hardest", [0.5, 3.0]),
        ("mean", [0.0, 1.0]),  # 1 + 2.75 - 5 < 0, 1 + 1 - 1
        ("softmax", [math.log(1 + math.exp(-2) + math.exp(-0.25)), math.log(1 + math.exp(1) + math.exp(-1))]),
    ],
)
def test_by_hand(name: str, expected: list[float]) -> None:
    assert OBJECTIVES[name].loss(POSITIVE, NEGATIVE, 0.5, 1.0).tolist() == pytest.approx(expected)


def test_margin_counts_every_negative_and_hardest_one() -> None:
    negative = torch.tensor([[5.0, 5.0, 5.0]])
    assert float(OBJECTIVES["margin"].loss(POSITIVE[:1], negative, 1.0, 2.0)) == 6
    assert float(OBJECTIVES["hardest"].loss(POSITIVE[:1], negative, 1.0, 2.0)) == 2


def test_the_margin_is_2d_log_eta() -> None:
    assert TrainingSettings(eta=3.0).margin(1 / 200) == pytest.approx(200 * math.log(3))


@pytest.mark.parametrize("name", OBJECTIVES)
def test_raising_the_true_score_never_hurts(name: str) -> None:
    positive = POSITIVE.clone().requires_grad_()
    OBJECTIVES[name].loss(positive, NEGATIVE, 0.5, 1.0).sum().backward()
    assert (positive.grad <= 0).all()
    assert (positive.grad < 0).any()
