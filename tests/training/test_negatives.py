from __future__ import annotations

import pytest
import torch

from relwalk.graph.graph import Graph
from relwalk.training.negatives import SAMPLERS
from tests.conftest import make_graph

MANY = 4000


def draw(graph: Graph, name: str, triple: tuple[int, int, int], **options) -> tuple[set[int], set[int], float]:
    """The heads and tails that replaced those of one triple, and how often the tail was replaced."""
    sampler = SAMPLERS[name](graph, **options)
    positives = torch.tensor([triple] * MANY)
    entities, tail = sampler(positives, 3, torch.Generator().manual_seed(0))
    assert entities.shape == (MANY, 3)
    return set(entities[~tail].flatten().tolist()), set(entities[tail].flatten().tolist()), float(tail.float().mean())


def test_uniform_reaches_every_entity_on_both_sides(five: Graph) -> None:
    heads, tails, share = draw(five, "uniform", (0, 0, 1))
    assert heads == tails == {0, 1, 2, 3, 4}
    assert share == pytest.approx(0.5, abs=0.04)


def test_argument_draws_from_the_place_in_train_alone(five: Graph) -> None:
    heads, tails, _ = draw(five, "argument", (0, 0, 1))
    assert heads == {0, 1}
    assert tails == {1, 2}  # 3 is a tail of `likes` in valid and test only


@pytest.mark.parametrize(("name", "heads", "tails"), [("uniform", {1, 2, 3, 4}, {0, 3, 4}), ("argument", {1}, {1, 2})])
def test_known_triples_can_be_avoided_exactly(five: Graph, name: str, heads: set, tails: set) -> None:
    """(0 likes ?) has the tails 1 and 2 in train, so argument has nothing unknown left and allows them."""
    found_heads, found_tails, _ = draw(five, name, (0, 0, 1), avoid_known=True)
    assert found_heads == heads
    assert found_tails == tails


def test_avoiding_is_uniform_over_what_is_left(five: Graph) -> None:
    sampler = SAMPLERS["uniform"](five, avoid_known=True)
    entities, tail = sampler(torch.tensor([(0, 0, 1)] * MANY), 5, torch.Generator().manual_seed(1))
    shares = torch.bincount(entities[tail].flatten(), minlength=5) / entities[tail].numel()
    torch.testing.assert_close(shares, torch.tensor([1 / 3, 0, 0, 1 / 3, 1 / 3]), rtol=0, atol=0.03)


def test_a_query_unknown_to_train_is_no_trouble(five: Graph) -> None:
    _, tails, _ = draw(five, "uniform", (4, 1, 2), avoid_known=True)
    assert tails == {0, 1, 2, 3, 4}


def test_bernoulli_spares_the_side_with_many_answers() -> None:
    graph = make_graph([(0, 0, t) for t in range(1, 5)])  # 4 tails per head, 1 head per tail
    _, _, share = draw(graph, "bernoulli", (0, 0, 1))
    assert share == pytest.approx(1 / 5, abs=0.03)


def test_the_generator_decides(five: Graph) -> None:
    sampler, positives = SAMPLERS["uniform"](five), torch.tensor([(0, 0, 1)] * 50)
    a, b, c = (sampler(positives, 4, torch.Generator().manual_seed(s)) for s in (1, 1, 2))
    assert torch.equal(a.entities, b.entities)
    assert torch.equal(a.tail, b.tail)
    assert not torch.equal(a.entities, c.entities)
