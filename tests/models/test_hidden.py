"""RelWalk with hidden dimensions, and with entities of equal lengths, in every part that knows RelWalk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from relwalk.compression.compress import compress
from relwalk.errors import Interrupted, RelWalkError
from relwalk.evaluation.ranking import rank
from relwalk.experiment import resume, train
from relwalk.exports import weights
from relwalk.graph.graph import Graph
from relwalk.models import RelWalk, build_model
from relwalk.models.compressed import Compression
from relwalk.models.compressor import Compressor
from relwalk.models.hidden import EVENING, RADIANS, visible
from relwalk.models.orthogonal import defect
from relwalk.models.relwalk import BIAS_DECAY
from relwalk.reporting import make_report
from relwalk.reproduction.parts import figure1
from relwalk.runs.run import Run, load_run
from relwalk.serve.opened import open_folder
from relwalk.serve.relation import picture
from relwalk.testing import check_model
from relwalk.theory.analyse import analyse
from relwalk.theory.generate import log_joint
from relwalk.theory.orthogonality import Orthogonality, orthogonality
from relwalk.theory.theorem import check_theorem
from relwalk.theory.walk import walk
from relwalk.training.regularizers import regularization
from relwalk.training.settings import TrainingSettings
from tests.conftest import make_graph
from tests.entry import brief_theory

HIDDEN = {"hidden": True}
EQUAL = {"hidden": True, "equal_lengths": True}
KINDS = [HIDDEN, EQUAL]
SHAPES = [{}, {"blocks": 4}, {"relation_bias": True}, {"blocks": 3, "relation_bias": True}]
IDS = torch.tensor([0, 1, 6, 2]), torch.tensor([2, 0, 1, 1]), torch.tensor([3, 3, 4, 2])


@torch.no_grad()
def made(options: dict[str, Any], *, scale: float = 0.5, dim: int = 12, relations: int = 3) -> RelWalk:
    options = {"start_from": "rotations", "entity_scale": scale, **options}
    model = build_model("relwalk", 7, relations, dim, seed=1, options=options)
    assert isinstance(model, RelWalk)
    if model.bias is not None:
        model.bias.normal_(generator=torch.Generator().manual_seed(2))
    return model


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("shape", [*SHAPES, {"reciprocal": True}], ids=str)
def test_it_keeps_the_contract(kind: dict, shape: dict) -> None:
    shape = {**shape, "blocks": 4} if "blocks" in shape else shape  # of 8 dimensions
    check_model("relwalk", options={**kind, **shape})


@torch.no_grad()
@pytest.mark.parametrize("relations", [3, 20])  # fewer than a block is wide, and more
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_its_score_is_the_formula(kind: dict, shape: dict, relations: int) -> None:
    model = made({**kind, **shape}, relations=relations)
    h, r, t = IDS
    assert model.head_angles is not None and model.tail_angles is not None
    M, heads, tails = model.dense("tail").mT, *(visible(a) for a in (model.head_angles, model.tail_angles))
    C = heads.unsqueeze(2) * M * tails.unsqueeze(1)
    torch.testing.assert_close(model.M, C)
    for i in range(len(h)):
        x, y = model.entity(h[i]), model.entity(t[i])
        expected = 2 * x @ C[r[i]] @ y
        if not model.equal_lengths:
            expected += x @ x + y @ y
        if model.bias is not None:
            expected += 2 * model.bias[r[i]] @ (heads[r[i]] * x + M[r[i]] @ (tails[r[i]] * y))
        torch.testing.assert_close(model.score(h, r, t)[i], expected)
    every = torch.stack([model.score(h, torch.full_like(r, relation), t) for relation in range(relations)], 1)
    torch.testing.assert_close(model.score_relations(h, t), every)


@torch.no_grad()
def test_without_angles_it_is_the_papers_model() -> None:
    model = made(HIDDEN)
    assert model.head_angles is not None and model.tail_angles is not None
    model.head_angles.zero_()
    model.tail_angles.zero_()
    plain = made({})
    plain.load_state_dict({name: x for name, x in model.state_dict().items() if "angles" not in name})
    h, r, t = IDS
    for name in ("score", "dura"):
        torch.testing.assert_close(getattr(model, name)(h, r, t), getattr(plain, name)(h, r, t))
    torch.testing.assert_close(model.score_tails(h, r), plain.score_tails(h, r))
    torch.testing.assert_close(model.score_heads(r, t), plain.score_heads(r, t))


def test_the_start_of_the_papers_model_does_not_depend_on_it() -> None:
    plain, hidden = made({"blocks": 3}), made({"blocks": 3, **EQUAL})
    assert "head_angles" not in plain.state_dict() and plain.unfold() is plain
    assert all(torch.equal(x, hidden.state_dict()[name]) for name, x in plain.state_dict().items())


@torch.no_grad()
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_relation_leaves_out_what_does_not_matter_to_it(kind: dict) -> None:
    """Two tails that differ in one coordinate alone: to a relation that turns it away, they have the same products with
    every head, to another not. A matrix that is orthogonal itself takes no two vectors to the same place."""
    model = made(kind, dim=4)
    assert model.tail_angles is not None
    model.tail_angles.zero_()
    model.tail_angles[0, 3] = np.pi / 2 / RADIANS
    model.entity.weight[1] = model.entity.weight[0]
    model.entity.weight[1, 3] *= -1
    heads = torch.arange(7)
    alike, apart = (
        model.score_tails(heads, torch.full((7,), relation), torch.tensor([0, 1])).diff(dim=1) for relation in (0, 1)
    )
    torch.testing.assert_close(alike, torch.zeros(7, 1), rtol=0, atol=1e-5)
    assert float(apart.abs().max()) > 0.1
    assert float(torch.linalg.svdvals(model.M[0]).min()) < 1e-6
    assert float(torch.linalg.svdvals(made({}, dim=4).M).min()) > 1 - 1e-5


@torch.no_grad()
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_unfolded_it_is_the_papers_model_with_the_same_log_probabilities(kind: dict, shape: dict) -> None:
    model = made({**kind, **shape}, scale=1.0)
    whole = model.unfold()
    more = 3 * 12 * (2 if model.equal_lengths else 1)  # as many even out lengths, of so few
    assert (whole.dim, whole.blocks, whole.hidden, whole.exact) == (more, model.blocks, False, True)
    assert torch.equal(whole.R1, torch.eye(whole.R2.shape[-1]).expand_as(whole.R2))
    assert float(defect(whole.R2).abs().max()) < 1e-5
    torch.testing.assert_close(whole.R2, model.unfolded_R2())
    h, r, t = IDS
    for side, given in (("tail", h), ("head", t)):
        found, expected = (m.log_prob_candidates(side, given, r) for m in (whole, model))
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(whole.log_prob_relations(h, t), model.log_prob_relations(h, t), rtol=1e-4, atol=1e-4)
    apart = whole.scale * whole.score(h, r, t) - model.scale * model.score(h, r, t)  # what was left out: lengths
    torch.testing.assert_close(apart, apart[:1].expand(len(h)), rtol=1e-4, atol=1e-4)
    assert model.equal_lengths or float(apart.abs().max()) < 1e-4
    draws = {"directions": 500}
    found, expected = (m.log_prob(h, r, t, **draws, generator=torch.Generator().manual_seed(0)) for m in (whole, model))
    torch.testing.assert_close(found, expected)
    corner = whole.dense("tail").mT.unflatten(1, (model.blocks, -1)).unflatten(3, (model.blocks, -1))
    width = 12 // model.blocks  # the first of the coordinates of each block are those of the entities
    torch.testing.assert_close(corner[:, :, :width, :, :width].reshape(3, 12, 12), model.M, rtol=0, atol=1e-6)


@torch.no_grad()
@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("blocks", [1, 3])
def test_what_relations_see_of_each_other_is_never_more_than_all(kind: dict, blocks: int) -> None:
    singular = torch.linalg.svdvals(made({**kind, "blocks": blocks}).M)
    assert float(singular.max()) < 1 + 1e-5 and float(singular.min()) < 0.9


@torch.no_grad()
@pytest.mark.parametrize("blocks", [1, 3])
def test_equal_lengths_are_equal(blocks: int) -> None:
    model = made({**EQUAL, "blocks": blocks}, scale=1.0)
    lengths = model.unfold().vectors().norm(dim=-1)
    torch.testing.assert_close(lengths, 6**0.5 * model.vectors().norm(dim=-1).max().expand(7))
    lengths = made({**HIDDEN, "blocks": blocks}, scale=1.0).unfold().vectors().norm(dim=-1)
    torch.testing.assert_close(lengths, 3**0.5 * model.vectors().norm(dim=-1))  # without, as they were
    wide = build_model("relwalk", 7, 1, 80, seed=1, options={**EQUAL, "blocks": 2}).unfold()
    assert wide.dim == 3 * 2 * (40 + EVENING)


@torch.no_grad()
@pytest.mark.parametrize("kind", [*KINDS, {**HIDDEN, "relation_bias": True}, {**EQUAL, "blocks": 3}], ids=str)
def test_log_p_is_that_of_the_walk(kind: dict) -> None:
    """By Monte Carlo over knowledge vectors of the larger space with Z_c computed, which knows nothing of C. Were there
    one direction in which all lengths are evened out, it would be off by 1.2."""
    options = {"start_from": "rotations", "entity_scale": 0.7, **kind}
    model = build_model("relwalk", 150, 2, 12, seed=1, options=options)
    assert isinstance(model, RelWalk)
    if model.bias is not None:
        model.bias.normal_(generator=torch.Generator().manual_seed(2)).mul_(0.5)
    truth = log_joint(model, 1, step_size=0.0, directions=20_000)
    found = (model.scale * model.score_tails(torch.arange(150), torch.full((150,), 1))).double().numpy()
    assert float(np.abs((found - found.mean()) - (truth - truth.mean())).max()) < 0.2
    assert np.corrcoef(found.ravel(), truth.ravel())[0, 1] > 0.85 and truth.std() > 0.05


@torch.no_grad()
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_the_theorem_holds_of_small_vectors(kind: dict, world: Graph) -> None:
    options = {"start_from": "rotations", "entity_scale": 0.5, **kind}
    model = build_model("relwalk", len(world.entities), len(world.relations), 128, seed=0, options=options)
    check = check_theorem(model, world, triples=20, relations=4, directions=200, draws=16)
    assert check.holds, str(check)


@torch.no_grad()
def test_regularizers_by_hand() -> None:
    """Two entities, one relation that does not turn but hides: C = diag(cos θ)."""
    model = build_model("relwalk", 2, 1, 2, seed=0, options={**HIDDEN, "relation_bias": True, "start_from": "identity"})
    assert isinstance(model, RelWalk)
    assert model.bias is not None and model.head_angles is not None and model.tail_angles is not None
    model.entity.weight.copy_(torch.tensor([[1.0, 2.0], [3.0, -1.0]]))
    model.bias.copy_(torch.tensor([[0.5, -1.0]]))
    model.head_angles.copy_(torch.tensor([[0.0, np.pi / 3]]) / RADIANS)  # cos: 1, .5
    model.tail_angles.zero_()
    h, r, t = torch.tensor([0]), torch.tensor([0]), torch.tensor([1])
    assert float(model.score(h, r, t)) == pytest.approx(5 + 10 + 2 * (3 - 1) + 2 * (0.5 * (1 + 3) - 1 * (1 - 1)))
    bias = BIAS_DECAY * 1.25
    assert float(model.l2_of_relations(r)) == pytest.approx(bias)
    assert float(model.n3_norm(h, r, t)) == pytest.approx(1 + 8 + 27 + 1 + 0.125 + 1)
    assert float(model.dura(h, r, t)) == pytest.approx(5 + 10 + (1 + 1) + (9 + 0.25) + bias)
    twice = [torch.cat([x, x]) for x in (h, r, t)]
    assert float(model.dura(*twice)) == pytest.approx(2 * float(model.dura(h, r, t)))
    settings = TrainingSettings(l2=0.3, n3=0.2, dura=0.1)
    expected = (0.3 * (15 + bias) + 0.1 * (26.25 + bias)) / 2 + 0.2 * 38.125 / 2**1.5
    for few in (False, True):
        assert float(regularization(model, settings, h, r, t, few=few)) == pytest.approx(expected)


def test_what_means_nothing_is_refused() -> None:
    with pytest.raises(RelWalkError, match="exact orthogonality"):
        made({**HIDDEN, "orthogonality": "soft"})
    with pytest.raises(RelWalkError, match="Say --hidden too"):
        made({"equal_lengths": True})
    with pytest.raises(RelWalkError, match="never below zero"):
        train(make_graph([(0, 0, 1)]), dim=4, epochs=1, objective="bce", **HIDDEN)


@pytest.fixture(scope="module", params=[{**HIDDEN, "relation_bias": True}, {**EQUAL, "blocks": 4}], ids=str)
def run(request: pytest.FixtureRequest, world: Graph, tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("hidden") / "run"
    return train(world, dim=16, epochs=6, validate_every=3, out=out, threads=1, **request.param)


def test_trained_it_is_orthogonal_and_it_learns(run: Run, world: Graph) -> None:
    options = run.record.model.options
    start = build_model("relwalk", len(world.entities), len(world.relations), 16, seed=0, options=options)
    for name, before in start.state_dict().items():
        assert not torch.equal(before, run.model.state_dict()[name]), name
    assert rank(run.model, world, "valid").mrr > 5 * rank(start, world, "valid").mrr
    assert isinstance(run.model, RelWalk)
    assert float(defect(run.model.unfolded_R2()).abs().max()) < 1e-5


def test_it_is_saved_exported_and_resumed_to_the_bit(run: Run, world: Graph, tmp_path: Path) -> None:
    assert run.path is not None
    again = load_run(run.path)
    assert rank(again.model, world, "valid").mrr == rank(run.model, world, "valid").mrr
    found = weights(again)
    for name in ("head_angles", "tail_angles", "R1", "R2"):
        assert len(found[name]) == len(world.relations)
    asked = iter([False] * 7)
    settings = {"dim": 16, "epochs": 2, "validate_every": 1, "threads": 1, **run.record.model.options}
    with pytest.raises(Interrupted):
        train(world, out=tmp_path / "parts", stop=lambda: next(asked, True), **settings)
    resume(tmp_path / "parts")
    train(world, out=tmp_path / "whole", **settings)
    parts, whole = ((tmp_path / name / "weights.safetensors").read_bytes() for name in ("parts", "whole"))
    assert parts == whole


@pytest.mark.parametrize(
    "how",
    [{"method": "lossless"}, {"rank": 16, "method": "eig"}, {"rank": 16, "method": "svd", "around": "signs"}],
    ids=str,
)
@torch.no_grad()
def test_all_components_score_as_it_does(run: Run, how: dict, tmp_path: Path) -> None:
    small = compress(run, out=tmp_path / "small", **how).run
    rows = torch.from_numpy(run.graph.test[:200].astype(np.int64)).T
    for model in (small.model, load_run(tmp_path / "small").model):
        torch.testing.assert_close(model.score(*rows), run.model.score(*rows), rtol=1e-4, atol=1e-4)
        for side, given in (("tail", rows[0]), ("head", rows[2])):
            found, expected = (m.score_candidates(side, given, rows[1]) for m in (model, run.model))
            torch.testing.assert_close(model.scale * found, model.scale * expected, rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_coded_and_rounded_it_still_answers_walks_and_says_what_it_is(run: Run, world: Graph, tmp_path: Path) -> None:
    small = compress(run, out=tmp_path / "small", rank=8, method="eig", precision="int8", entities="int8").run
    model = small.model
    assert isinstance(model, RelWalk) and not model.exact
    assert rank(model, world, "valid").mrr > 0.1
    whole = model.unfold()
    assert not whole.tables()[0].coded and float(defect(whole.R2).abs().max()) > 1e-4
    if model.equal_lengths:
        lengths = whole.vectors().norm(dim=-1)
        torch.testing.assert_close(lengths, lengths[:1].expand(len(lengths)))
    found = orthogonality(model, world)
    assert isinstance(found, Orthogonality) and not found.exact and "compression" in found.note
    assert len(walk(model, world, start="France", paths=2, steps=2)) == 2


@pytest.mark.parametrize("how", [Compression(entities="int8"), Compression(entities="pq")], ids=str)
@torch.no_grad()
def test_keys_of_codes_are_those_of_all(run: Run, how: Compression) -> None:
    model = Compressor(run.model)(how)
    h, r, t = torch.from_numpy(run.graph.test[:20].astype(np.int64)).T
    for side, given in (("tail", h), ("head", t)):
        every = model.score_all(side, given, r)
        answers = t if side == "tail" else h
        torch.testing.assert_close(every[torch.arange(20), answers], model.score(h, r, t), rtol=1e-4, atol=1e-3)


def test_it_is_analysed(run: Run, world: Graph) -> None:
    found = analyse(run, directions=100)
    json.dumps(found.as_dict(), allow_nan=False)
    matrices = found.parts["orthogonality"]
    assert isinstance(matrices, Orthogonality) and matrices.exact and "hidden dimensions" in matrices.note
    for relation in matrices.relations:
        assert relation.nu is not None and relation.nu_per_entry is not None and relation.nu_per_entry < 1e-6
        assert relation.defect_r2 is not None and relation.defect_r2 < 1e-5 < relation.defect_m
        assert relation.R1 is relation.R2 is None and relation.M.singular[1] < 1 + 1e-5
    assert "exact" in str(found.parts["concentration"]) and "written out" in str(found.parts["concentration"])


def test_walks_begin_anywhere_and_are_drawn_by_seed(run: Run, world: Graph) -> None:
    for start in ("France", None):
        first = walk(run.model, world, start=start, paths=3, steps=2)
        assert len(first) == 3 and first == walk(run.model, world, start=start, paths=3, steps=2)


def test_the_papers_first_figure_is_of_the_larger_matrices(run: Run) -> None:
    found, picture_of_it = figure1(run, None)
    assert found["exact"] and picture_of_it.startswith("<svg")
    assert max(relation["largest_departure"] for relation in found["relations"].values()) < 1e-5


def test_the_report_and_the_explorer_show_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    brief_theory(monkeypatch.setattr)
    page = make_report(run, directions=100)
    assert "hidden dimensions" in page and "M is the corner" in page
    assert run.path is not None
    opened = open_folder(run.path, "hidden")
    for which in ("M", "R1R1", "R2R2"):
        assert picture(opened, 0, which).startswith(b"\x89PNG")  # type: ignore[arg-type]
