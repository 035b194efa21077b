"""A compressed model is a model like any other: what it answers agrees with itself, and with what it was made from."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from relwalk.errors import RelWalkError
from relwalk.evaluation.ranking import rank
from relwalk.graph.answers import SIDES
from relwalk.models import base, build_model, keys
from relwalk.models.compressed import Compression, compressed_blank, held_bytes, whole_weights
from relwalk.models.compressor import Compressor
from relwalk.testing import (
    ENTITIES,
    RELATIONS,
    Case,
    candidates_are_columns_of_all,
    conditionals_sum_to_one,
    make_case,
    order_does_not_matter,
    ways_to_score_agree,
)
from tests.conftest import make_graph

PROMISES = [ways_to_score_agree, candidates_are_columns_of_all, order_does_not_matter, conditionals_sum_to_one]
MODELS: list[tuple[str, dict[str, Any]]] = [
    ("relwalk", {}),
    ("relwalk", {"orthogonality": "soft"}),
    ("relwalk", {"reciprocal": True}),
    ("relwalk", {"hidden": True}),
    ("relwalk", {"hidden": True, "equal_lengths": True, "relation_bias": True}),
    ("rescal", {}),
]
WAYS = [
    Compression(method="eig", rank=5),
    Compression(method="svd", rank=3, precision="float16"),
    Compression(method="eig", rank=4, precision="int8", entities="int8"),
    Compression(entities="pq"),
    Compression(entities="float16"),
]
DIM = 8


def small_case(model: str, options: dict[str, Any], how: Compression) -> Case:
    case = make_case(model, DIM, options)
    return case._replace(model=Compressor(case.model)(how))


@pytest.mark.parametrize("promise", PROMISES)
@pytest.mark.parametrize("how", WAYS, ids=str)
@pytest.mark.parametrize(("model", "options"), MODELS)
def test_a_compressed_model_keeps_the_contract(model: str, options: dict[str, Any], how: Compression, promise) -> None:
    with torch.no_grad():
        promise(small_case(model, options, how))


@pytest.mark.parametrize("model", ["transe", "distmult", "complex"])
@pytest.mark.parametrize("promise", PROMISES)
def test_entities_of_any_model_can_be_codes(model: str, promise) -> None:
    with torch.no_grad():
        promise(small_case(model, {}, Compression(entities="int8")))


@pytest.mark.parametrize("how", [Compression(method="eig", rank=DIM), Compression(method="svd", rank=DIM)], ids=str)
@pytest.mark.parametrize(("model", "options"), MODELS)
def test_all_components_give_the_scores_of_the_model(model: str, options: dict[str, Any], how: Compression) -> None:
    case = make_case(model, DIM, options)
    small = Compressor(case.model)(how)
    with torch.no_grad():
        for side in SIDES:
            given, _ = case.asked(side)
            scores = (m.score_candidates(side, given, case.relations) for m in (small, case.model))
            torch.testing.assert_close(*scores, rtol=0, atol=1e-4)
        torch.testing.assert_close(small.score(*case[1:]), case.model.score(*case[1:]), rtol=0, atol=1e-4)


def test_lossless_is_half_of_the_relations() -> None:
    case = make_case("relwalk", DIM, {})
    small = Compressor(case.model)(Compression(method="lossless"))
    vectors = 4 * ENTITIES * DIM
    assert held_bytes(case.model) - vectors == 4 * RELATIONS * DIM * DIM
    assert held_bytes(small) - vectors == RELATIONS * (4 * DIM * (DIM - 1) // 2 + DIM)
    with torch.no_grad():
        torch.testing.assert_close(small.score(*case[1:]), case.model.score(*case[1:]), rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("how", WAYS, ids=str)
@pytest.mark.parametrize(("model", "options"), MODELS)
def test_a_blank_takes_the_weights_of_the_compressed(model: str, options: dict[str, Any], how: Compression) -> None:
    case = small_case(model, options, how)
    blank = compressed_blank(
        lambda entities: build_model(model, entities, RELATIONS, DIM, seed=0, options=options), ENTITIES, how
    )
    blank.load_state_dict(case.model.state_dict(), assign=True)
    assert torch.equal(blank.eval().score(*case[1:]), case.model.score(*case[1:]))


@pytest.mark.parametrize("how", WAYS, ids=str)
@pytest.mark.parametrize(("model", "options"), MODELS)
def test_the_model_stays_as_it_is(model: str, options: dict[str, Any], how: Compression) -> None:
    case = make_case(model, DIM, options)
    before = {name: (t.data_ptr(), t.clone()) for name, t in case.model.state_dict().items()}
    small = Compressor(case.model)(how)
    assert {n: t.data_ptr() for n, t in case.model.state_dict().items()} == {n: p for n, (p, _) in before.items()}
    assert all(torch.equal(t, before[name][1]) for name, t in case.model.state_dict().items())
    whole = whole_weights(small)
    assert {n: (t.dtype, t.shape) for n, t in whole.items()} == {n: (t.dtype, t.shape) for n, (_, t) in before.items()}


def test_all_keys_are_decoded_a_block_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    case = small_case("relwalk", {}, Compression(entities="int8"))
    model, asked = case.model, []
    decode = type(model.entity).decode
    monkeypatch.setattr(base, "DECODED", 5 * DIM)
    monkeypatch.setattr(type(model.entity), "decode", lambda self, rows: asked.append(len(rows)) or decode(self, rows))
    for side in SIDES:
        asked.clear()
        model.score_candidates(side, case.heads, case.relations)
        assert 5 in asked and max(asked) <= max(5, len(case.heads))


@pytest.mark.parametrize("kept", [0, 1 << 20])
def test_ranks_do_not_depend_on_how_keys_are_decoded(kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A block at a time, each time anew or kept: the ranks are those of a model that holds the decoded numbers."""
    rows = [(i, i % 2, (i * 3 + 1) % ENTITIES) for i in range(ENTITIES)]
    graph = make_graph(rows[4:], [], rows[:4], entities=ENTITIES, relations=RELATIONS)
    for options in ({}, {"orthogonality": "soft"}):
        case = make_case("relwalk", DIM, options)
        small = Compressor(case.model)(Compression(entities="float16"))
        with torch.no_grad():
            case.model.entity.weight.copy_(small.entity())
        monkeypatch.setattr(base, "DECODED", 5 * DIM)
        monkeypatch.setattr(keys, "KEPT", kept)
        for rule in ("all", "argument"):
            found, expected = (rank(m, graph, candidates=rule).ranks for m in (small, case.model))  # type: ignore[arg-type]
            for side in SIDES:
                assert found[side].optimistic.tolist() == expected[side].optimistic.tolist()


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({}, "nothing is compressed"),
        ({"rank": 3}, "Give a method too"),
        ({"method": "eig"}, "needs a rank: a whole number from 1 to 8"),
        ({"method": "eig", "rank": 0}, "rank is 0; expected a whole number from 1 to 8"),
        ({"method": "svd", "rank": 9}, "rank is 9; expected a whole number from 1 to 8"),
        ({"method": "lossless", "rank": 3}, "leave out rank"),
        ({"entities": "int8", "code_bytes": 4}, "those of entities=pq"),
        ({"entities": "pq", "code_bytes": 9}, "code_bytes is 9; expected a whole number from 1 to 8"),
    ],
)
def test_what_is_no_compression_is_refused(how: dict[str, Any], words: str) -> None:
    with pytest.raises(RelWalkError, match=words):
        Compressor(make_case("relwalk", DIM, {}).model)(Compression(**how))


@pytest.mark.parametrize(
    ("model", "options", "how", "words"),
    [
        ("distmult", {}, {"method": "eig", "rank": 2}, "DistMult has no relation matrices"),
        ("rescal", {}, {"method": "lossless"}, "those of RESCAL are not"),
        ("rescal", {}, {"method": "eig", "rank": 2, "around": "signs"}, "near no diagonal"),
        ("relwalk", {"orthogonality": "soft"}, {"method": "lossless"}, "these are soft"),
    ],
)
def test_what_a_model_does_not_have_is_refused(model: str, options: Any, how: Any, words: str) -> None:
    with pytest.raises(RelWalkError, match=words):
        Compressor(make_case(model, DIM, options).model)(Compression(**how))


@pytest.mark.parametrize("how", WAYS, ids=str)
def test_what_is_compressed_is_not_compressed_again(how: Compression) -> None:
    small = small_case("relwalk", {}, how).model
    with pytest.raises(RelWalkError, match="compressed already"):
        Compressor(small)(Compression(entities="float16"))
