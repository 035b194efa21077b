"""The index finds what a look at every entity finds, and is kept with the run."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from relwalk import key_index
from relwalk.answers import Answers
from relwalk.errors import RelWalkError
from relwalk.evaluation.probability_fit import fit_probabilities
from relwalk.experiment import train
from relwalk.graph.graph import Graph
from relwalk.graph.vocabulary import Vocabulary
from relwalk.key_index import FILE, index_of, load_codes, make_codes, open_index, save_codes
from relwalk.prediction import predict_many
from relwalk.runs.record import GraphRecord, ModelRecord, RunRecord
from relwalk.runs.run import Run, fresh_model
from relwalk.serve.app import create_app
from relwalk.serve.opened import Shelf, open_folder
from relwalk.serve.server import serve
from relwalk.training.settings import TrainingSettings
from tests.serve.conftest import API, Client

ENTITIES, RELATIONS, TRIPLES, SHORT = 6000, 5, 20_000, 256


def made(model: str) -> Run:
    """A run of random vectors, the hardest for an index, as if it were trained."""
    rng = np.random.default_rng(0)
    sizes = (ENTITIES, RELATIONS, ENTITIES)
    triples = np.stack([rng.integers(n, size=TRIPLES) for n in sizes], 1).astype(np.int32)
    triples[:60, :2] = 3, 2  # a question with many known answers
    names = Vocabulary("entity", tuple(f"e{i}" for i in range(ENTITIES)))
    relations = Vocabulary("relation", tuple(f"r{i}" for i in range(RELATIONS)))
    graph = Graph("random", names, relations, triples[:-400], triples[-400:-200], triples[-200:])
    size = {"entities": ENTITIES, "relations": RELATIONS}
    about = GraphRecord(name=graph.name, source="", fingerprint=graph.fingerprint, **size)
    kind = ModelRecord(name=model, dim=32)
    record = RunRecord(status="finished", graph=about, model=kind, training=TrainingSettings())
    own = fresh_model(record, graph).eval()
    return Run(None, record.model_copy(update={"probabilities": fit_probabilities(own, graph)}), graph, own)


@pytest.fixture(scope="module")
def random_run() -> Run:
    pytest.importorskip("faiss", reason="faiss is not installed: pip install 'relwalk[index]'")
    return made("relwalk")


def questions(run: Run, count: int = 60) -> list[tuple[str | None, str | None, str | None]]:
    names, relations = run.graph.entities.names, run.graph.relations.names
    tails = [(names[i * 31], relations[i % RELATIONS], None) for i in range(count)]
    return [*tails, (names[3], relations[2], None), *((None, r, h) for h, r, _ in tails)]


def recall(found: list[Answers], exact: list[Answers]) -> float:
    return float(
        np.mean([len({a.name for a in f} & {a.name for a in e}) / len(e) for f, e in zip(found, exact, strict=True)])
    )


@pytest.mark.parametrize("only_new", [False, True])
def test_the_short_list_holds_the_best(random_run: Run, only_new: bool) -> None:
    index, asked = index_of(make_codes(random_run.model), SHORT), questions(random_run)
    exact = list(predict_many(random_run, asked, only_new=only_new))
    found = list(predict_many(random_run, asked, only_new=only_new, index=index))
    assert recall(found, exact) >= 0.99
    both = [
        (mine, other) for f, e in zip(found, exact, strict=True) for mine in f for other in e if mine.name == other.name
    ]
    assert both
    for mine, other in both:
        assert (mine.label, mine.known) == (other.label, other.known)
        assert mine.score == pytest.approx(other.score, rel=1e-4)
        assert mine.share == pytest.approx(other.share, rel=0.02)
        assert mine.probability == pytest.approx(other.probability, rel=0.02)
        if not mine.known:
            assert mine.confidence == pytest.approx(other.confidence, rel=0.05, abs=1e-3)
    if only_new:
        assert not any(answer.known for answers in found for answer in answers)
        assert all(len(answers) == 10 for answers in found)
    assert "by an index" in found[0].note


def test_what_a_short_list_cannot_hold_is_answered_from_all(random_run: Run) -> None:
    index = index_of(make_codes(random_run.model), SHORT)
    names, relations = random_run.graph.entities.names, random_run.graph.relations.names
    for how, query in (
        ({"coverage": 0.5}, (names[7], relations[1], None)),
        ({}, (names[7], None, names[9])),
        ({"k": SHORT}, (names[7], relations[1], None)),
    ):
        found = next(predict_many(random_run, [query], index=index, **how))
        assert found.answers == next(predict_many(random_run, [query], **how)).answers


def test_heads_and_tails_with_keys_of_their_own_have_an_index_each() -> None:
    pytest.importorskip("faiss", reason="faiss is not installed: pip install 'relwalk[index]'")
    run = made("cp")
    codes = make_codes(run.model)
    assert set(codes) == ({"head", "tail"} if run.model.keys_by_side else {"tail"})
    asked = questions(run, 30)
    assert recall(list(predict_many(run, asked, index=index_of(codes, SHORT))), list(predict_many(run, asked))) >= 0.99


def test_an_index_is_kept_with_its_run(random_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved = random_run.save(tmp_path / "run")
    folder = saved.path
    assert folder is not None
    opened = open_folder(folder, "run", index=True)
    client = Client(create_app(Shelf([opened])))
    asked = {"head": "e5", "relation": "r1", "k": 3}
    first = client.ask("/predict", **asked)
    assert client.ask("/runs")["runs"][0]["indexed"] and (folder / FILE).is_file()
    alone = next(predict_many(random_run, [("e5", "r1", None)], k=3))
    assert [a["name"] for a in first["answers"]] == [a.name for a in alone]

    def again(model: object) -> None:
        raise AssertionError("it is kept already")

    codes = load_codes(folder, opened.fingerprint, random_run.model)
    assert codes is not None
    with monkeypatch.context() as patched:
        patched.setattr(key_index, "make_codes", again)
        open_index(folder, opened.fingerprint, random_run.model)
        with pytest.raises(AssertionError, match="kept already"):
            open_index(folder, "of another run", random_run.model)
    save_codes(folder, {"tail": {**codes["tail"], "codes": codes["tail"]["codes"][:-1]}}, opened.fingerprint)
    assert load_codes(folder, opened.fingerprint, random_run.model) is None, "a row is missing"
    (folder / FILE).write_bytes(b"no index")
    assert load_codes(folder, opened.fingerprint, random_run.model) is None


def test_a_model_whose_relations_have_keys_of_their_own_is_refused(five: Graph, tmp_path: Path) -> None:
    pytest.importorskip("faiss", reason="faiss is not installed: pip install 'relwalk[index]'")
    train(five, dim=4, epochs=1, threads=1, orthogonality="soft", out=tmp_path / "soft")
    with pytest.raises(RelWalkError, match="Leave out --index"):
        open_folder(tmp_path / "soft", "soft", index=True)


def test_without_faiss_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(RelWalkError, match=r"pip install 'relwalk\[index\]'"):
        serve([tmp_path], index=True)


def test_the_runs_say_whether_they_have_an_index(learned: Path) -> None:
    client = Client(create_app(Shelf([open_folder(learned, "world")])))
    assert client.get(f"{API}/runs").json()["runs"][0]["indexed"] is False
