"""ConvE, TuckER and NTN: the papers' formulas by hand, batch norm and dropout, memory, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

import relwalk
from relwalk import memory
from relwalk.errors import RelWalkError
from relwalk.evaluation.ranking import rank
from relwalk.experiment import make_task, train
from relwalk.exports import weights as exported
from relwalk.graph.graph import Graph
from relwalk.models import Reciprocal, Scorer, build_model, conve, ntn
from relwalk.models.conve import fold
from relwalk.models.tables import BatchNorm, Dropout
from relwalk.training.settings import TrainingSettings
from tests.entry import relwalk as command

IDS = torch.tensor([0, 3, 1]), torch.tensor([1, 0, 1]), torch.tensor([2, 2, 4])


def made(name: str, dim: int = 6, **options: object) -> Scorer:
    """A model with weights, means and variances away from where they start."""
    model = build_model(name, 5, 2, dim, seed=0, options=options)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for tensor in model.state_dict().values():
            if tensor.is_floating_point():
                tensor.add_(0.3 * torch.rand(tensor.shape, generator=generator))
    return model


def normed(norm: torch.nn.Module, x: Tensor, axis: int) -> Tensor:
    """Batch norm in evaluation, by its definition."""
    shape = [-1 if place == axis else 1 for place in range(x.dim())]
    mean, var, weight, bias = (getattr(norm, n).view(shape) for n in ("running_mean", "running_var", "weight", "bias"))
    return (x - mean) / (var + norm.eps).sqrt() * weight + bias


def test_conve_is_the_formula_of_its_paper() -> None:
    """One filter's value at a time, over head and relation as 2 x 4 images on top of each other."""
    model = made("conve", dim=8, channels=3, reciprocal=False)
    for h, r, t in zip(*(ids.tolist() for ids in IDS), strict=True):
        image = torch.cat([model.entity.weight[h].view(2, 4), model.relation[r].view(2, 4)])
        image = normed(model.image_norm, image.view(1, 1, 4, 4), 1)[0, 0]
        maps = torch.zeros(3, 2, 2)
        for c, y, x in np.ndindex(3, 2, 2):
            maps[c, y, x] = (image[y : y + 3, x : x + 3] * model.filters[c, 0]).sum()
        maps = normed(model.map_norm, maps, 0).clamp(min=0)
        hidden = normed(model.hidden_norm, maps.flatten() @ model.hidden, 0).clamp(min=0)
        expected = hidden @ model.entity.weight[t] + model.bias.weight[t, 0]
        found = model.score(*(torch.tensor([i]) for i in (h, r, t)))
        torch.testing.assert_close(found, expected.detach().unsqueeze(0), rtol=1e-4, atol=1e-5)


def test_tucker_is_a_product_along_three_axes() -> None:
    model = made("tucker", relation_dim=4, reciprocal=False)
    h, t = normed(model.input_norm, model.entity(IDS[0]), 1), model.entity(IDS[2])
    inner = torch.einsum("jde,bd,bj->be", model.core, h, model.relation[IDS[1]])
    expected = (normed(model.hidden_norm, inner, 1) * t).sum(1)
    torch.testing.assert_close(model.score(*IDS), expected)


def test_ntn_is_the_formula_of_its_paper() -> None:
    model = made("ntn", slices=3)
    for row, (h, r, t) in enumerate(zip(*(ids.tolist() for ids in IDS), strict=True)):
        x, y, V = model.entity.weight[h], model.entity.weight[t], torch.cat([model.V_head[r], model.V_tail[r]], 1)
        bilinear = torch.stack([x @ model.W[r, k] @ y for k in range(3)])
        expected = model.u[r] @ torch.tanh(bilinear + V @ torch.cat([x, y]) + model.b[r])
        torch.testing.assert_close(model.score(*IDS)[row], expected)


@pytest.mark.parametrize("name", ["conve", "tucker"])
def test_heads_are_asked_for_by_inverses_unless_told_not_to(name: str) -> None:
    assert isinstance(made(name), Reciprocal)
    plain = made(name, reciprocal=False)
    assert not isinstance(plain, Reciprocal)
    heads = torch.arange(5).repeat(3)
    expected = plain.score(heads, IDS[1].repeat_interleave(5), IDS[2].repeat_interleave(5)).view(3, 5)
    torch.testing.assert_close(plain.score_heads(IDS[1], IDS[2]), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["conve", "tucker", "ntn"])
def test_blocks_change_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = made(name, **({} if name == "ntn" else {"reciprocal": False}))
    with torch.no_grad():
        whole = [
            model.score_tails(*IDS[:2]),
            model.score_heads(*IDS[1:]),
            model.score_tails(*IDS[:2], IDS[0].view(3, 1)),
        ]
        monkeypatch.setattr(conve, "BLOCK", 1)
        monkeypatch.setattr(ntn, "BLOCK", 1)
        parts = [
            model.score_tails(*IDS[:2]),
            model.score_heads(*IDS[1:]),
            model.score_tails(*IDS[:2], IDS[0].view(3, 1)),
        ]
    torch.testing.assert_close(parts, whole)


def test_ntn_scores_all_entities_in_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The largest tensor on the way, beside the scores, is a block."""
    model = build_model("ntn", 400, 2, 8, seed=0, options={})
    monkeypatch.setattr(ntn, "BLOCK", 5000)
    largest = 0
    tanh = torch.tanh

    def watched(x: Tensor) -> Tensor:
        nonlocal largest
        largest = max(largest, x.numel())
        return tanh(x)

    monkeypatch.setattr(torch, "tanh", watched)
    ids = torch.zeros(60, dtype=torch.long)
    with torch.no_grad():
        assert model.score_tails(ids, ids).shape == (60, 400)
    assert 4 * 400 <= largest <= 5000


def test_a_row_alone_has_no_variance_and_is_normalised_as_in_evaluation() -> None:
    norm = BatchNorm(3)
    norm.train()(torch.randn(20, 3, generator=torch.Generator().manual_seed(0)) * 3 + 1)
    row, before = torch.tensor([[1.0, 2.0, 3.0]]), norm.running_mean.clone()
    alone = norm(row)
    assert torch.equal(norm.running_mean, before)
    torch.testing.assert_close(alone, torch.nn.functional.batch_norm(row, norm.running_mean, norm.running_var))
    torch.testing.assert_close(norm.eval()(row), alone)


@pytest.mark.parametrize("name", ["conve", "tucker"])
def test_a_question_alone_can_be_learned_from(five: Graph, name: str) -> None:
    """The last batch of an epoch may ask a single head, or tail."""
    run = train(five, model=name, dim=4, epochs=2, batch_size=1)
    assert rank(run).mrr > 0


def test_whole_feature_maps_are_dropped() -> None:
    dropout = Dropout(0.5, axes=2).train()
    dropout.generator = torch.Generator().manual_seed(0)
    found = dropout(torch.ones(6, 7, 3, 2)).flatten(2)
    assert bool(((found == 0).all(2) | (found == 2).all(2)).all())
    assert 0 < int((found == 0).sum()) < found.numel()


def test_a_training_leaves_the_dropouts_of_a_model_as_they_were(world: Graph) -> None:
    run = train(world, model="tucker", dim=4, epochs=1, hidden_dropout=0.4)
    rates = {name: (dropout.rate, dropout.generator) for name, dropout in run.model.dropouts().items()}
    assert rates == {"input_dropout": (0.2, None), "core_dropout": (0.2, None), "hidden_dropout": (0.4, None)}


@pytest.mark.parametrize(
    ("dim", "shape"), [(200, (10, 20)), (128, (8, 16)), (100, (10, 10)), (22, (2, 11)), (4, (2, 2))]
)
def test_a_vector_is_folded_nearly_to_a_square(dim: int, shape: tuple[int, int]) -> None:
    assert fold(dim) == shape
    assert fold(dim, shape[1]) == shape[::-1]


@pytest.mark.parametrize(
    ("model", "settings", "words"),
    [
        ("conve", {"dim": 7}, "at least 2 x 2, which dim 7 does not make. Take --dim 6 or 8."),
        ("conve", {"dim": 1}, "Take --dim 4."),
        (
            "conve",
            {"dim": 12, "embedding_height": 5},
            "embedding_height is 5; a vector of dim 12 folds to .* 2, 3, 4, 6",
        ),
        ("conve", {"channels": 0}, "channels is 0; expected a whole number from 1"),
        ("conve", {"feature_dropout": 1.0}, "feature_dropout is 1.0; expected a number from 0 to 0.99"),
        (
            "conve",
            {"entity_dropout": 0.1},
            "entity_dropout means nothing to ConvE .*It has input_dropout, feature_dropout",
        ),
        ("tucker", {"relation_dim": 0}, "relation_dim is 0; expected a whole number"),
        ("ntn", {"slices": 0}, "slices is 0; expected a whole number from 1 to 1,024"),
        ("ntn", {"precision": "bfloat16"}, "precision bfloat16 means nothing to NTN"),
        ("transe", {"slices": 3}, "slices means nothing to the model TransE"),
        ("relwalk", {"objective": "bce"}, "never below zero: to it, nothing is false. Say --objective likelihood"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(
    world: Graph, tmp_path: Path, model: str, settings: dict, words: str
) -> None:
    with pytest.raises(RelWalkError, match=words):
        train(world, model=model, **{"dim": 8, "epochs": 1, **settings}, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_an_objective_that_does_not_fit_a_model_is_refused(world: Graph) -> None:
    class Against(ntn.NTN):
        objectives = ("margin", "softmax")

    with pytest.raises(RelWalkError, match=r"likelihood does not fit Against\. Say --objective margin or softmax"):
        train(world, model=Against, objective="likelihood", dim=4, epochs=1)
    assert train(world, model=Against, dim=4, epochs=1).record.training.objective.name == "margin"


def test_sums_over_all_entities_that_do_not_fit_are_refused_with_what_does(
    world: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"model": "ntn", "dim": 8, "epochs": 1, "batch_size": 1024}
    model = build_model("ntn", len(world.entities), len(world.relations), 8, seed=0, options={})
    needed = make_task(world, TrainingSettings()).step_bytes(model)
    assert needed == 4 * (2 * 4 + 2) * 1024 * len(world.entities)
    monkeypatch.setattr(memory, "available_memory", lambda: needed - 1)
    for objective in ("likelihood", "bce"):
        with pytest.raises(RelWalkError, match=r"1,024 questions to NTN.*--candidates-per-step.*--objective margin"):
            train(world, **settings, objective=objective, out=tmp_path / "run")
        assert not (tmp_path / "run").exists()
    for smaller in ({"candidates_per_step": 500}, {"batch_size": 256}, {"objective": "margin", "margin": 1.0}):
        train(world, **{**settings, **smaller})


def test_heads_through_a_network_are_counted_too(world: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without inverse relations, a step holds the feature maps of every entity and relation."""
    options = {"channels": 2, "reciprocal": False}
    plain = build_model("conve", len(world.entities), len(world.relations), 4, seed=0, options=options)
    needed = make_task(world, TrainingSettings()).step_bytes(plain)
    monkeypatch.setattr(memory, "available_memory", lambda: needed - 1)
    with pytest.raises(RelWalkError, match="1,024 questions to ConvE"):
        train(world, model="conve", dim=4, epochs=1, batch_size=1024, **options)
    train(world, model="conve", dim=4, epochs=1, channels=2)


@pytest.mark.parametrize("name", ["conve", "tucker", "ntn"])
def test_it_learns_by_its_papers_objective(small_world: Graph, name: str) -> None:
    bce = {"objective": "bce", "optimizer": "adam", "batch_size": 128, "input_dropout": 0.0, "hidden_dropout": 0.1}
    margin = {"objective": "margin", "margin": 1.0, "negatives": 10, "batch_size": 512}
    run = train(small_world, model=name, dim=16, epochs=20, l2=0.0, **(margin if name == "ntn" else bce))
    untrained = build_model(name, len(small_world.entities), len(small_world.relations), 16, seed=0, options={})
    assert rank(run, split="valid").mrr > 5 * rank(untrained, small_world, "valid").mrr


def test_a_run_is_saved_with_its_means_and_exported_without_mixing_them_up(world: Graph, tmp_path: Path) -> None:
    run = train(world, model="conve", dim=4, channels=2, epochs=1, out=tmp_path / "run")
    again = relwalk.load_run(tmp_path / "run")
    assert float(run.model.base.hidden_norm.running_mean.abs().sum()) > 0
    assert torch.equal(again.model.base.hidden_norm.running_mean, run.model.base.hidden_norm.running_mean)
    ids = torch.arange(4)
    assert torch.equal(again.model.score_tails(ids, ids), run.model.score_tails(ids, ids))
    arrays = exported(again)
    entities, relations = len(world.entities), len(world.relations)
    assert arrays["entity"].shape == (entities, 4) and arrays["bias"].shape == (entities, 1)
    assert arrays["relation"].shape == arrays["relation_inverse"].shape == (relations, 4)
    assert arrays["filters"].shape == (2, 1, 3, 2) and "filters_inverse" not in arrays
    for path in relwalk.export(again, tmp_path / "tables", "parquet"):
        assert path.stat().st_size > 0


def test_options_are_flags(tmp_path: Path) -> None:
    flags = [
        "--model",
        "conve",
        "--dim",
        "4",
        "--epochs",
        "1",
        "--channels",
        "2",
        "--no-reciprocal",
        "--feature-dropout",
    ]
    command("train", "world", *flags, "0", "--objective", "bce", "--out", tmp_path / "run")
    record = relwalk.load_run(tmp_path / "run").record
    assert record.model.options == {"channels": 2, "reciprocal": False, "feature_dropout": 0.0}
