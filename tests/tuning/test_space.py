"""What is searched: every model and every objective declares settings that it takes."""

from __future__ import annotations

import random
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relwalk.errors import RelWalkError
from relwalk.graph.graph import Graph
from relwalk.keywords import all_keywords
from relwalk.models import MODELS, Scorer
from relwalk.planning import plan
from relwalk.space import Among, Between, Search, search_as_dict, search_from_dict
from relwalk.training.objectives import OBJECTIVES
from relwalk.tuning.sampler import ask
from relwalk.tuning.space import Space, search_space
from tests.conftest import TEST, TRAIN, VALID, make_graph

FIVE = make_graph(TRAIN, VALID, TEST)
DRAWS = 3


def combinations() -> list[tuple[str, str]]:
    """Every model with every objective that fits it."""
    found = []
    for model, kind in MODELS.items():
        for objective in kind.objectives or OBJECTIVES:
            if not (objective == "bce" and kind.nonnegative):
                found.append((model, objective))
    return found


def drawn(search: Search, chance: random.Random) -> Any:
    """Some value, the ends more often than others."""
    if isinstance(search, Among):
        return chance.choice(search.choices)
    low, high = search.ends()
    if chance.random() < 0.3:
        return chance.choice((low, high))
    return search.nearest(chance.uniform(low, high))


@pytest.mark.parametrize(("model", "objective"), combinations())
def test_random_draws_of_every_space_are_settings_of_a_training(model: str, objective: str) -> None:
    fixed = {"model": model, "objective": objective}
    space = search_space(FIVE, fixed)
    expected = {"reciprocal"} if objective not in ("likelihood", "bce") else set()
    assert set(space.left_out) <= expected, space.left_out  # what a model declares is what it takes
    assert {"dim", "lr", "batch_size"} <= set(space.searched)
    chance = random.Random(f"{model} {objective}")
    for _ in range(DRAWS):
        values = {name: drawn(search, chance) for name, search in space.searched.items()}
        record = plan(FIVE, **fixed, **values)
        found = {**record.training.flat(), **record.model.options, "dim": record.model.dim}
        assert {name: found[name] for name in values} == values  # each of them arrives


@pytest.mark.parametrize("name", MODELS)
def test_what_a_model_declares_is_a_setting_or_an_option(name: str) -> None:
    assert set(MODELS[name].searched()) <= {"dim", *all_keywords()}


def test_objectives_bring_their_own_settings() -> None:
    assert "label_smoothing" in search_space(FIVE, {}).searched
    margin = search_space(FIVE, {"objective": "margin"}).searched
    assert {"eta", "negatives", "sampler"} <= set(margin) and "label_smoothing" not in margin
    assert "plateau_factor" in search_space(FIVE, {"schedule": "plateau"}).searched


def test_what_was_given_is_not_searched_nor_what_says_the_same() -> None:
    space = search_space(FIVE, {"objective": "margin", "margin": 2.0, "batches": 3, "l2": 0.1, "dim": 8}).searched
    assert not {"margin", "eta", "batches", "batch_size", "l2", "dim"} & set(space)


def test_what_does_not_fit_the_graph_is_left_out_with_the_reason() -> None:
    space = search_space(FIVE, {"candidates_per_step": 3})
    assert "label_smoothing" not in space.searched
    assert "a step with sampled candidates does not see" in space.left_out["label_smoothing"]
    ote = search_space(FIVE, {"model": "ote", "dim": 12})
    assert ote.searched["block_size"] == Among((2, 4))  # what divides 12


def test_rates_are_searched_around_those_of_the_model() -> None:
    for model in ("relwalk", "transe"):
        space = search_space(FIVE, {"model": model})
        usual, search = MODELS[model].lr, space.searched["lr"]
        assert isinstance(search, Between) and (search.low, search.high) == pytest.approx((0.1 * usual, 4 * usual))
        assert space.usual["lr"] == usual


def test_a_model_adds_to_what_its_bases_declare() -> None:
    class Base(Scorer):
        search: ClassVar[Any] = {"l2": None}

    class Own(Base):
        search: ClassVar[Any] = {"n3": Between(0.1, 1.0)}

    assert Own.searched() == {**Scorer.searched(), "l2": None, "n3": Between(0.1, 1.0)}


def test_the_default_recipe_is_within_reach() -> None:
    """The values that the default has can be held against those that are drawn."""
    space, record = search_space(FIVE, {}), plan(FIVE)
    default = {"dim": record.model.dim, **record.training.flat()}
    for name in ("dim", "schedule", "entity_dropout", "dura", "decay_end", "batch_size"):
        assert space.usual[name] == default[name], name


numbers = st.floats(1e-6, 1e6, allow_nan=False)


@given(st.tuples(numbers, numbers), st.sampled_from(["linear", "log", "powers"]), numbers)
@settings(max_examples=60, deadline=None)
def test_a_range_is_read_back_and_holds_what_is_nearest(ends: tuple[float, float], scale: Any, value: float) -> None:
    low, high = min(ends), max(ends) + 1
    if scale == "powers":
        low, high = 2 ** round(low % 5), 2 ** round(low % 5 + 3)
    search = Between(low, high, scale)
    assert search_from_dict("x", search_as_dict(search)) == search
    assert low <= search.nearest(value) <= high and search.nearest(search.nearest(value)) == search.nearest(value)


@pytest.mark.parametrize(
    "content", [None, {}, {"choices": []}, {"low": 1, "high": 1, "scale": "log"}, {"low": 0, "high": 1, "scale": "log"}]
)
def test_a_range_that_is_none_is_refused(content: Any) -> None:
    with pytest.raises(RelWalkError, match="l2 is to be searched in"):
        search_from_dict("l2", content)


@pytest.fixture(scope="module")
def space() -> Space:
    return search_space(FIVE, {})


def test_what_is_asked_depends_on_the_seed_and_stays_in_the_space(space: Space, five: Graph) -> None:
    first = ask(space.searched, space.usual, [], 0)
    assert first == ask(space.searched, space.usual, [], 0) != ask(space.searched, space.usual, [], 1)
    plan(five, **{name: value for name, value in first.items() if value is not None})
