"""What a model says of itself: `relwalk models`, the patterns it can express, the objectives and settings that fit."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, ClassVar, get_args

import pytest
import torch

from relwalk.catalogue import Numbers, describe_models
from relwalk.errors import RelWalkError
from relwalk.experiment import train
from relwalk.graph.graph import Graph
from relwalk.keywords import sort_out
from relwalk.models import MODELS, build_model
from relwalk.models.base import Pattern, Scorer
from relwalk.models.distmult import DistMult
from relwalk.planning import plan
from relwalk.training.objectives import OBJECTIVES
from tests.entry import relwalk

KEYS = {
    *("name", "title", "paper", "formula", "numbers_per_entity", "numbers_per_relation", "shared_numbers"),
    *("expresses", "objectives", "options", "product"),
}
EVERY = torch.arange(12)
DIM = 64


def scores(model: Scorer, relation: int) -> torch.Tensor:
    """s(h, r, t) of all heads and tails.  # (entities, entities)"""
    heads, tails = (x.flatten() for x in torch.meshgrid(EVERY, EVERY, indexing="ij"))
    return model.score(heads, torch.full_like(heads, relation), tails).detach().view(len(EVERY), len(EVERY))


def made(name: str) -> Scorer:
    """A model away from its start, where matrices may be identities."""
    model = build_model(name, len(EVERY), 3, DIM, seed=1, options={}).eval()
    with torch.no_grad():
        for weights in model.parameters():
            weights.add_(0.2 * torch.randn(weights.shape, generator=torch.Generator().manual_seed(2)))
    return model


def test_the_list_in_json_has_every_model() -> None:
    found = json.loads(relwalk("models", "--json").stdout)
    assert [entry["name"] for entry in found] == list(MODELS)
    for entry in found:
        kind = MODELS[entry["name"]]
        assert set(entry) >= KEYS
        assert entry["product"] == kind.is_product_with({})
        assert set(entry["objectives"]) <= set(OBJECTIVES) and entry["objectives"]


def test_the_list_in_words() -> None:
    said = relwalk("models", "--dim", 7).stdout
    for name, kind in MODELS.items():
        assert f"{name:<14}{kind.__name__}: {kind.formula}" in said and kind.paper in said
    assert "ComplEx needs an even dim" in said and "7 an entity, 49 a relation" in said


@pytest.mark.parametrize("name", MODELS)
def test_numbers_are_those_of_a_model_that_is_built(name: str) -> None:
    (entry,) = (entry for entry in describe_models(DIM).models if entry.name == name)
    assert isinstance(entry.numbers, Numbers), entry.numbers
    model = build_model(name, 40, 7, DIM, seed=0, options={})
    counted = 40 * entry.numbers.entity + 7 * entry.numbers.relation + entry.numbers.shared
    assert counted == sum(weights.numel() for weights in model.parameters())
    assert entry.numbers.entity == sum(table.weight.shape[1] for table in model.tables())


@pytest.mark.parametrize("name", MODELS)
def test_every_model_says_what_it_is(name: str) -> None:
    kind = MODELS[name]
    assert kind.formula and re.search(r"\b(19|20)\d\d\b", kind.paper)
    assert set(kind.expresses) <= set(get_args(Pattern)) and len(set(kind.expresses)) == len(kind.expresses)
    assert kind.objectives is None or (kind.objectives and set(kind.objectives) <= set(OBJECTIVES))
    usual = {name: value for name, value in kind.usual.items() if name != "dim"}
    training, _ = sort_out(usual, kind)  # refuses what is no setting and no option
    assert kind.objectives is None or training.get("objective", kind.objectives[0]) in kind.objectives


@pytest.mark.parametrize("name", MODELS)
def test_what_it_expresses_does_not_contradict_its_scores(name: str) -> None:
    """Scores that are the same both ways whatever the weights are symmetric, and nothing else."""
    model, claims = made(name), MODELS[name].expresses
    found = [scores(model, relation) for relation in range(3)]
    if all(torch.allclose(s, s.T, atol=1e-4) for s in found):
        assert "antisymmetry" not in claims
        assert "symmetry" in claims or "one-to-many" in claims or not claims


def test_witnesses_of_patterns() -> None:
    """Weights that hold a pattern exactly, for all entities at once."""
    transe = made("transe")
    with torch.no_grad():
        transe.relation[1] = -transe.relation[0]
        torch.testing.assert_close(scores(transe, 1), scores(transe, 0).T)  # inversion
        transe.entity.weight[2] = transe.entity.weight[0] + transe.relation[0]
        transe.entity.weight[3] = transe.entity.weight[2] + transe.relation[2]
        transe.relation[1] = transe.relation[0] + transe.relation[2]  # composition
    assert float(scores(transe, 1)[0, 3]) == pytest.approx(0, abs=1e-5)
    complex_, rescal = made("complex"), made("rescal")
    with torch.no_grad():
        complex_.relation[0, DIM // 2 :] = 0  # real: symmetric
        complex_.relation[1, : DIM // 2] = 0  # imaginary: antisymmetric
        rescal.M[0] = rescal.M[0] - rescal.M[0].T.clone()
        rescal.M[2] = rescal.M[1].T
    torch.testing.assert_close(scores(complex_, 0), scores(complex_, 0).T)
    torch.testing.assert_close(scores(complex_, 1), -scores(complex_, 1).T)
    torch.testing.assert_close(scores(rescal, 0), -scores(rescal, 0).T)
    torch.testing.assert_close(scores(rescal, 2), scores(rescal, 1).T)
    distmult = made("distmult")
    torch.testing.assert_close(scores(distmult, 0), scores(distmult, 0).T)


class OnlyMargin(DistMult):
    """As one whose objective is not the default one."""

    objectives = ("margin", "mean")
    usual: ClassVar[Mapping[str, Any]] = {"negatives": 7, "l2": 0.01}


def test_an_objective_that_does_not_fit_is_refused_before_anything_is_written(five: Graph, tmp_path) -> None:
    with pytest.raises(RelWalkError, match=r"likelihood does not fit OnlyMargin\. Say --objective margin or mean"):
        train(five, model=OnlyMargin, objective="likelihood", dim=4, epochs=1, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_what_is_usual_is_the_default_and_gives_way(five: Graph) -> None:
    usual = train(five, model=OnlyMargin, dim=4, epochs=1).record.training
    assert (usual.objective.name, usual.objective.negatives, usual.l2) == ("margin", 7, 0.01)
    said = train(five, model=OnlyMargin, dim=4, epochs=1, negatives=3).record.training
    assert (said.objective.negatives, said.l2) == (3, 0.01)
    other = train(five, model=OnlyMargin, dim=4, epochs=1, objective="mean").record.training
    assert (other.objective.name, other.objective.negatives, other.l2) == ("mean", 100, 0.15)
    adam = train(five, model=OnlyMargin, dim=4, epochs=1, objective="margin", optimizer="adam").record.training
    assert (adam.objective.negatives, adam.l2) == (100, 0.15)


def test_a_run_is_repeated_without_what_is_usual(five: Graph, tmp_path) -> None:
    first = train(five, model=OnlyMargin, dim=4, epochs=1, objective="mean", out=tmp_path / "run").record
    again = train(five, model=OnlyMargin, config=tmp_path / "run").record
    assert again.training == first.training


def test_a_dimension_may_be_usual_and_gives_way(five: Graph) -> None:
    class Narrow(DistMult):
        usual: ClassVar[Mapping[str, Any]] = {"dim": 6}

    assert plan(five, model=Narrow).model.dim == 6 and plan(five, model=Narrow, dim=4).model.dim == 4


@pytest.mark.parametrize("name", MODELS)
def test_what_is_usual_gives_way_to_what_it_does_not_go_with(name: str, world: Graph) -> None:
    """Nobody has to know what is usual to say something else."""
    planned = plan(world, model=name, l2=0.05).training
    assert (planned.l2, planned.decay_end) == (0.05, 1.0)
    if planned.objective.name == "likelihood":
        smooth = plan(world, model=name, label_smoothing=0.1).training.flat()
        assert (smooth["label_smoothing"], smooth["candidates_per_step"]) == (0.1, 0)
    drawn = plan(world, model=name, candidates_per_step=50).training.flat()
    assert drawn["objective"] in ("likelihood", "bce") and drawn["candidates_per_step"] == 50
    if name != "unstructured":
        assert plan(world, model=name, reciprocal=True).model.options["reciprocal"]
