"""Paths by name: joined, held, known, and the messages of what cannot be walked."""

from __future__ import annotations

import json

import pytest
import torch

from relwalk.errors import RelWalkError, UnknownChoice, UnknownName
from relwalk.models import RelWalk, build_model
from relwalk.theory.sphere import tilted_directions
from relwalk.theory.walk import walk
from tests.conftest import TEST, TRAIN, VALID, make_graph

GRAPH = make_graph(TRAIN, VALID, TEST)


def relwalk(orthogonality: str = "exact", scale: float = 0.5, dim: int = 6) -> RelWalk:
    return RelWalk(
        5, 2, dim, generator=torch.Generator().manual_seed(0), orthogonality=orthogonality, entity_scale=scale
    )


@pytest.mark.parametrize("orthogonality", ["exact", "soft"])
def test_a_path_goes_on_from_each_tail_and_the_same_seed_walks_the_same(orthogonality: str) -> None:
    found = walk(relwalk(orthogonality), GRAPH, start="a", steps=4, paths=3)
    assert len(found) == 3 and all(len(path.steps) == 4 for path in found)
    for path in found:
        assert path.steps[0].head == "a"
        assert all(one.tail == two.head for one, two in zip(path.steps, path.steps[1:], strict=False))
        assert str(path).startswith("a ")
    assert found == walk(relwalk(orthogonality), GRAPH, start="a", steps=4, paths=3)
    assert found != walk(relwalk(orthogonality), GRAPH, start="a", steps=4, paths=3, seed=1)
    json.dumps(found.as_dict(), allow_nan=False)


def test_relation_and_entity_can_be_held() -> None:
    steps = [s for path in walk(relwalk(), GRAPH, start="b", relation="knows", hold="entity") for s in path.steps]
    assert {s.head for s in steps} == {"b"} and {s.relation for s in steps} == {"knows"}


def test_relations_are_those_that_leave_the_entity() -> None:
    steps = [s for path in walk(relwalk(), GRAPH, start="d", hold="entity", paths=20) for s in path.steps]
    assert {s.relation for s in steps} == {"knows"}  # d is a head of "knows" only
    nowhere = [s for path in walk(relwalk(), GRAPH, start="e", hold="entity", paths=20) for s in path.steps]
    assert {s.relation for s in nowhere} == {"likes", "knows"}  # e is no head at all: any relation


def test_without_a_start_whole_triples_are_emitted() -> None:
    found = walk(relwalk(), GRAPH, paths=40, steps=3)
    heads = {path.steps[0].head for path in found}
    assert len(heads) > 2 and not found.paths[0].joined and ";" in str(found.paths[0])
    truth = {(h, r, t) for h, r, t in GRAPH.triples.tolist()}
    for path in found:
        for s in path.steps:
            ids = (GRAPH.entities.id(s.head), GRAPH.relations.id(s.relation), GRAPH.entities.id(s.tail))
            assert s.known == (ids in truth)


def test_tails_follow_the_conditional_probability_that_the_theory_gives() -> None:
    model = relwalk(scale=1.0)
    found = walk(model, GRAPH, start="a", relation="likes", steps=1, paths=20_000, step_size=0.0)
    drawn = torch.tensor([GRAPH.entities.id(path.steps[0].tail) for path in found]).bincount(minlength=5) / 20_000
    with torch.no_grad():  # the same by hand: c given h, then the softmax over tails, averaged
        c = tilted_directions(model.entity.weight[:1], 20_000, torch.Generator().manual_seed(9))[0]
        expected = torch.softmax(c @ model.R2[0].T @ model.entity.weight.T, -1).mean(0)
    assert torch.allclose(drawn, expected, atol=0.015)


def test_a_cold_walk_takes_the_likeliest_tail() -> None:
    tails = {path.steps[0].tail for path in walk(relwalk(), GRAPH, start="a", relation="likes", temperature=1e-6)}
    assert len(tails) == 1


def test_one_dimension() -> None:
    assert len(walk(relwalk(dim=1), GRAPH, start="a")) == 10


def test_what_cannot_be_walked_says_why() -> None:
    with pytest.raises(UnknownName, match="no entity is called 'x'"):
        walk(relwalk(), GRAPH, start="x")
    with pytest.raises(UnknownName, match="no relation is called 'like'"):
        walk(relwalk(), GRAPH, start="a", relation="like")
    with pytest.raises(RelWalkError, match="TransE has none"):
        walk(build_model("transe", 5, 2, 4, seed=0, options={}), GRAPH)
    with pytest.raises(RelWalkError, match="start=NAME"):
        walk(relwalk(), GRAPH, hold="entity")
    with pytest.raises(UnknownChoice):
        walk(relwalk(), GRAPH, start="a", hold="relation")  # type: ignore[arg-type]
    with pytest.raises(RelWalkError, match="temperature is 0"):
        walk(relwalk(), GRAPH, temperature=0.0)
    with pytest.raises(RelWalkError, match="steps is 0"):
        walk(relwalk(), GRAPH, steps=0)
