"""Judgements: kept whatever happens, given out, and learned from."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import relwalk
from relwalk.errors import BadLine, GraphError
from relwalk.evaluation.labelled import labelled
from relwalk.graph.graph import Graph
from relwalk.graph.judgements import Judgement, last_words, read_judgements, with_judgements
from relwalk.serve.app import create_app
from relwalk.serve.curation import FILE, Judgements
from relwalk.serve.opened import Shelf, open_folder
from tests.entry import relwalk as command
from tests.serve.conftest import API, Client

LINKS = [("Kyoto", "near", "Himeji"), ("Kyoto", "near", "Tokyo"), ("Lyon", "near", "Geneva")]


def said(link: tuple[str, str, str], verdict: str) -> dict[str, str]:
    return dict(zip(("head", "relation", "tail", "verdict"), (*link, verdict), strict=True))


@pytest.fixture
def client(folder: Path) -> Client:
    return Client(create_app(Shelf([open_folder(folder, "world")])))


def test_judgements_outlive_the_service_and_the_last_word_counts(client: Client, folder: Path) -> None:
    for link, verdict in zip(LINKS, ("accept", "later", "reject"), strict=True):
        assert client.post(f"{API}/judgements", said(link, verdict)).status_code == 200
    client.post(f"{API}/judgements", said(LINKS[1], "reject"))
    client.post(f"{API}/judgements", said(LINKS[2], "none"))
    with (folder / FILE).open("ab") as file:
        file.write(b'{"head": "Kyoto", "relat')  # as a kill leaves it
    again = Client(create_app(Shelf([open_folder(folder, "world")])))
    found = again.ask("/judgements")["judgements"]
    assert [(f["head"], f["tail"], f["verdict"]) for f in found] == [
        ("Kyoto", "Himeji", "accept"),
        ("Kyoto", "Tokyo", "reject"),
    ]
    assert all(f["time"] for f in found)
    again.post(f"{API}/judgements", said(LINKS[2], "accept"))
    lines = (folder / FILE).read_text().splitlines()
    assert len(lines) == 6 and all(json.loads(line)["verdict"] for line in lines), "only appended, never half a line"


def test_two_who_judge_at_once_both_count(client: Client) -> None:
    links = [("Kyoto", "near", f"{name}") for name in ("Osaka", "Nara", "Kobe", "Tokyo", "Himeji")]
    client.together(*[lambda c, link=link: c.post(f"{API}/judgements", json=said(link, "accept")) for link in links])
    assert {f["tail"] for f in client.ask("/judgements")["judgements"]} == {tail for _, _, tail in links}


def test_what_is_exported_can_be_read_again(client: Client, tmp_path: Path) -> None:
    for link, verdict in zip(LINKS, ("accept", "later", "reject"), strict=True):
        client.post(f"{API}/judgements", said(link, verdict))
    for form in ("tsv", "jsonl"):
        found = client.get(f"{API}/judgements/export", format=form)
        assert f"judgements.{form}" in found.headers["content-disposition"]
        path = tmp_path / f"out.{form}"
        path.write_bytes(found.content)
        assert read_judgements(path) == [Judgement(*LINKS[0], "accept"), Judgement(*LINKS[2], "reject")]


def test_names_with_tabs_and_quotes_come_back(tmp_path: Path) -> None:
    own = Judgements(tmp_path)
    odd = Judgement('a\t"b"', "r\nx", "ü", "accept")
    own.add(odd)
    (tmp_path / "out.tsv").write_text(own.as_tsv())
    assert read_judgements(tmp_path / "out.tsv") == [odd] == read_judgements(tmp_path / FILE)


@pytest.mark.parametrize("verdict", ["maybe", "", "accept "])
def test_another_verdict_or_an_unknown_name_is_refused(verdict: str, client: Client) -> None:
    assert client.post(f"{API}/judgements", said(LINKS[0], verdict)).status_code == 422
    wrong = client.post(f"{API}/judgements", said(("Kyotto", "near", "Kobe"), "accept"))
    assert wrong.status_code == 404 and "Kyoto" in wrong.json()["detail"]


def test_a_folder_that_cannot_be_written_is_told(client: Client, folder: Path) -> None:
    (folder / FILE).mkdir()
    found = client.post(f"{API}/judgements", said(LINKS[0], "accept"))
    assert found.status_code == 400 and "Make the run's folder writable" in found.json()["detail"]


def write(path: Path, *rows: tuple[str, ...]) -> Path:
    path.write_text("".join("\t".join(row) + "\n" for row in (("head", "relation", "tail", "verdict"), *rows)))
    return path


def test_accepted_links_become_facts_and_rejected_ones_false_triples(world: Graph, tmp_path: Path) -> None:
    known = ("Kyoto", "near", "Osaka")
    rows = [(*LINKS[0], "accept"), (*LINKS[1], "reject"), (*LINKS[2], "later"), (*known, "accept"), (*known, "reject")]
    judged = with_judgements(world, write(tmp_path / "j.tsv", *rows))
    ids = [(world.entities.id(h), world.relations.id(r), world.entities.id(t)) for h, r, t in LINKS]
    assert len(judged.train) == len(world.train) + 1 and judged.train[-1].tolist() == list(ids[0])
    assert judged.valid_negatives is not None and judged.valid_negatives.tolist() == [list(ids[1])]
    assert any("1 accepted" in note and "1 rejected" in note for note in judged.notes)
    assert any("are facts of the graph" in note for note in judged.notes)
    assert len(last_words(read_judgements(tmp_path / "j.tsv"))) == 4


def test_a_few_false_triples_do_not_make_a_threshold_alone(world: Graph, tmp_path: Path) -> None:
    judged = with_judgements(world, write(tmp_path / "j.tsv", (*LINKS[1], "reject")))
    triples, labels = labelled(judged, "valid", 0)
    assert (~labels).sum() > 0.9 * labels.sum()
    assert (triples[~labels] == judged.valid_negatives[0]).all(1).any()


def test_what_was_rejected_is_not_discovered_again(world: Graph, tmp_path: Path) -> None:
    first = relwalk.train(world, dim=8, epochs=2, threads=1)
    (link,) = relwalk.discover(first, k=1, relations="capital_of", progress=False)
    path = write(tmp_path / "j.tsv", (link.head, link.relation, link.tail, "reject"))
    second = relwalk.train(with_judgements(world, path), dim=8, epochs=2, threads=1)
    found = {
        (f.head, f.relation, f.tail) for f in relwalk.discover(second, k=200, relations="capital_of", progress=False)
    }
    assert len(found) == 200 and (link.head, link.relation, link.tail) not in found


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("j.tsv", "head\trelation\ttail\tverdict\na\tb\tc\n", "line 2"),
        ("j.tsv", "a\tb\tc\tperhaps\n", "accept, reject"),
        ("j.jsonl", '{"head": "a"}\n', "line 1"),
        ("j.jsonl", "[" * 5000 + "\n", "line 1"),
    ],
)
def test_a_file_that_is_none_is_told(name: str, text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(BadLine, match=words):
        read_judgements(tmp_path / name)


def test_judgements_of_another_graph_are_told(five: Graph, tmp_path: Path) -> None:
    with pytest.raises(GraphError, match="another graph"):
        with_judgements(five, write(tmp_path / "j.tsv", (*LINKS[0], "accept")))


def test_train_takes_them(tmp_path: Path) -> None:
    path = write(tmp_path / "j.tsv", (*LINKS[0], "accept"), (*LINKS[1], "reject"))
    done = command(
        "train", "world", "--judged", path, "--dim", 4, "--epochs", 1, "--out", tmp_path / "run", "--threads", 1
    )
    assert "1 accepted links in train, 1 rejected ones known to be false" in done.stderr
    graph = relwalk.load_run(tmp_path / "run").graph
    assert np.array_equal(
        graph.train[-1], [graph.entities.id("Kyoto"), graph.relations.id("near"), graph.entities.id("Himeji")]
    )
    assert graph.valid_negatives is not None and len(graph.valid_negatives) == 1
