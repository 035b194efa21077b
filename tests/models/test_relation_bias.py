"""RelWalk whose knowledge vector is drawn towards a bias of each relation, in every part that knows RelWalk."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from relwalk.compression.compress import compress
from relwalk.evaluation.ranking import rank
from relwalk.experiment import train
from relwalk.exports import weights
from relwalk.graph.graph import Graph
from relwalk.models import RelWalk, build_model
from relwalk.models.relwalk import BIAS_DECAY
from relwalk.runs.run import Run, load_run
from relwalk.testing import check_model
from relwalk.theory.analyse import analyse
from relwalk.theory.generate import log_joint
from relwalk.theory.sphere import drawn_directions
from relwalk.theory.theorem import check_theorem, log_probs
from relwalk.theory.walk import walk
from relwalk.training.regularizers import regularization
from relwalk.training.settings import TrainingSettings

KINDS = ["exact", "soft"]
BIASED = {"relation_bias": True, "hidden": False}


@torch.no_grad()
def made(orthogonality: str = "exact", *, blocks: int = 1, scale: float = 0.5, dim: int = 12) -> RelWalk:
    options = {"orthogonality": orthogonality, "blocks": blocks, "start_from": "rotations", "entity_scale": scale}
    model = build_model("relwalk", 7, 3, dim, seed=1, options={**options, **BIASED})
    assert isinstance(model, RelWalk) and model.bias is not None
    assert not model.bias.any(), "it begins as the paper's"
    model.bias.normal_(generator=torch.Generator().manual_seed(2))
    return model


@pytest.mark.parametrize("orthogonality", KINDS)
@pytest.mark.parametrize("reciprocal", [False, True])
def test_it_keeps_the_contract(orthogonality: str, reciprocal: bool) -> None:
    check_model("relwalk", options={"orthogonality": orthogonality, "blocks": 4, "reciprocal": reciprocal, **BIASED})


@torch.no_grad()
@pytest.mark.parametrize("orthogonality", KINDS)
@pytest.mark.parametrize("blocks", [1, 3])
def test_its_score_is_the_formula(orthogonality: str, blocks: int) -> None:
    model = made(orthogonality, blocks=blocks)
    assert model.bias is not None
    h, r, t = (torch.tensor(ids) for ids in ([0, 1, 6], [2, 0, 1], [3, 3, 4]))
    for i in range(3):
        R1, R2 = model.dense("head")[r[i]], model.dense("tail")[r[i]]
        inside = R1.T @ model.entity(h[i]) + R2.T @ model.entity(t[i]) + model.bias[r[i]]
        expected = inside.square().sum() - model.bias[r[i]].square().sum()
        torch.testing.assert_close(model.score(h, r, t)[i], expected)
    every = torch.stack([model.score(h, torch.full_like(r, relation), t) for relation in range(3)], 1)
    torch.testing.assert_close(model.score_relations(h, t), every)
    with torch.no_grad():
        model.bias.zero_()
    plain = build_model("relwalk", 7, 3, 12, seed=1, options={"orthogonality": orthogonality, "blocks": blocks})
    plain.load_state_dict({name: x for name, x in model.state_dict().items() if name != "bias"})
    torch.testing.assert_close(model.score_tails(h, r), plain.score_tails(h, r))


def test_decay_holds_the_bias_as_often_as_its_relation_has_a_triple() -> None:
    model = made()
    h, r, t = (torch.tensor(ids) for ids in ([0, 1, 6], [2, 2, 1], [3, 3, 4]))
    settings = TrainingSettings(l2=0.5)
    regularization(model, settings, h, r, t, few=False).backward()
    expected = 0.5 / model.dim * BIAS_DECAY * 2 * torch.tensor([0.0, 1.0, 2.0]).unsqueeze(1) * model.bias
    torch.testing.assert_close(model.bias.grad, expected.detach())


@torch.no_grad()
def test_log_p_is_that_of_knowledge_vectors_drawn_towards_the_bias() -> None:
    """By Monte Carlo over c with Z_c computed, which knows nothing of the formula: with the bias it agrees, and
    without it does not."""
    model = made(scale=1.0)
    assert model.bias is not None
    pairs = torch.cartesian_prod(torch.arange(7), torch.arange(7)).T
    truth = log_joint(model, 1, step_size=0.0, directions=200_000)
    parts = (model.entity(), model.dense("head")[1], model.dense("tail")[1], *pairs)
    how = {"step": 0.0, "directions": 2000, "draws": 400}
    found, without = (
        log_probs(*parts, bias=bias, generator=torch.Generator().manual_seed(0), **how)
        for bias in (model.bias[1], None)
    )
    assert float(np.abs(found.truth.reshape(7, 7) - truth).max()) < 0.06
    assert float(np.abs(found.plain.reshape(7, 7) - truth).max()) < 0.2
    assert float(np.abs(without.truth.reshape(7, 7) - truth).max()) > 0.5


@torch.no_grad()
def test_directions_are_drawn_towards_the_bias() -> None:
    model, draw = made(), torch.Generator().manual_seed(0)
    assert model.bias is not None
    c = drawn_directions(3 * model.bias[0], 4000, 12, draw)
    torch.testing.assert_close(c.norm(dim=-1), torch.ones(4000))
    along = torch.nn.functional.cosine_similarity(c.mean(0), model.bias[0], 0)
    assert float(along) > 0.99
    assert float(drawn_directions(None, 4000, 12, draw).mean(0).norm()) < 0.05


@torch.no_grad()
def test_the_partition_function_is_that_of_such_directions() -> None:
    model = made()
    assert model.bias is not None
    found = model.log_partition(torch.tensor([0, 2]), directions=100_000, generator=torch.Generator().manual_seed(3))
    for i, r in enumerate((0, 2)):
        c = drawn_directions(model.bias[r], 20_000, 12, torch.Generator().manual_seed(4))
        logs = [torch.logsumexp(c @ (model.entity() @ model.dense(side)[r]).T, 1) for side in ("head", "tail")]
        expected = sum(float(torch.logsumexp(x.double(), 0)) - np.log(20_000) for x in logs)
        assert float(found[i]) == pytest.approx(expected, abs=0.02)


@torch.no_grad()
def test_the_theorem_holds_of_small_vectors(world: Graph) -> None:
    options = {"start_from": "rotations", "entity_scale": 0.5, **BIASED}
    model = build_model("relwalk", len(world.entities), len(world.relations), 256, seed=0, options=options)
    model.bias.normal_(generator=torch.Generator().manual_seed(0)).mul_(0.5)
    check = check_theorem(model, world, triples=20, relations=4, directions=200, draws=16)
    assert check.holds, str(check)


@pytest.fixture(scope="module")
def run(world: Graph, tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("bias") / "run"
    return train(world, dim=32, blocks=4, epochs=6, validate_every=3, out=out, threads=1, **BIASED)


def test_trained_it_is_saved_exported_analysed_and_walked(run: Run, world: Graph) -> None:
    assert run.path is not None and float(run.model.bias.detach().norm(dim=-1).min()) > 0
    again = load_run(run.path)
    assert again.record.model.options["relation_bias"] is True
    assert rank(again.model, world, "valid").mrr == rank(run.model, world, "valid").mrr
    np.testing.assert_array_equal(weights(again)["bias"], run.model.bias.detach().numpy())
    found = analyse(run, parts=["concentration", "theorem"], directions=100)
    assert "bias" in str(found.parts["concentration"])
    for start in ("France", None):
        assert len(walk(run.model, world, start=start, paths=3, steps=2)) == 3


@pytest.mark.parametrize(
    "how", [{"method": "lossless"}, {"rank": 32, "method": "svd", "around": "signs"}, {"entities": "float16"}], ids=str
)
@torch.no_grad()
def test_made_smaller_it_scores_as_before(run: Run, how: dict, tmp_path: Path) -> None:
    small = compress(run, out=tmp_path / "small", **how).run
    rows = torch.from_numpy(run.graph.test[:200].astype(np.int64)).T
    near = {"rtol": 1e-3, "atol": 0.1} if "entities" in how else {"rtol": 1e-4, "atol": 1e-3}
    for model in (small.model, load_run(tmp_path / "small").model):
        torch.testing.assert_close(model.score(*rows), run.model.score(*rows), **near)
        for side, given in (("tail", rows[0]), ("head", rows[2])):
            found, expected = (m.score_candidates(side, given, rows[1]) for m in (model, run.model))
            torch.testing.assert_close(found, expected, **near)
