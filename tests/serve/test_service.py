"""What the service answers is what the rest of relwalk says."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import numpy as np
import pytest

import relwalk
from relwalk.evaluation.ranking import rank
from relwalk.experiment import train
from relwalk.graph.cardinality import cardinalities
from relwalk.graph.graph import Graph
from relwalk.runs.run import Run
from relwalk.serve.app import create_app
from relwalk.serve.batching import Batcher, How
from relwalk.serve.opened import Shelf, distinct_names, open_folder
from relwalk.serve.spelling import Spelling
from relwalk.serve.watch import keep_watch
from tests.serve.conftest import API, Client

NEAR = {"head": "Kyoto", "relation": "near"}


@pytest.mark.parametrize(
    "asked",
    [
        {**NEAR, "k": 4},
        {"relation": "speaks", "tail": "Arabic", "k": 3, "only_new": True},
        {"head": "France", "tail": "Spain"},
        {**NEAR, "coverage": 0.8},
        {**NEAR, "raw": True},
    ],
)
def test_a_prediction_is_that_of_predict(asked: dict, served: Client, run: Run) -> None:
    found = served.ask("/predict", **asked)
    expected = json.loads(json.dumps(relwalk.predict(run, **asked).as_dict()))
    assert found.pop("run") == "world"
    assert [a["name"] for a in found["answers"]] == [a["name"] for a in expected["answers"]]
    for mine, other in zip(found.pop("answers"), expected.pop("answers"), strict=True):
        assert mine.pop("name") == other.pop("name") and mine.pop("label") == other.pop("label")
        assert mine == {k: pytest.approx(v, rel=1e-4) if isinstance(v, float) else v for k, v in other.items()}
    assert found == expected


def test_many_questions_are_answered_in_their_order(served: Client) -> None:
    queries = [NEAR, {"head": "France", "tail": "Spain"}, {"relation": "capital_of", "tail": "Peru"}]
    found = served.post(f"{API}/predict", {"queries": queries, "k": 2}).json()["answers"]
    for answers, query in zip(found, queries, strict=True):
        alone = served.ask("/predict", **query, k=2)
        assert [a["name"] for a in answers["answers"]] == [a["name"] for a in alone["answers"]]


def test_questions_that_wait_together_are_answered_by_one_product(learned: Path, run: Run) -> None:
    opened, sizes = open_folder(learned, "world"), []
    names = run.graph.entities.names[:40]
    queries = [(name, "near", None) for name in names]

    async def ask() -> list:
        batcher = Batcher(sizes.append)
        try:
            ways = [How(1 + i % 5, only_new=i % 2 == 0) for i in range(len(queries))]
            return await asyncio.gather(*(batcher.ask(opened, [q], how) for q, how in zip(queries, ways, strict=True)))
        finally:
            batcher.close()

    found = asyncio.run(ask())
    assert sum(sizes) == 40 and len(sizes) <= 4, sizes
    for i, ((answers,), query) in enumerate(zip(found, queries, strict=True)):
        alone = relwalk.predict(run, head=query[0], relation="near", k=1 + i % 5, only_new=i % 2 == 0)
        assert [a.name for a in answers] == [a.name for a in alone]


@pytest.mark.parametrize(
    ("path", "params", "status", "words"),
    [
        ("/predict", {"head": "Kyotto", "relation": "near"}, 404, "Did you mean 'Kyoto'"),
        ("/predict", {"head": "Kyoto"}, 400, "give two of head, relation and tail"),
        ("/predict", {**NEAR, "k": 3, "coverage": 0.9}, 400, "leave out k"),
        ("/predict", {"head": "France", "tail": "Spain", "coverage": 0.9}, 400, "coverage is for heads and tails"),
        ("/predict", {**NEAR, "k": 0}, 422, "query.k is '0'"),
        ("/predict", {**NEAR, "run": "word"}, 404, "Did you mean 'world'"),
        ("/entity", {"name": "x" * 1001}, 422, "at most 1000"),
        ("/entity", {}, 422, "query.name"),
        ("/relation", {"name": "bordrs"}, 404, "borders"),
        ("/names", {"ids": "1,x"}, 400, "expected whole numbers"),
        ("/names", {"ids": "99999999"}, 400, "expected whole numbers from 0 to 2,736"),
        ("/walk", {"start": "Francee"}, 404, "France"),
        ("/map/points", {}, 400, "not made yet"),
        ("/nowhere", {}, 404, "Nothing is here"),
    ],
)
def test_a_mistake_is_a_problem_with_its_cure(path: str, params: dict, status: int, words: str, served: Client) -> None:
    found = served.get(API + path, **params)
    assert found.status_code == status and found.headers["content-type"] == "application/problem+json"
    content = found.json()
    assert content["status"] == status and words in content["detail"] and content["title"] and content["code"]


def test_the_words_are_those_of_the_command_line(served: Client, run: Run) -> None:
    with pytest.raises(relwalk.RelWalkError) as told:
        relwalk.predict(run, head="Kyotto", relation="near")
    found = served.get(f"{API}/predict", head="Kyotto", relation="near").json()
    assert found["detail"] == str(told.value) and found["nearest"][0] == "Kyoto"


def test_a_card_has_known_and_new_facts_side_by_side(served: Client, run: Run) -> None:
    card, graph = served.ask("/entity", name="Austria"), run.graph
    number = graph.entities.id("Austria")
    mine = graph.triples[(graph.triples[:, [0, 2]] == number).any(1)]
    names = {(graph.entities.names[h], graph.relations.names[r], graph.entities.names[t]) for h, r, t in mine.tolist()}
    known = {(f["head"], f["relation"], f["tail"]) for f in card["known"]}
    new = [(f["head"], f["relation"], f["tail"]) for f in card["new"]]
    assert known == names and card["facts"] == len(names)
    assert new and not set(new) & names and len(set(new)) == len(new)
    assert all("Austria" in (h, t) for h, _, t in new)
    sure = [f["confidence"] for f in card["new"]]
    assert sure == sorted(sure, reverse=True)
    first = card["new"][0]
    asked = {k: first[k] for k in ("head", "tail") if k != first["side"]}
    alone = relwalk.predict(run, **asked, relation=first["relation"], only_new=True, k=1)[0]
    assert alone.name == first[first["side"]] and alone.confidence == pytest.approx(first["confidence"], rel=1e-4)
    assert len(card["nearest"]) == 8 and card["nearest"][0]["cosine"] >= card["nearest"][1]["cosine"]


def test_a_relation_has_its_figures_and_its_kin(served: Client, run: Run) -> None:
    card = served.ask("/relation", name="borders")
    ranked = rank(run, progress=False).by_relation()["borders"]
    assert card["accuracy"]["both"]["mrr"] == pytest.approx(ranked.mrr)
    assert card["cardinality"] == cardinalities(run.graph)[run.graph.relations.id("borders")]
    assert len(card["matrix"]["spectrum"]["M"]["angles"]) == 16
    assert {"alike", "inverse", "composed"} <= set(card["partners"])
    assert all(f["relation"] == "borders" for f in card["examples"])
    png = served.get(f"{API}/relation/matrix", name="borders")
    assert png.headers["content-type"] == "image/png" and png.content.startswith(b"\x89PNG")
    every = served.ask("/relations")["relations"]
    assert len(every) == 10 and every[0]["facts"] >= every[-1]["facts"]


def test_discoveries_are_those_of_discover(served: Client, run: Run) -> None:
    found = served.ask("/discover", k=5, relation=["borders", "speaks"])
    expected = relwalk.discover(run, k=5, relations=["borders", "speaks"], progress=False)
    assert [(f["head"], f["relation"], f["tail"]) for f in found["links"]] == [
        (f.head, f.relation, f.tail) for f in expected
    ]


def test_a_neighbourhood_has_both_kinds_of_edges(served: Client) -> None:
    found = served.ask("/neighbourhood", name="France", known=10, predicted=5)
    assert [edge["known"] for edge in found["edges"]] == [True] * 10 + [False] * 5
    nodes = {node["name"] for node in found["nodes"]}
    assert {end for edge in found["edges"] for end in (edge["head"], edge["tail"])} == nodes and "France" in nodes
    assert len({edge["relation"] for edge in found["edges"][:10]}) >= 4, "some of each role"


def test_walks_are_drawn_by_seed(served: Client) -> None:
    first = served.ask("/walk", start="France", steps=3, paths=2, seed=5)
    assert served.ask("/walk", start="France", steps=3, paths=2, seed=5) == first
    assert [path["steps"][0]["head"] for path in first["paths"]] == ["France", "France"]


@pytest.mark.parametrize(
    ("typed", "first", "how"),
    [
        ("fran", "France", "start"),
        ("FRANCE", "France", "start"),
        ("york", "America/New_York", "word"),
        ("Frnace", "France", "spelling"),
        ("sao paulo", "São Paulo", "start"),
        ("", None, "start"),
    ],
)
def test_entities_are_found_by_what_is_typed(typed: str, first: str | None, how: str, served: Client) -> None:
    found = served.ask("/entities", q=typed, limit=5)["entities"]
    assert found and found[0]["match"] == how
    assert first is None or found[0]["name"] == first
    assert len({one["name"] for one in found}) == len(found) <= 5


def test_labels_are_searched_as_well_as_names() -> None:
    words = relwalk.read_graph([("Q1", "r", "Q2"), ("Q2", "r", "Q3")], valid=0, test=0).entities
    labelled = type(words)("entity", words.names, ("Ångström", None, "a\nb"))
    spelling = Spelling(labelled, np.array([3, 2, 1]))
    assert [m.entity for m in spelling.search("angst", 5)] == [0]
    assert [m.entity for m in spelling.search("q2", 1)] == [1]
    assert [m.entity for m in spelling.search("a b", 1)] == [2]
    assert spelling.search("zzzz", 5) == []


def test_an_answer_that_one_has_is_not_sent_again(served: Client) -> None:
    first = served.get(f"{API}/entity", name="Kyoto")
    again = served.get(f"{API}/entity", name="Kyoto", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"") and again.headers["etag"] == first.headers["etag"]
    other = served.get(f"{API}/entity", name="Kyoto", headers={"If-None-Match": '"other"'})
    assert other.status_code == 200 and other.content == first.content


def test_health_and_figures(served: Client) -> None:
    assert served.get("/healthz").json() == {"status": "alive"} and served.get("/readyz").json() == {"status": "ready"}
    served.ask("/predict", **NEAR)
    text = served.get("/metrics").text
    assert 'relwalk_requests_total{method="GET",route="/api/v1/predict",status="200"}' in text
    assert "relwalk_batch_questions_sum" in text and 'relwalk_run_info{fingerprint="' in text


def test_the_api_describes_itself(served: Client) -> None:
    described = served.get("/openapi.json").json()
    paths = described["paths"]
    for path in ("entity", "entities", "predict", "relation", "discover", "neighbourhood", "walk", "why", "judgements"):
        assert f"{API}/{path}" in paths, path
    assert "404" in paths[f"{API}/predict"]["get"]["responses"] and "Problem" in described["components"]["schemas"]


def test_several_runs_are_told_apart(learned: Path, five: Graph, tmp_path: Path) -> None:
    train(five, dim=4, epochs=1, threads=1, out=tmp_path / "small")
    folders = [learned, tmp_path / "small"]
    assert distinct_names([*folders, tmp_path / "more" / "small"]) == ["world", "small", "small-2"]
    pairs = zip(folders, distinct_names(folders), strict=True)
    client = Client(create_app(Shelf([open_folder(f, n) for f, n in pairs])))
    assert [one["name"] for one in client.ask("/runs")["runs"]] == ["world", "small"]
    assert client.ask("/predict", head="a", relation="likes", run="small")["run"] == "small"
    assert client.get(f"{API}/predict", head="a", relation="likes").status_code == 404
    tags = {client.get(f"{API}/relations", run=n).headers["etag"] for n in ("world", "small")}
    assert len(tags) == 2


def test_a_run_that_was_trained_anew_is_swapped_in_whole(five: Graph, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    train(five, dim=4, epochs=1, threads=1, out=folder)
    app = create_app(Shelf([open_folder(folder, "run")]))
    client, service = Client(app), app.state.service
    before, held = client.ask("/runs")["runs"][0], service.shelf.get("run")

    async def watch() -> None:
        watcher = asyncio.create_task(keep_watch(service, 0.01))
        await asyncio.sleep(0.05)
        record = folder / "run.json"
        whole = record.read_bytes()
        record.write_bytes(whole[:100])  # half of one is no run
        await asyncio.sleep(0.1)
        assert service.shelf.get("run") is held
        record.write_bytes(whole)
        train(five, dim=6, epochs=1, threads=1, out=folder, force=True)
        for _ in range(500):
            await asyncio.sleep(0.01)
            if service.shelf.get("run") is not held:
                break
        watcher.cancel()

    asyncio.run(watch())
    after = client.ask("/runs")["runs"][0]
    assert after["fingerprint"] != before["fingerprint"] and "d=6" in after["model"]
    assert held.run.model.dim == 4, "who has the earlier one keeps it whole"


def test_a_model_without_matrices_says_so_and_a_run_without_valid_has_no_confidences(tmp_path: Path) -> None:
    graph = relwalk.read_graph([("a", "likes", "b"), ("b", "likes", "c"), ("c", "knows", "a")], valid=0, test=0)
    train(graph, model="distmult", dim=4, epochs=1, threads=1, out=tmp_path / "run")
    client = Client(create_app(Shelf([open_folder(tmp_path / "run", "run")])))
    card = client.ask("/relation", name="likes")
    assert "no relation matrices" in card["matrix"]["absent"] and "no test or valid" in card["accuracy"]["absent"]
    assert client.get(f"{API}/relation/matrix", name="likes").status_code == 400
    assert client.get(f"{API}/walk").status_code == 400
    new = client.ask("/entity", name="a")["new"]
    assert new and all(f["confidence"] is None and f["probability"] > 0 for f in new)
    assert client.get(f"{API}/predict", head="a", relation="likes", coverage=0.5).status_code == 400
