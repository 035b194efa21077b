"""The losses by hand, the settings each objective has, and margins in units of the score."""

from __future__ import annotations

import math

import pytest
import torch

from relwalk.errors import RelWalkError
from relwalk.experiment import make_task, train
from relwalk.graph.graph import Graph
from relwalk.models import build_model
from relwalk.training.negative_sampling import NegativeSampling
from relwalk.training.objectives import OBJECTIVES, Hardest, Margin
from relwalk.training.settings import TrainingSettings, make_settings, own_names

POSITIVE = torch.tensor([5.0, 1.0])
NEGATIVE = torch.tensor([[1.0, 4.5], [3.0, -1.0]])
SAMPLED = [name for name, kind in OBJECTIVES.items() if issubclass(kind, NegativeSampling)]


def against(five: Graph, name: str, positive: torch.Tensor) -> torch.Tensor:
    """The loss at scale 0.5 with a margin of 1, where there is one."""
    own = {} if name == "softmax" else {"margin": 1.0}
    task = make_task(five, TrainingSettings(objective=name, **own))
    return task.against(positive, NEGATIVE, 0.5)


def softplus(x: float) -> float:
    return math.log(1 + math.exp(x))


def weighted(*scores: float) -> float:
    """Σ p softplus(0.5 + s), p the softmax of the scores: scaled by 0.5 all, with a margin of 1."""
    total = sum(map(math.exp, scores))
    return sum(math.exp(s) / total * softplus(0.5 + s) for s in scores)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("margin", [0.5, 3.0]),  # 0 + (1 + 4.5 - 5), (1 + 3 - 1) + 0
        ("hardest", [0.5, 3.0]),
        ("mean", [0.0, 1.0]),  # 1 + 2.75 - 5 < 0, 1 + 1 - 1
        (
            "logistic",
            [softplus(-3) + (softplus(1) + softplus(2.75)) / 2, softplus(-1) + (softplus(2) + softplus(0)) / 2],
        ),
        ("self-adversarial", [softplus(-3) + weighted(0.5, 2.25), softplus(-1) + weighted(1.5, -0.5)]),
        ("softmax", [math.log(1 + math.exp(-2) + math.exp(-0.25)), math.log(1 + math.exp(1) + math.exp(-1))]),
    ],
)
def test_by_hand(five: Graph, name: str, expected: list[float]) -> None:
    assert against(five, name, POSITIVE).tolist() == pytest.approx(expected)


def test_margin_counts_every_negative_and_hardest_one() -> None:
    negative = torch.tensor([[5.0, 5.0, 5.0]])
    assert float(Margin.hinge(POSITIVE[:1], negative, 2.0)) == 6
    assert float(Hardest.hinge(POSITIVE[:1], negative, 2.0)) == 2


@pytest.mark.parametrize("name", SAMPLED)
def test_raising_the_true_score_never_hurts(five: Graph, name: str) -> None:
    positive = POSITIVE.clone().requires_grad_()
    against(five, name, positive).sum().backward()
    assert (positive.grad <= 0).all()
    assert (positive.grad < 0).any()


def test_self_adversarial_weights_have_no_gradient_and_without_temperature_all_weigh_the_same(five: Graph) -> None:
    def loss(negative: torch.Tensor, name: str, **own: float) -> torch.Tensor:
        task = make_task(five, TrainingSettings(objective=name, margin=2.0, **own))
        return task.against(POSITIVE, negative, 1.0)

    plain = loss(NEGATIVE, "logistic")
    torch.testing.assert_close(loss(NEGATIVE, "self-adversarial", temperature=0.0), plain)
    negative = NEGATIVE.clone().requires_grad_()
    loss(negative, "self-adversarial", temperature=0.5).sum().backward()
    expected = torch.softmax(0.5 * NEGATIVE, 1) * torch.sigmoid(2.0 + NEGATIVE)
    torch.testing.assert_close(negative.grad, expected)
    hardest = loss(NEGATIVE, "self-adversarial", temperature=1e5)
    torch.testing.assert_close(hardest, loss(NEGATIVE.amax(1, keepdim=True), "logistic"))


def test_a_margin_is_in_units_of_the_score_and_eta_a_ratio_of_likelihoods(five: Graph) -> None:
    said = TrainingSettings(objective="margin", margin=5.0).objective
    ratio = TrainingSettings(objective="margin", eta=3.0).objective
    for name, scale in (("transe", 1.0), ("relwalk", 1 / 256)):
        assert build_model(name, 5, 2, 128, seed=0, options={}).scale == scale
        assert said.margin_for(scale) == 5.0
        assert ratio.margin_for(scale) == pytest.approx(math.log(3) / scale)
    run = train(five, model="transe", dim=4, epochs=1, objective="margin", margin=5.0)
    assert (run.record.training.objective.margin, run.record.training.objective.eta) == (5.0, None)
    assert train(five, dim=4, epochs=1, recipe="paper", eta=2.0).record.training.objective.margin is None


@pytest.mark.parametrize("name", OBJECTIVES)
def test_an_objective_has_its_own_settings_and_no_others(name: str) -> None:
    """By their declaration: whatever is added to one is refused beside another, with the one that has it."""
    every = {own for objective in OBJECTIVES.values() for own in own_names(objective.Settings)}
    own = own_names(OBJECTIVES[name].Settings)
    for other in every:
        value = {"sampler": "uniform", "precision": "float32"}.get(other, 2 if other != "label_smoothing" else 0.5)
        if other == "avoid_known":
            value = True
        if other == "generator_model":
            value = "complex"
        more = {"sampler": "kbgan"} if other.startswith("generator_") else {}
        if other in own:
            settings = TrainingSettings(objective=name, **{other: value}, **more)
            assert settings.model_dump()["objective"][other] == settings.flat()[other] == value
        else:
            with pytest.raises(RelWalkError, match=f"{other} means nothing to the objective {name}, which has .*Say"):
                TrainingSettings(objective=name, **{other: value})


def test_of_a_recipe_what_does_not_fit_is_left_out() -> None:
    recipe = {"objective": "hardest", "margin": 1.0, "negatives": 7, "l2": 0.0}
    assert make_settings(recipe, {"objective": "softmax"}).flat()["negatives"] == 7
    assert "negatives" not in make_settings(recipe, {"objective": "likelihood"}).flat()


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_dropout_reaches_every_objective(small_world: Graph, objective: str) -> None:
    def weights(rate: float) -> torch.Tensor:
        model = "distmult" if objective == "bce" else "relwalk"  # whose scores are no log-odds
        settings = {"dim": 8, "epochs": 1, "batch_size": 500, "objective": objective, "model": model}
        return train(small_world, query_dropout=rate, **settings).model.vectors().detach()

    assert not torch.equal(weights(0.0), weights(0.5))
