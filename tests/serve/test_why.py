"""Why a link is predicted: what is named is what it rests on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import relwalk
from relwalk.compression.compress import compress
from relwalk.experiment import train
from relwalk.runs.run import Run
from relwalk.serve.paths import ways
from relwalk.serve.why import why
from tests.conftest import make_graph
from tests.serve.conftest import Client


def test_without_the_named_facts_the_answer_falls_and_without_others_it_stays(run: Run) -> None:
    links = list(relwalk.discover(run, k=5, relations="near", progress=False))
    checked = [why(run, link.head, link.relation, link.tail).as_dict()["check"] for link in links]
    logs = {name: np.log([check[name]["share"] for check in checked]) for name in ("all", "without", "control")}
    falls, control = logs["all"] - logs["without"], logs["all"] - logs["control"]
    assert (falls > control).all() and np.median(falls) > 0.2 > 0.1 > np.median(control), (falls, control)


def test_a_model_trained_without_the_named_facts_gives_the_answer_less() -> None:
    """Countries 0 to 5 share a currency 20 by sharing a bloc 30: entity 6 is in the bloc, and its currency is asked."""
    bloc, money = 0, 1
    train_triples = [(i, bloc, 10) for i in range(7)] + [(i, bloc, 11) for i in range(7, 10)]
    train_triples += [(i, money, 12) for i in range(6)] + [(i, money, 13) for i in range(7, 10)]
    how = {"dim": 8, "epochs": 60, "threads": 1, "blocks": 1}

    def learned(triples: list) -> Run:
        return train(make_graph(triples, entities=14), **how)

    first = learned(train_triples)
    names = first.graph.entities.names
    found = why(first, names[6], "knows", names[12])
    support = [tuple(row) for row in found.facts[: found.taken].tolist()]
    assert (6, bloc, 10) in support, "the only fact of the entity"
    second = learned([t for t in train_triples if t not in support] + [(6, bloc, 11)])

    def share(run: Run) -> float:
        (answer,) = [a for a in relwalk.predict(run, head=names[6], relation="knows", k=14) if a.name == names[12]]
        return answer.probability

    assert share(second) < share(first) / 2


def test_ways_are_rules_with_how_often_they_hold() -> None:
    # a likes b, b likes c: and then a knows c, in three of four cases.
    chains = [(3 * i, 0, 3 * i + 1) for i in range(4)] + [(3 * i + 1, 0, 3 * i + 2) for i in range(4)]
    graph = make_graph([*chains, *[(3 * i, 1, 3 * i + 2) for i in range(3)]], entities=12)
    (way,) = ways(graph, 9, 1, 11)
    assert way.triples == ((9, 0, 10), (10, 0, 11)) and way.backwards == (False, False)
    assert (way.holds, way.pairs) == (0.75, 4)
    back = ways(graph, 2, 0, 1)
    assert any(way.backwards == (True,) for way in back) is False, "likes never goes both ways here"
    assert ways(graph, 0, 1, 11) == []


def test_the_service_explains(served: Client) -> None:
    link = served.ask("/discover", k=1, relation="near")["links"][0]
    asked = {name: link[name] for name in ("head", "relation", "tail")}
    found = served.ask("/why", **asked, side=link["asked"])
    assert found["facts"] and set(found["check"]) == {"all", "without", "control"}
    influence = [one["influence"] for one in found["facts"]]
    assert (
        influence == sorted(influence, reverse=True) and sum(one["taken"] for one in found["facts"]) == found["taken"]
    )
    ends = {asked["head"], asked["tail"]}
    assert all(ends & {one["head"], one["tail"]} for one in found["facts"])
    assert asked not in [{name: one[name] for name in asked} for one in found["facts"]]


@pytest.mark.parametrize("model", ["transe", "complex", "cp", "conve", "tucker"])
def test_other_models_are_explained_too(model: str) -> None:
    triples = [(i, 0, (i + 1) % 8) for i in range(8)] + [(i, 1, (i + 2) % 8) for i in range(7)]
    options = {"dim": 16 if model == "conve" else 8}
    run = train(make_graph(triples, entities=8), model=model, epochs=2, threads=1, **options)
    found = why(run, "h", "knows", "b", side="head")
    assert len(found.facts) and np.isfinite(found.influence).all() and 0 < found.standing["all"].share <= 1


def test_a_run_of_codes_says_why_it_cannot(learned: Path, tmp_path: Path) -> None:
    compress(relwalk.load_run(learned), out=tmp_path / "small", rank=8, entities="int8", progress=False)
    found = why(relwalk.load_run(tmp_path / "small"), "Kyoto", "near", "Himeji")
    assert found.absent is not None and "codes" in found.absent and len(found.facts) == 0
