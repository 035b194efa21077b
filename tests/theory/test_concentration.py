"""Z_c by hand, its spread for exact and soft orthogonality, and the lemma's exponent."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch

from relwalk.evaluation.estimate import Absent
from relwalk.models import RelWalk, build_model
from relwalk.models.orthogonal import random_rotations
from relwalk.theory.concentration import Concentration, concentration, spreads_of
from relwalk.theory.lemma import Shrinkage, shrinkage
from relwalk.theory.partition import log_mean_partition, log_partition, relative_variance
from relwalk.theory.sphere import uniform_directions
from tests.conftest import TEST, TRAIN, VALID, make_graph
from tests.theory.models import with_matrices


def measured(model: RelWalk, **options: int) -> Concentration:
    found = concentration(model, make_graph(TRAIN, VALID, TEST, entities=model.entities), **options)
    assert isinstance(found, Concentration)
    json.dumps(found.as_dict(), allow_nan=False)
    assert "sigma / mean" in str(found)
    return found


def test_the_partition_function_by_hand_and_beyond_overflow() -> None:
    e = torch.tensor([[1.0, 0.0], [0.0, 2.0], [-3.0, 0.0]])
    c = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    by_hand = [math.log(math.e + 1 + math.exp(-3)), math.log(1 + math.exp(2) + 1)]
    assert log_partition(e, c).tolist() == pytest.approx(by_hand, rel=1e-6)
    groups = torch.tensor([[1.0, 1.0, 1.0], [1.0, 1.0, 0.0]])
    assert log_partition(e, c, groups, block=3)[1].tolist() == pytest.approx(
        [math.log(math.e + 1), math.log(1 + math.exp(2))], rel=1e-6
    )
    assert log_partition(500 * e, c).tolist() == pytest.approx([500, 1000])


def test_the_exact_moments_are_those_of_many_directions() -> None:
    e = 0.8 * torch.randn(40, 5, generator=torch.Generator().manual_seed(0)) + 0.3
    z = log_partition(e, uniform_directions(200_000, 5, torch.Generator().manual_seed(1))).exp()
    assert log_mean_partition(e) == pytest.approx(float(z.mean().log()), abs=0.01)
    floor, slope = relative_variance(e)
    assert floor + slope / 40 == pytest.approx(float((z.std() / z.mean()) ** 2), rel=0.02)
    generator = torch.Generator().manual_seed(2)
    c = uniform_directions(4000, 5, generator)
    halves = [log_partition(e[torch.randperm(40, generator=generator)[:20]], c).exp() for _ in range(100)]
    drawn = float(torch.stack([(x.std() / x.mean()) ** 2 for x in halves]).mean())
    assert floor + slope / 20 == pytest.approx(drawn, rel=0.1)


def test_figures_of_a_spread_by_hand() -> None:
    (spread, nothing) = spreads_of(np.log([[1.0, 3.0, 1.0, 3.0], [1.0, 1.0, 1.0, 1.0]]), [7, 0], seed=0)
    assert nothing is None and spread is not None
    assert spread.mean == pytest.approx(2) and spread.sigma is not None and spread.sigma.value == pytest.approx(1)
    assert spread.relative.value == pytest.approx(0.5) and spread.skew == pytest.approx(0, abs=1e-9)
    assert spread.within == {"0.01": 0, "0.05": 0, "0.1": 0, "0.25": 0}
    (even,) = spreads_of(np.zeros((1, 4)), [1], seed=0)
    assert even is not None and even.skew is None and even.relative.value == 0 and even.within["0.01"] == 1


def test_exact_orthogonality_leaves_no_trace_of_the_relation() -> None:
    M = random_rotations(2, 16, torch.Generator().manual_seed(3))
    found = measured(with_matrices(M, entities=26), directions=4000, sample=10)
    a, b = found.relations
    assert a.head["all"] == b.head["all"]  # R1 = I and the same c: the very same numbers
    for other in (a.tail["all"], b.tail["all"]):
        assert a.head["all"] is not None and other is not None
        assert other.relative.low < a.head["all"].relative.high and other.relative.high > a.head["all"].relative.low
    sizes = [s.entities for s in a.head.values() if s is not None]
    assert sizes == [26, 10, 2]  # heads of "likes": a, b
    assert a.combined("all") == pytest.approx(math.hypot(a.head["all"].sigma.value, a.tail["all"].sigma.value))


def test_directions_are_not_the_numbers_that_the_model_began_with() -> None:
    """A model of seed 0 analysed with seed 0: c must not be its entities' own first directions."""
    model = RelWalk(26, 2, 50, generator=torch.Generator().manual_seed(0), entity_scale=2.0)
    spread = measured(model, seed=0).relations[0].head["all"]
    assert spread is not None and spread.exact_log_mean is not None
    assert spread.log_mean == pytest.approx(spread.exact_log_mean, abs=0.5)
    beside = uniform_directions(26, 50, torch.Generator().manual_seed(0))  # what the plain seed would give
    assert float(log_partition(model.entity.weight.detach(), beside).logsumexp(0)) > spread.exact_log_mean + 5


def test_a_stretched_matrix_spreads_its_own_relation_only() -> None:
    eye = torch.eye(8).repeat(2, 1, 1)
    R1 = torch.stack([eye[0], 2 * eye[0]])
    found = measured(with_matrices(eye, soft_R1=R1, entities=26), directions=500)
    plain, stretched = (r.head["all"] for r in found.relations)
    assert plain is not None and stretched is not None
    assert stretched.relative.low > plain.relative.high
    assert found.excess["all"]["head"] is not None and found.excess["all"]["head"] > 3
    assert "soft" in found.note


def test_one_dimension_a_relation_without_triples_and_very_many_relations() -> None:
    graph = make_graph([(0, 0, 1)], relations=2)
    found = concentration(with_matrices(torch.ones(2, 1, 1)), graph, directions=50)
    assert isinstance(found, Concentration) and found.relations[1].head["argument"] is None
    assert found.relations[1].combined("argument") is None
    json.dumps(found.as_dict(), allow_nan=False)
    assert " - " in str(found) + " "
    few = concentration(with_matrices(torch.ones(2, 1, 1)), graph, directions=50, most_relations=1)
    assert isinstance(few, Concentration) and "1 most frequent of 2" in few.note


def test_it_is_a_claim_about_relwalk_only() -> None:
    found = concentration(build_model("rescal", 5, 2, 4, seed=0, options={}), make_graph(TRAIN))
    assert isinstance(found, Absent) and "RESCAL" in found.reason


@pytest.mark.parametrize("dim", [16, 100])
def test_the_exponent_of_the_lemma_on_gaussian_vectors(dim: int) -> None:
    agreed = 0
    for seed in range(3):
        vectors = 0.7 * torch.randn(20_000, dim, generator=torch.Generator().manual_seed(100 + seed))
        found = shrinkage(vectors, directions=500, seed=seed)
        assert isinstance(found, Shrinkage)
        assert found.exponent.value == pytest.approx(-0.5, abs=0.06)
        assert found.exponent.high - found.exponent.low < 0.2
        assert found.agrees == found.exponent.contains(-0.5)
        assert found.floor < 0.02
        assert found.exact_of_all < 0.025
        json.dumps(found.as_dict(), allow_nan=False)
        agreed += found.agrees
    assert agreed >= 2  # an interval of 95%, from eight subsets of each size, misses now and then


def test_vectors_with_a_common_part_do_not_concentrate() -> None:
    vectors = 0.5 * torch.randn(20_000, 20, generator=torch.Generator().manual_seed(0)) + 0.5
    found = shrinkage(vectors, directions=500)
    assert isinstance(found, Shrinkage) and not found.agrees and found.floor > 0.1
    assert "not the lemma's" in str(found)


def test_too_few_entities_to_subsample() -> None:
    found = shrinkage(torch.randn(100, 4))
    assert isinstance(found, Absent) and "too few" in str(found)
