"""The whole analysis: for RelWalk, exact and soft, for other models, and for graphs that lack things."""

from __future__ import annotations

import json

import pytest

from relwalk.errors import UnknownChoice
from relwalk.graph.graph import Graph
from relwalk.models import MODELS, build_model
from relwalk.theory.analyse import PARTS, analyse
from tests.conftest import TEST, TRAIN, make_graph
from tests.entry import brief_theory


@pytest.mark.parametrize("name", sorted(MODELS))
@pytest.mark.parametrize("soft", [False, True])
def test_every_model_gets_every_part_or_a_reason(
    name: str, soft: bool, world: Graph, small_world: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    if soft and name != "relwalk":
        pytest.skip("only RelWalk has soft orthogonality")
    brief_theory(monkeypatch.setattr)
    options = {"orthogonality": "soft"} if soft else {}
    graph = world if name == "relwalk" else small_world  # some parts of a RelWalk need many entities
    model = build_model(name, len(graph.entities), len(graph.relations), 8, seed=0, options=options)
    told: list[str] = []
    found = analyse(model, graph, directions=60, sample=500, progress=lambda done, total, what: told.append(what))
    text = json.dumps(found.as_dict(), allow_nan=False)
    assert list(found.parts) == list(PARTS) == list(dict.fromkeys(told))
    applies = {
        part: value["applies"]
        for part, value in json.loads(text).items()
        if isinstance(value, dict) and "applies" in value
    }
    matrices = name in ("relwalk", "rescal")
    walks = name == "relwalk"
    assert applies == {
        "orthogonality": matrices,
        "similarity": matrices,
        "concentration": walks,
        "lemma": walks,
        "correlation": walks,
        "theorem": walks,
        "limits": walks,
        "calibration": True,
    }
    assert "nan" not in str(found).lower().split()
    if walks:
        assert len(found.as_dict()["correlation"]["columns"]) == 16


def test_one_relation_no_test_triples_and_one_dimension(monkeypatch: pytest.MonkeyPatch) -> None:
    brief_theory(monkeypatch.setattr)
    for dim in (1, 4):
        model = build_model("relwalk", 5, 1, dim, seed=0, options={})
        alone = analyse(model, make_graph([(0, 0, 1), (1, 0, 2)], [], [(0, 0, 2)], relations=1), directions=20)
        columns = alone.as_dict()["correlation"]["columns"]
        assert all(c["pearson"] is None and "a correlation needs" in c["message"] for c in columns)
        bare = analyse(model, make_graph([(0, 0, 1), (1, 0, 2)], relations=1), directions=20)
        assert not bare.as_dict()["correlation"]["applies"] and not bare.as_dict()["calibration"]["applies"]
        json.dumps([alone.as_dict(), bare.as_dict()], allow_nan=False)
        assert "no test triples" in str(bare)


def test_parts_can_be_chosen_and_a_wrong_one_is_refused() -> None:
    model = build_model("relwalk", 5, 2, 4, seed=0, options={})
    graph = make_graph(TRAIN, [], TEST)
    found = analyse(model, graph, parts=["orthogonality"])
    assert list(found.parts) == ["orthogonality"] and "max|RᵀR-I|" in str(found["orthogonality"])
    with pytest.raises(UnknownChoice, match="orthogonality"):
        analyse(model, graph, parts=["orthogonalty"])
    with pytest.raises(UnknownChoice):
        found["theorem"]
