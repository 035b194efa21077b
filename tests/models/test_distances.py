"""Distances that are no product: by hand, in value and slope, and in bounded memory."""

from __future__ import annotations

import math
from unittest.mock import patch

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from relwalk.errors import RelWalkError
from relwalk.evaluation.ranking import rank
from relwalk.experiment import train
from relwalk.graph.graph import Graph
from relwalk.models import build_model, distances
from relwalk.models.distances import block_distances, distinct
from relwalk.models.ote import gram_schmidt
from tests.conftest import part_of


def plain(x: torch.Tensor, y: torch.Tensor, place: torch.Tensor | None) -> torch.Tensor:
    """The same with all differences at once."""
    others = y if place is None else y[place]
    return torch.linalg.vector_norm(x.unsqueeze(1) - others, dim=-2).sum(-1)


@pytest.mark.parametrize("tile", [1, 40, distances.TILE])
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize(("width", "blocks"), [(1, 6), (2, 3), (5, 1)])
def test_value_and_slope_do_not_depend_on_the_tiles(tile: int, own: bool, width: int, blocks: int) -> None:
    draw = torch.Generator().manual_seed(0)
    x, y = (torch.randn(n, width, blocks, generator=draw, dtype=torch.float64) for n in (7, 9))
    place = torch.randint(0, 9, (7, 4), generator=draw) if own else None
    weights = torch.randn(7, 4 if own else 9, generator=draw, dtype=torch.float64)
    x, y = x.requires_grad_(), y.requires_grad_()
    with patch.object(distances, "TILE", tile):
        found = block_distances(x, y, place)
        slopes = torch.autograd.grad((weights * found).sum(), (x, y))
    expected = plain(x, y, place)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(slopes, torch.autograd.grad((weights * expected).sum(), (x, y)))


def test_the_slope_at_no_distance_is_zero() -> None:
    x = torch.ones(1, 2, 3, requires_grad=True)
    block_distances(x, torch.ones(4, 2, 3)).sum().backward()
    assert x.grad is not None and torch.equal(x.grad, torch.zeros(1, 2, 3))


def test_candidates_of_rows_are_looked_up_once() -> None:
    entities, place = distinct(torch.tensor([[5, 2], [2, 2]]))
    assert entities is not None and place is not None
    assert (entities.tolist(), entities[place].tolist()) == ([2, 5], [[5, 2], [2, 2]])
    assert distinct(None) == (None, None)


class Largest(TorchDispatchMode):
    """The most numbers that any result of an operation has, results given aside."""

    def __init__(self, *given: torch.Size) -> None:
        super().__init__()
        self.numbers, self.given = 0, given

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for tensor in out if isinstance(out, (list, tuple)) else [out]:
            if isinstance(tensor, torch.Tensor) and tensor.shape not in self.given:
                self.numbers = max(self.numbers, tensor.untyped_storage().nbytes() // tensor.element_size())
        return out


@pytest.mark.parametrize("name", ["rotate", "ote"])
@pytest.mark.parametrize("candidates", [None, torch.arange(3000)])
def test_memory_is_that_of_scores_and_tiles_both_ways(name: str, candidates: torch.Tensor | None) -> None:
    """Never batch x candidates x dim, which is 16 times what is allowed here."""
    entities, dim, batch = 3000, 32, 64
    model = build_model(name, entities, 3, dim, seed=0, options={})
    given, relations = torch.arange(batch), torch.arange(batch) % 3
    allowed = max(batch * entities, entities * dim, distances.TILE)
    with Largest() as largest:
        model.score_candidates("tail", given, relations, candidates).square().sum().backward()
    assert largest.numbers <= 2 * allowed < batch * entities * dim / 8


@pytest.mark.parametrize("name", ["rotate", "ote"])
def test_ranking_holds_blocks_of_scores(world: Graph, name: str) -> None:
    model = build_model(name, len(world.entities), len(world.relations), 32, seed=0, options={})
    block = 1 << 19  # scores
    with Largest() as largest:
        rank(model, world, "test", triples=world.test[:200], block=block)
    assert largest.numbers <= 2 * block


def test_rotate_by_hand() -> None:
    """A quarter turn takes 3 + 4i to -4 + 3i, half a turn 1 to -1."""
    model = build_model("rotate", 3, 1, 4, seed=0, options={})
    with torch.no_grad():
        model.angle.copy_(torch.tensor([[math.pi / 2, math.pi]]))
        model.entity.weight.copy_(torch.tensor([[3.0, 1.0, 4.0, 0.0], [-4.0, -1.0, 3.0, 0.0], [-4.0, 2.0, 8.0, 4.0]]))
    h, r = torch.tensor([0, 0]), torch.tensor([0, 0])
    assert model.score(h, r, torch.tensor([1, 2])).tolist() == pytest.approx([0, -(5 + 5)], abs=1e-5)
    assert model.score_tails(h[:1], r[:1])[0].tolist() == pytest.approx([-(50**0.5 + 2), 0, -10], abs=1e-5)
    assert float(model.score_heads(r[:1], torch.tensor([2]))[0, 0].detach()) == pytest.approx(-10, abs=1e-5)
    assert float(model.n3_norm(h[:1], r[:1], h[:1]).detach()) == pytest.approx(2 * (125 + 1), rel=1e-4)


def test_rotate_starts_as_far_from_the_truth_in_any_dimension() -> None:
    for dim in (16, 256):
        model = build_model("rotate", 400, 4, dim, seed=0, options={})
        assert float(model.entity.weight.detach().abs().max()) <= 22 / dim
        scores = model.score(torch.arange(200), torch.arange(200) % 4, torch.arange(200) + 200)
        assert -13 < float(scores.detach().mean()) < -9


def test_ote_by_hand() -> None:
    """Columns (0, 2) and (1, 5) become (0, 1) and (1, 0): coordinates are exchanged, then scaled by 2 and 1."""
    model = build_model("ote", 2, 1, 4, seed=0, options={"block_size": 2})
    with torch.no_grad():
        model.matrix.copy_(torch.tensor([[[0.0, 1.0], [2.0, 5.0]], [[1.0, 0.0], [0.0, 1.0]]]))
        model.log_scale.copy_(torch.tensor([[math.log(2), 0, 0, 0]]))
        model.entity.weight.copy_(torch.tensor([[1.0, 2.0, 3.0, 4.0], [4.0, 4.0, 3.0, 0.0]]))
    zero, one = torch.tensor([0]), torch.tensor([1])
    # There: (2·2, 1) - (4, 4) and (3, 4) - (3, 0); back: (4 / 2, 4) - (1, 2) and (3, 0) - (3, 4).
    expected = -(3 + 4) - (5**0.5 + 4)
    assert float(model.score(zero, zero, one).detach()) == pytest.approx(expected, rel=1e-5)
    assert float(model.score_tails(zero, zero)[0, 1].detach()) == pytest.approx(expected, rel=1e-5)
    assert float(model.score_heads(zero, one)[0, 0].detach()) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("size", [1, 2, 5, 20])
def test_gram_schmidt_is_orthogonal_and_keeps_what_is(size: int) -> None:
    free = torch.randn(4, 3, size, size, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    made = gram_schmidt(free)
    torch.testing.assert_close(made.mT @ made, torch.eye(size, dtype=torch.float64).expand(4, 3, size, size))
    torch.testing.assert_close(gram_schmidt(made), made)
    assert bool(((made * free).sum(-2) > 0).all())  # each column on the side of the one it was made from


def test_ote_holds_orthogonal_matrices_which_stand_for_the_same_model(world: Graph) -> None:
    model = build_model("ote", 30, 2, 12, seed=0, options={"block_size": 3})
    with torch.no_grad():
        model.matrix.copy_(torch.randn(model.matrix.shape, generator=torch.Generator().manual_seed(1)))
    triples = torch.randint(0, 2, (3, 20), generator=torch.Generator().manual_seed(2)).unbind()
    before = model.score(*triples)
    model.constrain()
    torch.testing.assert_close(model.score(*triples), before)
    trained = train(part_of(world, 300), model="ote", dim=8, epochs=2).model.matrix.detach()
    torch.testing.assert_close(trained @ trained.mT, torch.eye(4).expand_as(trained), atol=1e-5, rtol=0)


def test_ote_without_scales_is_the_same_both_ways() -> None:
    model = build_model("ote", 30, 2, 12, seed=0, options={"block_size": 3})
    h, r, t = torch.arange(10), torch.arange(10) % 2, torch.arange(10) + 15
    ahead = model._turn("tail", model.entity(h), r) - model.entity(t)
    torch.testing.assert_close(model.score(h, r, t), -2 * model._blocks(ahead).norm(dim=1).sum(-1))


@pytest.mark.parametrize(
    ("name", "dim", "options", "words"),
    [
        ("rotate", 7, {}, "RotatE needs an even dim .*; found 7"),
        ("ote", 10, {}, "found dim 10 and block_size 4"),
        ("ote", 8, {"block_size": 0}, "block_size is 0; expected a whole number"),
    ],
)
def test_what_does_not_fit_is_refused(name: str, dim: int, options: dict, words: str) -> None:
    with pytest.raises(RelWalkError, match=words):
        build_model(name, 5, 2, dim, seed=0, options=options)
