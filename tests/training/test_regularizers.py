"""The nuclear 3-norm and DURA by hand, and who refuses them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from relwalk.errors import RelWalkError
from relwalk.experiment import make_task, train
from relwalk.graph.graph import Graph
from relwalk.models import MODELS, Reciprocal, Scorer, build_model
from relwalk.training.regularizers import regularization
from relwalk.training.settings import TrainingSettings

IDS = torch.tensor([0, 3, 3, 2]), torch.tensor([0, 1, 1, 0]), torch.tensor([1, 0, 2, 2])


def forms(model: Scorer, name: str) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Vectors of heads and tails, and the matrix M of each relation with s = hᵀM t (beside norms, for RelWalk)."""
    if name == "cp":
        return model.head.weight, model.tail.weight, torch.diag_embed(model.relation)
    if name == "complex":
        a, b = model.relation.chunk(2, -1)
        first, second = torch.cat([torch.diag_embed(a), torch.diag_embed(b)], -1), [torch.diag_embed(-b)]
        M = torch.cat([first, torch.cat([*second, torch.diag_embed(a)], -1)], 1)
    else:
        M = torch.diag_embed(model.relation) if name == "distmult" else model.M
    return model.entity.weight, model.entity.weight, M


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("distmult", {}),
        ("cp", {}),
        ("complex", {}),
        ("rescal", {}),
        ("relwalk", {}),
        ("relwalk", {"orthogonality": "soft"}),
        ("relwalk", {"hidden": True}),
    ],
)
def test_dura_is_that_of_the_models_own_form(name: str, options: dict) -> None:
    model = build_model(name, 5, 2, 6, seed=0, options=options)
    with torch.no_grad():  # away from a start where the soft matrices are orthogonal
        for weights in () if name == "relwalk" and not options else model.parameters():
            weights.add_(0.3 * torch.randn(weights.shape, generator=torch.Generator().manual_seed(1)))
    heads, tails, M = forms(model, name)
    h, t, M = heads[IDS[0]], tails[IDS[2]], M[IDS[1]]
    if name != "relwalk":
        torch.testing.assert_close(torch.einsum("bi,bij,bj->b", h, M, t), model.score(*IDS))
    ahead, back = torch.einsum("bi,bij->bj", h, M), torch.einsum("bij,bj->bi", M, t)
    expected = sum(x.square().sum() for x in (h, t, ahead, back))
    torch.testing.assert_close(model.dura(*IDS), expected)


def test_dura_of_orthogonal_relations_is_twice_the_l2_term(five: Graph) -> None:
    model = build_model("relwalk", 5, 2, 6, seed=0, options={"start_from": "rotations"})
    norms = model.entity.weight.square().sum(-1)
    torch.testing.assert_close(model.dura(*IDS), 2 * (norms[IDS[0]] + norms[IDS[2]]).sum())
    for few in (False, True):
        by_dura = regularization(model, TrainingSettings(l2=0, dura=0.3), *IDS, few=few)
        torch.testing.assert_close(by_dura, regularization(model, TrainingSettings(l2=0.6), *IDS, few=few))


@pytest.mark.parametrize("name", ["distmult", "cp", "complex", "rescal"])
def test_reciprocal_relations_are_held_both_ways(name: str) -> None:
    model = build_model(name, 5, 2, 6, seed=0, options={"reciprocal": True})
    h, r, t = IDS
    for norm in ("dura", "n3_norm"):
        there, back = getattr(model.base, norm)(h, r, t), getattr(model.base, norm)(t, r + 2, h)
        torch.testing.assert_close(getattr(model, norm)(h, r, t), (there + back) / 2)


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("options", [{}, {"reciprocal": True}])
@pytest.mark.parametrize("name", ["cp", "distmult"])
def test_l2_is_of_the_vectors_that_score_a_triple(name: str, options: dict, few: bool) -> None:
    model = build_model(name, 5, 2, 6, seed=0, options=options)
    base = model.base if options else model
    head, tail = (base.head, base.tail) if name == "cp" else (base.entity, base.entity)

    def norms(heads: torch.Tensor, tails: torch.Tensor) -> torch.Tensor:
        return head(heads).square().sum() + tail(tails).square().sum()

    h, _, t = IDS
    expected = (norms(h, t) + norms(t, h)) / 2 if options else norms(h, t)
    found = regularization(model, TrainingSettings(l2=0.5), *IDS, few=few)
    torch.testing.assert_close(found, 0.5 * 2 * expected)


def test_n3_of_cp_is_of_the_roles_that_a_triple_gives() -> None:
    model = build_model("cp", 2, 1, 2, seed=0, options={})
    with torch.no_grad():
        model.head.weight.copy_(torch.tensor([[1.0, -2.0], [9.0, 9.0]]))
        model.tail.weight.copy_(torch.tensor([[9.0, 9.0], [3.0, 0.0]]))
        model.relation.copy_(torch.tensor([[-1.0, 1.0]]))
    zero, one = torch.tensor([0]), torch.tensor([1])
    assert float(model.n3_norm(zero, zero, one).detach()) == 1 + 8 + 27 + 1 + 1


@pytest.mark.parametrize("name", MODELS)
def test_regularizers_that_a_model_takes_move_its_vectors_towards_zero(name: str) -> None:
    model = build_model(name, 5, 2, 8, seed=0, options={})
    norms = [model.n3_norm]
    try:
        model.dura(*IDS)
        norms.append(model.dura)
    except RelWalkError as error:
        base = model.base if isinstance(model, Reciprocal) else model
        assert f"dura means nothing to {base.title}" in str(error)
    for norm in norms:
        gradients = torch.autograd.grad(norm(*IDS), [table.weight for table in model.tables()])
        along = sum((g * t.weight.detach()).sum() for g, t in zip(gradients, model.tables(), strict=True))
        assert float(along.detach()) > 0


def test_dura_is_refused_before_anything_is_written(world: Graph, tmp_path: Path) -> None:
    for model in ("transe", "rotate", "ote"):
        with pytest.raises(RelWalkError, match=r"dura means nothing to .* Say --l2 or --n3"):
            train(world, model=model, dim=8, epochs=1, dura=0.1, out=tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_dura_counts_every_triple_of_a_step(five: Graph) -> None:
    model = build_model("rescal", 5, 2, 6, seed=0, options={})
    losses = []
    for weight in (0.0, 0.7):
        task = make_task(five, TrainingSettings(l2=0.0, dura=weight, batch_size=100))
        (batch,) = task.batches(torch.Generator().manual_seed(0))
        losses.append(float(task.loss(model, batch, torch.Generator()).detach()))
    every = float(model.dura(*torch.tensor(five.train.tolist()).unbind(1)).detach())
    assert losses[1] - losses[0] == pytest.approx(2 * 0.7 * 2 * model.scale * every, rel=1e-4)  # asked both ways
