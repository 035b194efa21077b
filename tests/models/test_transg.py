"""TransG: its density by hand, and components that come when triples ask for them, and only then."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from relwalk.errors import RelWalkError
from relwalk.evaluation.ranking import rank
from relwalk.experiment import train
from relwalk.graph.graph import Graph
from relwalk.graph.vocabulary import Vocabulary
from relwalk.models import blocks, build_model
from relwalk.models.transg import TransG


def make(entities: int = 3, relations: int = 1, dim: int = 2, **options) -> TransG:
    model = build_model("transg", entities, relations, dim, seed=0, options=options)
    assert isinstance(model, TransG)
    return model


def ids(*numbers: int) -> torch.Tensor:
    return torch.tensor(numbers)


@pytest.fixture
def two() -> TransG:
    """Two components of weights 3 : 1, and variances that differ."""
    model = make()
    with torch.no_grad():
        model.entity.weight.copy_(torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, -1.0]]))
        model.log_variance.weight.copy_(torch.tensor([[0.5], [1.5], [2.0]]).log())
        model.translation[0, :2] = torch.tensor([[1.0, 1.0], [-1.0, 0.0]])
        model.weight[0, :2] = torch.tensor([3.0, 1.0]).log()
        model.open[0] = 2
    return model


def test_the_density_by_hand(two: TransG) -> None:
    expected = math.log(
        0.75 * math.exp(-1 / 2) + 0.25 * math.exp(-4 / 2)
    )  # ||(1, 1) - (1, 0)||², ||(-1, 0) - (1, 0)||²
    assert two.score(ids(0), ids(0), ids(1)).item() == pytest.approx(expected, abs=1e-6)
    assert two.score_tails(ids(0), ids(0))[0, 1].item() == pytest.approx(expected, abs=1e-6)
    assert two.score_heads(ids(0), ids(1))[0, 0].item() == pytest.approx(expected, abs=1e-6)
    assert two.score_relations(ids(0), ids(1))[0, 0].item() == pytest.approx(expected, abs=1e-6)


def test_only_open_components_count(two: TransG) -> None:
    before = two.score_tails(ids(0, 1), ids(0, 0))
    with torch.no_grad():
        two.translation[0, 2:] = 0.3
        two.weight[0, 2:] = 7.0
    assert torch.equal(two.score_tails(ids(0, 1), ids(0, 0)), before)


def test_the_chance_of_a_new_component_by_hand(two: TransG) -> None:
    two.beta = 0.1
    new = 0.1 * math.exp(-1 / (0.5 + 1.5 + 2))
    old = 0.75 * math.exp(-1 / 2) + 0.25 * math.exp(-4 / 2)
    assert two.chance_of_new(ids(0), ids(0), ids(1)).item() == pytest.approx(new / (new + old), abs=1e-6)


def test_a_new_component_leads_from_the_head_to_the_tail(two: TransG, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(two, "chance_of_new", lambda h, r, t: torch.ones(len(h)))
    two.settle, generator = 2, torch.Generator().manual_seed(0)
    triples = ids(0, 1), ids(0, 0), ids(2, 2)
    two.grow(*triples, generator)
    assert two.open.tolist() == [2]  # not settled yet
    two.grow(*triples, generator)
    assert two.open.tolist() == [3]  # one, though two triples asked
    assert two.translation[0, 2].tolist() == [0.0, -1.0]
    shares = torch.softmax(two.weight[0, :3], 0)
    torch.testing.assert_close(shares.detach(), torch.tensor([0.5, 1 / 6, 1 / 3]))
    for _ in range(40):
        two.grow(*triples, generator)
    assert two.open.tolist() == [two.max_components]


def test_no_component_without_a_chance(two: TransG, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(two, "chance_of_new", lambda h, r, t: torch.zeros(len(h)))
    for _ in range(200):
        two.grow(ids(0, 1), ids(0, 0), ids(2, 2), torch.Generator().manual_seed(0))
    assert two.open.tolist() == [2]


def test_blocks_do_not_change_scores_or_gradients(two: TransG, monkeypatch: pytest.MonkeyPatch) -> None:
    def found() -> list[torch.Tensor]:
        heads, relations, tails = ids(0, 1, 2, 1), ids(0, 0, 0, 0), ids(2, 0, 1, 1)
        parts = [
            two.score(heads, relations, tails),
            two.score_tails(heads, relations),
            two.score_heads(relations, tails),
        ]
        parts += [two.score_tails(heads, relations, torch.stack([heads, tails], 1)), two.score_relations(heads, tails)]
        value = sum(part.sin().sum() for part in parts)
        return [*parts, *torch.autograd.grad(value, list(two.parameters()))]

    whole = found()
    monkeypatch.setattr(blocks, "NUMBERS", 1)
    for part, expected in zip(found(), whole, strict=True):
        torch.testing.assert_close(part, expected, rtol=1e-5, atol=1e-6)


def test_means_stay_in_the_unit_ball_and_variances_in_bounds() -> None:
    model = make(entities=4)
    with torch.no_grad():
        model.entity.weight.fill_(3.0)
        model.log_variance.weight.fill_(-50.0)
        model.translation[:, 0] = 5.0
    model.constrain(ids(1, 3))
    assert model.entity.weight.norm(dim=1).tolist() == pytest.approx([18**0.5, 1, 18**0.5, 1])
    model.constrain()
    assert model.entity.weight.norm(dim=1).tolist() == pytest.approx([1.0] * 4)
    assert model.translation[0].norm(dim=1).tolist() == pytest.approx([1.0] + [0.0] * 7)
    assert model.log_variance.weight.exp().min().item() == pytest.approx(0.01)


def chain(meanings: int, items: int = 12) -> Graph:
    """Each item stands at five places in a row. `next` and `second` lead one and two places on; `mixed` leads from the
    middle to the last place, or for every other item to the first."""
    rows = []
    for item in range(items):
        rows += [(item + place * items, 0, item + (place + 1) * items) for place in range(4)]
        rows += [(item + place * items, 1, item + (place + 2) * items) for place in range(3)]
        rows.append((item + 2 * items, 2, item + (0 if meanings == 2 and item % 2 else 4 * items)))
    return Graph(
        name="chain",
        entities=Vocabulary("entity", tuple(f"e{n}" for n in range(5 * items))),
        relations=Vocabulary("relation", ("next", "second", "mixed")),
        train=np.array(rows, np.int32),
        valid=np.zeros((0, 3), np.int32),
        test=np.zeros((0, 3), np.int32),
    )


def components(meanings: int, seed: int, **settings) -> list[int]:
    run = train(chain(meanings), model="transg", dim=8, batch_size=64, l2=0.0, seed=seed, threads=1, **settings)
    assert isinstance(run.model, TransG)
    return run.model.open.tolist()


@pytest.mark.parametrize("seed", range(4))
def test_a_relation_gets_as_many_components_as_it_has_meanings(seed: int) -> None:
    assert components(1, seed, epochs=60) == [1, 1, 1]
    assert components(2, seed, epochs=60)[2] > 1


@pytest.mark.parametrize("objective", ["likelihood", "margin"])
def test_it_learns_while_it_grows(small_world: Graph, objective: str) -> None:
    run = train(
        small_world,
        model="transg",
        dim=16,
        epochs=5,
        objective=objective,
        max_components=2,
        beta=0.5,
        settle=2,
        batch_size=250,
    )
    untrained = build_model("transg", len(small_world.entities), len(small_world.relations), 16, seed=0, options={})
    assert rank(run.model, small_world, "valid").mrr > 5 * rank(untrained, small_world, "valid").mrr
    assert isinstance(run.model, TransG)
    assert run.model.open.min() == 2
    assert run.model.entity.weight.norm(dim=-1).max() <= 1 + 1e-5


def test_averages_are_refused(world: Graph) -> None:
    with pytest.raises(RelWalkError, match=r"average_from .* TransG gets more of them"):
        train(world, model="transg", dim=4, epochs=2, average_from=1)


@pytest.mark.parametrize("wrong", [{"max_components": 0}, {"beta": 0.0}, {"beta": 2.0}, {"settle": -1}])
def test_wrong_options_are_refused(wrong: dict) -> None:
    (name,) = wrong
    with pytest.raises(RelWalkError, match=f"{name} is .*; expected"):
        make(**wrong)
