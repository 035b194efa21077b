"""RelWalk of several blocks: independent walkers with small matrices, in every part that knows RelWalk."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from relwalk.compression.compress import compress
from relwalk.compression.curve import curve
from relwalk.errors import RelWalkError
from relwalk.evaluation.ranking import rank
from relwalk.experiment import train
from relwalk.exports import weights
from relwalk.graph.graph import Graph
from relwalk.models import RelWalk, build_model
from relwalk.models.orthogonal import block_diagonal, defect
from relwalk.runs.run import Run, load_run
from relwalk.testing import check_model
from relwalk.theory.analyse import analyse
from relwalk.theory.concentration import Concentration
from relwalk.theory.partition import log_mean_partition, log_partition, relative_variance
from relwalk.theory.sphere import displaced, log_integral, tilted_directions, uniform_directions
from relwalk.theory.theorem import check_theorem
from relwalk.theory.walk import walk

KINDS = ["exact", "soft"]


def made(orthogonality: str, blocks: int, dim: int = 12, entities: int = 7) -> RelWalk:
    options = {"orthogonality": orthogonality, "blocks": blocks, "start_from": "rotations"}
    model = build_model("relwalk", entities, 3, dim, seed=1, options=options)
    assert isinstance(model, RelWalk)
    return model


@pytest.mark.parametrize("orthogonality", KINDS)
@pytest.mark.parametrize("reciprocal", [False, True])
def test_it_keeps_the_contract(orthogonality: str, reciprocal: bool) -> None:
    check_model("relwalk", options={"orthogonality": orthogonality, "blocks": 4, "reciprocal": reciprocal})


@torch.no_grad()
@pytest.mark.parametrize("orthogonality", KINDS)
def test_it_scores_as_one_block_with_zeros_between(orthogonality: str) -> None:
    small, whole = made(orthogonality, 3), made(orthogonality, 1)
    assert small.R2.shape == small.R1.shape == (3, 3, 4, 4) and whole.R2.shape == (3, 12, 12)
    whole.entity.weight.copy_(small.entity.weight)
    whole.R2.copy_(small.dense("tail"))
    if orthogonality == "soft":
        small.free_R1.normal_(generator=torch.Generator().manual_seed(0))
        whole.free_R1.copy_(small.dense("head"))
    heads, relations, tails = (torch.tensor(ids) for ids in ([0, 1, 6], [2, 0, 1], [3, 3, 4]))
    for score in ("score", "dura"):
        found, expected = (getattr(m, score)(heads, relations, tails) for m in (small, whole))
        torch.testing.assert_close(found, expected)
    torch.testing.assert_close(small.score_tails(heads, relations), whole.score_tails(heads, relations))
    torch.testing.assert_close(small.score_heads(relations, tails), whole.score_heads(relations, tails))
    torch.testing.assert_close(small.score_relations(heads, tails), whole.score_relations(heads, tails))
    torch.testing.assert_close(small.M, whole.M)
    inside = block_diagonal(torch.ones(1, 3, 4, 4))[0].bool()
    assert not small.M[:, ~inside].any() and inside.sum() == 48
    relation = torch.tensor([0, 1])
    torch.testing.assert_close(small.penalty(relation), whole.penalty(relation))


def test_one_block_is_the_papers_model_to_the_bit() -> None:
    plain = build_model("relwalk", 7, 3, 12, seed=1, options={})
    one = build_model("relwalk", 7, 3, 12, seed=1, options={"blocks": 1})
    assert all(torch.equal(a, b) for a, b in zip(plain.parameters(), one.parameters(), strict=True))


@pytest.mark.parametrize("blocks", [5, 12, 0])
def test_blocks_that_do_not_fit_are_refused(blocks: int) -> None:
    with pytest.raises(RelWalkError, match="blocks"):
        made("exact", blocks)


@pytest.fixture(scope="module")
def run(world: Graph, tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("blocks") / "run"
    return train(world, dim=32, blocks=4, epochs=6, validate_every=3, out=out, threads=1)


def test_trained_its_blocks_stay_orthogonal_and_it_learns(run: Run, world: Graph) -> None:
    assert run.model.R2.shape == (len(world.relations), 4, 8, 8)
    assert float(defect(run.model.R2.detach()).abs().max()) < 1e-5
    start = build_model("relwalk", len(world.entities), len(world.relations), 32, seed=0, options={"blocks": 4})
    assert not torch.equal(start.R2, run.model.R2)
    assert rank(run.model, world, "valid").mrr > 5 * rank(start, world, "valid").mrr


def test_it_is_saved_exported_and_made_smaller(run: Run, world: Graph, tmp_path: Path) -> None:
    assert run.path is not None
    again = load_run(run.path)
    assert again.record.model.options["blocks"] == 4
    assert rank(again.model, world, "valid").mrr == rank(run.model, world, "valid").mrr
    arrays = weights(again)
    assert arrays["R1"].shape == arrays["R2"].shape == (len(world.relations), 4, 8, 8)
    small = compress(again, out=tmp_path / "coded", entities="int8").run
    assert rank(small.model, world, "valid").mrr == pytest.approx(rank(run.model, world, "valid").mrr, abs=0.02)


@pytest.mark.parametrize(
    "how",
    [{"method": "lossless"}, {"rank": 32, "method": "eig"}, {"rank": 32, "method": "svd", "around": "signs"}],
    ids=str,
)
@torch.no_grad()
def test_all_components_of_its_blocks_score_as_it_does(run: Run, how: dict, tmp_path: Path) -> None:
    small = compress(run, out=tmp_path / "small", **how).run
    rows = torch.from_numpy(run.graph.test[:200].astype(np.int64)).T
    torch.testing.assert_close(small.model.R2, run.model.R2, rtol=0, atol=1e-5)
    for model in (small.model, load_run(tmp_path / "small").model):
        torch.testing.assert_close(model.score(*rows), run.model.score(*rows), rtol=1e-4, atol=1e-3)
        for side, given in (("tail", rows[0]), ("head", rows[2])):
            found, expected = (m.score_candidates(side, given, rows[1]) for m in (model, run.model))
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-3)


def test_each_of_its_blocks_keeps_as_many_components(run: Run) -> None:
    few, more = (compress(run, rank=k, method="eig", around="signs", precision="int8") for k in (6, 16))
    assert few.run.model.tail_factors.Q.numbers.shape == (4 * len(run.graph.relations), 2, 8)
    assert few.memory.after < more.memory.after < more.memory.before
    kept = compress(run, keep=0.05)
    assert kept.how.method == "eig" and kept.how.rank is not None and kept.how.rank % 4 == 0
    points = curve(run, ranks=[8, 32], triples=100)
    assert points.series["eig"][-1].mrr == pytest.approx(points.mrr, abs=1e-4)


def test_it_is_analysed_as_independent_walkers(run: Run, world: Graph) -> None:
    found = analyse(run, parts=["orthogonality", "concentration", "lemma", "theorem", "limits"], directions=200)
    assert found.parts["limits"].as_dict()["applies"] is False
    assert isinstance(found.parts["concentration"], Concentration)
    paths = walk(run.model, world, start="France", paths=3, steps=2)
    assert len(paths) == 3


@torch.no_grad()
def test_the_theorem_holds_of_small_vectors_and_not_of_the_wrong_spheres(world: Graph) -> None:
    """Blocks of 64 of vectors with |h|² = d: log p is what the theorem says, as it is of one block."""
    options = {"blocks": 4, "start_from": "rotations", "entity_scale": 0.5}
    model = build_model("relwalk", len(world.entities), len(world.relations), 256, seed=0, options=options)
    check = check_theorem(model, world, triples=20, relations=4, directions=200, draws=16)
    assert check.holds, str(check)
    model.blocks = 128  # the same vectors, were the spheres those of 128 walkers: the integral is another
    long = model.entity.weight.mul_(3)
    assert (
        len(long) and check_theorem(model, world, triples=20, relations=4, directions=50).as_dict() != check.as_dict()
    )


@torch.no_grad()
def test_exact_moments_of_the_partition_function_agree_with_draws() -> None:
    draw = torch.Generator().manual_seed(0)
    entities = torch.randn(200, 12, generator=draw)
    c = uniform_directions(40_000, 12, draw, blocks=3)
    torch.testing.assert_close(c.unflatten(1, (3, 4)).norm(dim=-1), torch.full((40_000, 3), 3**-0.5))
    z = log_partition(entities, c).exp().numpy()
    assert np.log(z.mean()) == pytest.approx(log_mean_partition(entities, 3), abs=0.01)
    floor, slope = relative_variance(entities, blocks=3)
    assert z.var() / z.mean() ** 2 == pytest.approx(floor + slope / 200, rel=0.1)
    v = entities[:5]
    step = 1e-4  # the mean of v·c is the slope of the log of the integral
    slopes = (log_integral((1 + step) * v, 3) - log_integral((1 - step) * v, 3)) / (2 * step)
    tilted = tilted_directions(v, 20_000, draw, blocks=3)
    np.testing.assert_allclose((tilted * v.unsqueeze(1)).sum(-1).mean(1).numpy(), slopes, rtol=0.02)
    moved = displaced(c[:100], 0.1, draw, blocks=3)
    torch.testing.assert_close((moved - c[:100]).norm(dim=-1), torch.full((100,), 0.1), rtol=1e-4, atol=1e-5)
