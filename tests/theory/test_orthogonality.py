"""Each quantity on matrices made by hand: identity, rotation, reflection, broken orthogonality."""

from __future__ import annotations

import json
import math

import pytest
import torch

from relwalk.evaluation.estimate import Absent
from relwalk.models import build_model
from relwalk.models.orthogonal import random_rotations
from relwalk.theory.orthogonality import Orthogonality, RelationGeometry, orthogonality
from relwalk.theory.relation_similarity import RelationSimilarity, relation_similarity
from tests.conftest import make_graph
from tests.theory.models import turn, with_matrices

FLIP = torch.diag(torch.tensor([1.0, -1.0]))


def measure(M: torch.Tensor, soft_R1: torch.Tensor | None = None) -> RelationGeometry:
    graph = make_graph([(0, 0, 1)], relations=1)
    found = orthogonality(with_matrices(M[None], soft_R1=soft_R1), graph)
    assert isinstance(found, Orthogonality)
    json.dumps(found.as_dict(), allow_nan=False)
    assert "nu" in str(found)
    return found.relations[0]


def test_the_identity_is_everything_it_should_be() -> None:
    r = measure(torch.eye(4))
    assert r.nu == r.nu_per_entry == r.defect_m == r.asymmetry == r.from_identity == r.from_involution == 0
    assert r.M.angles == (0,) * 4 and r.M.singular == (1, 1)


def test_a_rotation_has_its_angle_and_is_no_involution() -> None:
    r = measure(turn(30))
    assert r.M.angles == pytest.approx((30, 30), abs=1e-3)
    assert r.nu == pytest.approx(0, abs=1e-6)
    assert r.from_identity == pytest.approx(math.sin(math.radians(15)), abs=1e-6)  # |e^iθ - 1| / 2
    assert (r.asymmetry, r.from_involution) == pytest.approx((math.sin(math.radians(30)),) * 2, abs=1e-6)


def test_a_reflection_is_a_symmetric_involution_far_from_the_identity() -> None:
    r = measure(FLIP)
    assert r.M.angles == (0, 180)
    assert r.asymmetry == r.from_involution == 0
    assert r.from_identity == pytest.approx(math.sqrt(0.5))


def test_a_half_turn_is_as_far_from_the_identity_as_can_be() -> None:
    assert measure(-torch.eye(3)).from_identity == pytest.approx(1)


def test_broken_orthogonality_is_measured_as_the_paper_does() -> None:
    R1 = torch.tensor([[1.0, 0.25], [0.0, 1.0]])  # R1ᵀR1 = [[1, .25], [.25, 1.0625]]
    r = measure(torch.eye(2), soft_R1=R1)  # R2 = R1
    assert r.nu == pytest.approx(4 * 0.25) and r.nu_per_entry == pytest.approx(0.25)
    assert r.defect_r1 == r.defect_r2 == pytest.approx(0.25)
    assert r.R1 is not None and r.R1.singular[0] < 1 < r.R1.singular[1]


def test_one_dimension_has_no_off_diagonal() -> None:
    r = measure(-torch.ones(1, 1))
    assert r.nu == r.nu_per_entry == 0 and r.M.angles == (180,)


def test_two_random_rotations_are_one_over_root_two_apart() -> None:
    r = measure(random_rotations(1, 200, torch.Generator().manual_seed(0))[0])
    assert r.from_identity == pytest.approx(math.sqrt(0.5), abs=0.02)
    assert r.asymmetry == pytest.approx(r.from_involution, abs=1e-5)


def test_rescal_has_a_spectrum_and_no_nu_and_distmult_has_neither() -> None:
    graph = make_graph([(0, 0, 1)])
    rescal = orthogonality(build_model("rescal", 5, 2, 6, seed=0, options={}), graph)
    assert isinstance(rescal, Orthogonality)
    assert rescal.relations[0].nu is None and len(rescal.relations[0].M.angles) == 6
    json.dumps(rescal.as_dict(), allow_nan=False)
    assert "nu" in str(rescal)
    for part in (orthogonality, relation_similarity):
        distmult = part(build_model("distmult", 5, 2, 6, seed=0, options={}), graph)
        assert isinstance(distmult, Absent) and "no relation matrices" in distmult.reason
        assert distmult.as_dict()["applies"] is False


def test_inverse_alike_and_composed_relations_are_found() -> None:
    a, b, other = random_rotations(3, 16, torch.Generator().manual_seed(1))
    graph = make_graph([(0, r, 1) for r in range(5)], relations=5)
    found = relation_similarity(with_matrices(torch.stack([a, b, a @ b, a.T, other])), graph)
    assert isinstance(found, RelationSimilarity)
    assert [similar.relations for similar in found.inverse] == [("likes", "hears")]
    assert found.alike == ()
    trios = {(similar.kind, similar.relations) for similar in found.composed}
    assert ("composed", ("likes", "knows", "sees")) in trios  # a b = c
    assert ("composed", ("hears", "sees", "knows")) in trios  # aᵀ (a b) = b
    assert not any("owns" in trio for _, trio in trios)
    assert all(similar.cosine == pytest.approx(1, abs=1e-4) for similar in found.composed)
    json.dumps(found.as_dict(), allow_nan=False)
    assert "likes then knows ≈ sees" in str(found)
    twice = relation_similarity(with_matrices(torch.stack([a, a])), make_graph([(0, 0, 1)]))
    assert isinstance(twice, RelationSimilarity) and twice.alike[0].relations == ("likes", "knows")


def test_the_search_for_compositions_is_bounded_and_says_so() -> None:
    M = random_rotations(5, 8, torch.Generator().manual_seed(0))
    graph = make_graph([(0, r, 1) for r in range(5)], relations=5)
    found = relation_similarity(with_matrices(M), graph, work=4 * 8 * 8 * 3.1**3)
    assert isinstance(found, RelationSimilarity) and found.searched == 3
    assert found.note is not None and "3 most frequent of 5" in found.note


def test_reciprocal_relations_show_the_matrices_of_the_relations_themselves() -> None:
    graph = make_graph([(0, 0, 1)], relations=2)
    for name, exact in (("relwalk", True), ("rescal", False)):
        model = build_model(name, 5, 2, 4, seed=0, options={"reciprocal": True})
        found = orthogonality(model, graph)
        assert isinstance(found, Orthogonality) and found.exact == exact and len(found.relations) == 2
        assert isinstance(relation_similarity(model, graph), RelationSimilarity)
    none = orthogonality(build_model("distmult", 5, 2, 4, seed=0, options={"reciprocal": True}), graph)
    assert isinstance(none, Absent) and "DistMult has no relation matrices" in none.reason
