"""read_graph: what a source means, data in memory, and a whole graph's split."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from relwalk.errors import GraphError, RelWalkError, UnknownChoice
from relwalk.graph import read
from relwalk.graph.graph import Graph
from relwalk.graph.read import read_graph
from relwalk.graph.whole import distinct_triples

ROWS = [("a", "r", "b"), ("b", "r", "c"), ("007", "s", "NA")]


def names_of(graph: Graph) -> set[tuple[str, str, str]]:
    entities, relations = graph.entities.names, graph.relations.names
    return {(entities[h], relations[r], entities[t]) for h, r, t in graph.triples.tolist()}


def folder(path: Path, text: str = "a\tr\tb\n") -> Path:
    path.mkdir(parents=True)
    (path / "train.txt").write_text(text)
    return path


# Sources.


def test_the_name_of_a_data_set_means_the_data_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def locate(name: str, **options: object) -> Path:
        asked.append((name, options))
        return folder(tmp_path / "cache" / "abc")

    monkeypatch.setattr(read, "locate", locate)
    monkeypatch.chdir(tmp_path)
    folder(tmp_path / "wn18rr", "x\tr\ty\n")
    graph = read_graph("wn18rr", data_dir=tmp_path)
    assert graph.name == "wn18rr" and names_of(graph) == {("a", "r", "b")}
    assert asked == [("wn18rr", {"data_dir": tmp_path, "progress": None})]
    assert names_of(read_graph("./wn18rr")) == names_of(read_graph(Path("wn18rr"))) == {("x", "r", "y")}


def test_the_embedded_graph_is_read_by_name() -> None:
    assert read_graph("world").name == "world"


@pytest.mark.parametrize("source", ["wn18r", "no/such/wn18r", "a\0b", "x" * 5000, ""])
def test_a_path_that_is_not_there(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(GraphError) as caught:
        read_graph(source)
    if "wn18r" in source:
        assert "does not exist" in str(caught.value) and "Did you mean 'wn18rr'?" in str(caught.value)
        assert "fb15k-237" in str(caught.value)


def test_names_of_graphs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder(tmp_path / "my.graph"))
    assert read_graph(".").name == "my.graph"
    assert read_graph(".", name="other").name == "other"


def test_choices_that_do_not_exist(tmp_path: Path) -> None:
    path = folder(tmp_path / "g")
    with pytest.raises(UnknownChoice, match="Did you mean 'openke'"):
        read_graph(path, format="openk")
    with pytest.raises(UnknownChoice, match="on_bad_line"):
        read_graph(path, on_bad_line="ignore")  # type: ignore[arg-type]


@pytest.mark.parametrize("format", ["openke", "libkge", "rotate", "parquet", "tsv", "nt"])
def test_a_format_that_does_not_fit_is_an_error(format: str, tmp_path: Path) -> None:
    with pytest.raises(GraphError, match="expected"):
        read_graph(folder(tmp_path / "g"), format=format, on_bad_line="skip")


def test_a_named_format_beats_the_suffix(tmp_path: Path) -> None:
    (tmp_path / "g.dat").write_text("a\tr\tb\n")
    assert names_of(read_graph(tmp_path / "g.dat", format="tsv")) == {("a", "r", "b")}


# Memory.

TABLES = {
    "tuples": ROWS,
    "lists": [list(row) for row in ROWS],
    "polars": pl.DataFrame(ROWS, schema=["h", "r", "t"], orient="row"),
    "lazy": pl.DataFrame(ROWS, schema=["x", "y", "z"], orient="row").lazy(),
    "categorical": pl.DataFrame(ROWS, schema=["s", "p", "o"], orient="row", schema_overrides={"p": pl.Categorical}),
    "pandas": pd.DataFrame(ROWS, columns=["subject", "predicate", "object"]).assign(weight=1.5),
    "pandas without headings": pd.DataFrame(ROWS),
    "numpy": np.array(ROWS),
    "numpy objects": np.array(ROWS, dtype=object),
}


@pytest.mark.parametrize("kind", TABLES)
def test_tables_in_memory(kind: str) -> None:
    whole = read_graph(TABLES[kind])
    assert names_of(whole) == set(ROWS)
    parts = read_graph({"train": TABLES[kind], "dev": TABLES[kind]}, name="mine")
    assert len(parts.train) == len(parts.valid) == 3 and parts.name == "mine"


@pytest.mark.parametrize(
    "data", [np.array([[1, 0, 2]]), [(1, 0, 2)], [(np.int32(1), 0, 2)], pl.DataFrame([[1], [0], [2]])]
)
def test_numbers_become_their_decimal_names(data: object) -> None:
    assert names_of(read_graph(data)) == {("1", "0", "2")}


def test_negatives_in_memory() -> None:
    graph = read_graph({"train": ROWS, "test": ROWS, "test_negatives": [("a", "r", "NA")]})
    assert graph.test_negatives is not None and len(graph.test_negatives) == 1


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "NoneType"),
        (3, "int"),
        (b"abc", "bytes"),
        ([], "no training triples"),
        ({}, "expected train"),
        ({"valid": ROWS}, "expected train"),
        ({"train": ROWS, "tset": ROWS}, "Did you mean 'test'"),
        ([("a", "r")], "row 1"),
        (["abc"], "row 1"),
        ([("a", "r", None)], "row 1"),
        ([("a", "r", 1.5)], "row 1"),
        ([("a", "r", True)], "row 1"),
        ([*ROWS, ("a", "", "b")], "row 4"),
        ([("a", "r", "\ud800")], "expected"),
        (np.zeros((2, 2), int), r"\(2, 2\)"),
        (np.zeros((2, 3)), "float64"),
        (pl.DataFrame({"a": ["x"], "b": ["y"]}), "columns a, b"),
        (pl.DataFrame({"h": ["x"], "r": ["y"], "t": [None]}), "row 1"),
        (pd.DataFrame([("a", "r", None)]), "row 1"),
    ],
)
def test_data_in_memory_that_is_no_graph(data: object, message: str) -> None:
    with pytest.raises(RelWalkError, match=message):
        read_graph(data)


def test_bad_rows_in_memory_can_be_skipped() -> None:
    graph = read_graph([*ROWS, ("a", "r"), ("a", "", "b")], on_bad_line="skip")
    assert names_of(graph) == set(ROWS)
    assert sum("skipped 1 bad rows" in note for note in graph.notes) == 2


# The split.


def test_a_whole_graph_is_freed_of_duplicates_and_split_by_seed() -> None:
    rows = [(f"e{n % 7}", f"r{n % 3}", f"e{n % 5}") for n in range(105)]
    graph = read_graph([*rows, *rows[:40]], valid=0.2, test=0.1, seed=3)
    assert (len(graph.train), len(graph.valid), len(graph.test)) == (74, 21, 10)
    assert names_of(graph) == set(rows)
    assert "dropped 40 duplicate triples" in graph.notes
    assert "split by seed 3 into 74 / 21 / 10 triples for train / valid / test" in graph.notes
    again, other = (read_graph(rows, valid=0.2, test=0.1, seed=seed) for seed in (3, 4))
    assert again.fingerprint == graph.fingerprint != other.fingerprint


def test_parts_that_are_given_are_not_split() -> None:
    graph = read_graph({"train": ROWS * 2})
    assert len(graph.train) == 6 and len(graph.valid) == 0


@pytest.mark.parametrize("sizes", [(5, 2), (2**31 - 1, 2**31 - 1)])
def test_distinct_triples_with_small_and_with_huge_vocabularies(sizes: tuple[int, int]) -> None:
    triples = np.array([[4, 1, 0], [0, 0, 4], [4, 1, 0], [0, 1, 4]], np.int32)
    assert distinct_triples(triples, *sizes).tolist() == [[4, 1, 0], [0, 0, 4], [0, 1, 4]]


@pytest.mark.parametrize("given", [{"valid": 0.2}, {"test": 0.1}, {"seed": 0}])
def test_a_split_that_is_asked_of_a_graph_with_its_own_is_refused(given: dict, tmp_path: Path) -> None:
    for source in ("world", {"train": ROWS}, folder(tmp_path / "g")):
        with pytest.raises(GraphError, match=r"split of its own.*one file"):
            read_graph(source, **given)


@pytest.mark.parametrize("given", [{"valid": 2}, {"test": -0.1}, {"valid": 0.95}, {"valid": float("nan")}])
@pytest.mark.parametrize("source", ["world", ROWS])
def test_shares_are_checked_always(source: object, given: dict) -> None:
    with pytest.raises(GraphError, match="sum to less than 1"):
        read_graph(source, **given)


@pytest.mark.parametrize("source", ["world", ROWS])
def test_a_seed_is_checked_always(source: object) -> None:
    with pytest.raises(RelWalkError, match="--split-seed"):
        read_graph(source, seed=-1)


def warnings(graph: Graph) -> list[str]:
    return [note for note in graph.notes if note.startswith("warning: ")]


def test_what_could_not_be_held_out_is_told_with_its_reason_and_cure() -> None:
    dense = [(f"e{n}", "dense", f"e{m}") for n in range(15) for m in range(15)]
    rare = [(f"e{n}", f"rare {n}", "e0") for n in range(9)]
    single = [("e1", "single", f"only {n}") for n in range(30)]
    graph = read_graph([*dense, *rare, *single])
    told = "\n".join(warnings(graph))
    assert "nothing of 9 relations with too few triples" in told and "and 4 more" in told and "--valid" in told
    assert "nothing of 1 relation with triples that train needs" in told and "'single'" in told
    assert "held out 44 of the 52 triples asked for" in "\n".join(graph.notes)
    assert all("train.txt, valid.txt and test.txt" in note for note in warnings(graph))
    assert warnings(read_graph(dense)) == []


def test_a_part_that_gets_nothing_is_a_warning() -> None:
    chain = [(f"a{n}", "r", f"b{n}") for n in range(40)]
    for rows, reason in ((chain, "train needs every triple"), (ROWS, "is not even one")):
        told = warnings(read_graph(rows))
        assert [note.split(":")[1].split()[0] for note in told] == ["valid", "test"]
        assert all(reason in note for note in told)
    assert warnings(read_graph(chain, valid=0, test=0)) == []


def test_a_relation_in_only_one_part_is_told() -> None:
    dense = [(f"e{n}", "dense", f"e{m}") for n in range(15) for m in range(15)]
    few = [("e0", "few", f"e{n}") for n in range(6)]  # a share of 0.3 is not quite two: one part gets nothing
    held = [read_graph([*dense, *few], valid=0.1, test=0.1, seed=seed) for seed in range(8)]
    for graph in held:
        relation = graph.relations.id("few")
        for part in ("valid", "test"):
            missing = not (graph.split(part)[:, 1] == relation).any()  # type: ignore[arg-type]
            named = [note for note in warnings(graph) if "'few'" in note and part in note.split(" has nothing")[0]]
            assert bool(named) == missing
