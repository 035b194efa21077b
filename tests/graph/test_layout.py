"""Columns and headings of text tables: found out, said, or asked about, never guessed in silence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from relwalk.errors import BadLine, GraphError
from relwalk.graph.formats.headings import parse_columns, triple_columns
from relwalk.graph.graph import Graph
from relwalk.graph.read import read_graph

ROWS = [("ann", "likes", "bob"), ("bob", "likes", "cid"), ("cid", "knows", "ann"), ("ann", "knows", "cid")]


def write(path: Path, rows: list[tuple[str, ...]], separator: str = "\t") -> Path:
    path.write_text("".join(separator.join(row) + "\n" for row in rows))
    return path


def triples(graph: Graph) -> set[tuple[str, str, str]]:
    entities, relations = graph.entities.names, graph.relations.names
    return {(entities[h], relations[r], entities[t]) for h, r, t in graph.triples.tolist()}


def notes(graph: Graph) -> str:
    return "\n".join(graph.notes)


EXTRA = {
    "weights": ["0.5", "1", "2e-3", "7"],
    "times": ["1999", "2003", "2010", "1984"],
    "dates": ["2014-01-02", "2014-02-03", "2015-12-31", "2016-01-01"],
    "words": ["a note", "", "b", "c"],
    "nothing": [""] * 4,
}


@pytest.mark.parametrize("name", ["g.tsv", "g.csv", "folder"])
@pytest.mark.parametrize("kind", EXTRA)
def test_a_fourth_column_without_heading_is_left_out_and_told(kind: str, name: str, tmp_path: Path) -> None:
    rows = [(*row, extra) for row, extra in zip(ROWS, EXTRA[kind], strict=True)]
    path = write(tmp_path / ("train.txt" if name == "folder" else name), rows, "," if name == "g.csv" else "\t")
    graph = read_graph(tmp_path if name == "folder" else path)
    assert triples(graph) == set(ROWS)
    assert "left out column 4" in notes(graph) and "--columns head,relation,tail,_" in notes(graph)
    looks = {"weights": "weights", "times": "times", "dates": "times"}.get(kind)
    assert ("looks like" in notes(graph)) == (looks is not None) and (looks or "") in notes(graph)


@pytest.mark.parametrize("columns", ["subject,predicate,object,_", "h, r, t, _", ["head", "relation", "tail", "_"]])
def test_columns_can_be_said(columns: str | list[str], tmp_path: Path) -> None:
    path = write(tmp_path / "g.tsv", [(*row, "1") for row in ROWS])
    graph = read_graph(path, columns=columns)
    assert triples(graph) == set(ROWS) and "left out" not in notes(graph)


def test_columns_in_another_order_of_every_kind_of_table(tmp_path: Path) -> None:
    rows = [(str(n), t, h, "x", r) for n, (h, r, t) in enumerate(ROWS)]
    columns = "_,object,subject,_,predicate"
    for path in (write(tmp_path / "g.tsv", rows), write(tmp_path / "g.csv", rows, ",")):
        assert triples(read_graph(path, columns=columns)) == set(ROWS)
    frame = pl.DataFrame(rows, schema=list("abcde"), orient="row")
    frame.write_parquet(tmp_path / "g.parquet")
    assert triples(read_graph(tmp_path / "g.parquet", columns=columns)) == set(ROWS)
    for data in (frame, rows, np.array(rows), frame.to_pandas()):
        assert triples(read_graph(data, columns=columns)) == set(ROWS)
    with pytest.raises(GraphError, match=r"row 1: .*--columns"):
        read_graph(rows)
    numbers = np.array([[9, 1, 2, 0], [9, 2, 3, 0]])
    assert triples(read_graph(numbers, columns="_,head,tail,relation")) == {("1", "0", "2"), ("2", "0", "3")}
    with pytest.raises(GraphError, match="--columns"):
        read_graph(frame)
    with pytest.raises(GraphError, match="5 columns"):
        read_graph(frame, columns="head,relation,tail")


@pytest.mark.parametrize("columns", ["head,relation", "head,head,relation,tail", "head,relation,tail,when", "", ["x"]])
def test_columns_that_say_nothing(columns: str | list[str]) -> None:
    with pytest.raises(GraphError, match="head, relation"):
        parse_columns(columns)


@pytest.mark.parametrize("on_bad_line", ["error", "skip"])
@pytest.mark.parametrize("columns", ["head,relation,tail", "head,relation,tail,_,_"])
def test_skipping_is_no_cure_for_a_fault_of_every_line(columns: str, on_bad_line: str, tmp_path: Path) -> None:
    path = write(tmp_path / "g.tsv", [(*row, "0.5", "x", "y") for row in ROWS])
    with pytest.raises(GraphError) as caught:
        read_graph(path, columns=columns, on_bad_line=on_bad_line)  # type: ignore[arg-type]
    assert "--columns" in str(caught.value) and "--on-bad-line" not in str(caught.value)
    if on_bad_line == "error":
        assert "each of its first 4 lines" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "cure"),
    [
        ("g.tsv", "a,r,b\nc,r,d\n", "--format csv"),
        ("g.csv", "a\tr\tb\nc\tr\td\n", "--format tsv"),
        ("g.tsv", "a r b\nc r d\n", "by tabs"),
        ("train.del", "0\t0\t1\t5\n0\t0\t0\t5\n", "--format"),
    ],
)
def test_another_separator_in_every_line(name: str, text: str, cure: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    (tmp_path / "entity_ids.del").write_text("0\ta\n1\tb\n")
    (tmp_path / "relation_ids.del").write_text("0\tr\n")
    with pytest.raises(BadLine) as caught:
        read_graph(tmp_path if name == "train.del" else tmp_path / name)
    assert cure in caught.value.cure and "skip" not in caught.value.cure and caught.value.line == 1


def test_one_line_of_another_shape_is_still_that_lines_fault(tmp_path: Path) -> None:
    path = write(tmp_path / "g.tsv", [*ROWS[:2], (*ROWS[2], "x"), ROWS[3]])
    with pytest.raises(BadLine, match=r"line 3: found 4 columns: .*--on-bad-line skip"):
        read_graph(path)


UNCLEAR = {
    "an index in front": [(str(n), *row) for n, row in enumerate(ROWS)],
    "labels": [(*row, label) for row, label in zip(ROWS, ("1", "-1", "1", "1"), strict=True)],
    "zeros and ones": [(*row, label) for row, label in zip(ROWS, ("1", "0", "1", "1"), strict=True)],
    "labels, so far all true": [(*row, "1") for row in ROWS],
    "two names for the head": [
        ("source_id", "source_name", "edge", "target_id"),
        *((h, h.upper(), r, t) for h, r, t in ROWS),
    ],
}


@pytest.mark.parametrize("case", UNCLEAR)
def test_what_is_unclear_is_asked(case: str, tmp_path: Path) -> None:
    path = write(tmp_path / "g.tsv", UNCLEAR[case])
    with pytest.raises(BadLine, match=r"line 1: .*--columns head,relation,tail,_"):
        read_graph(path)


def test_extra_columns_may_be_missing_at_the_end_of_a_line(tmp_path: Path) -> None:
    path = write(tmp_path / "g.tsv", [(*ROWS[0], "0.5"), (*ROWS[1], "0.25"), (*ROWS[2], "7.5"), ROWS[3]])
    assert triples(read_graph(path)) == set(ROWS)


# Headings.

HEADINGS = [
    ("source", "target", "weight", "relationship"),
    ("Src", "Dst", "w", "Rel"),
    ("from", "to", "x", "edge"),
    ("Source", "Target", "Type", "Label"),
    ("head", "tail", "when", "predicate"),
]


@pytest.mark.parametrize("headings", HEADINGS)
def test_known_headings_in_any_order(headings: tuple[str, ...], tmp_path: Path) -> None:
    assert triple_columns(headings) == (0, 3, 1)
    graph = read_graph(write(tmp_path / "g.csv", [headings, *((h, t, "0.5", r) for h, r, t in ROWS)], ","))
    assert triples(graph) == set(ROWS)
    assert f"left out {headings[2]} (looks like weights" in notes(graph)


def test_known_headings_keep_to_the_pair_that_is_meant() -> None:
    assert triple_columns(("source", "subject", "predicate", "object")) == (1, 2, 3)


GUESSED = [
    ("from_node", "edge", "to_node"),
    ("subject_id", "predicate_id", "object_id"),
    ("node1", "linkType", "node2"),
    (":START_ID", ":TYPE", ":END_ID"),
]


@pytest.mark.parametrize("headings", GUESSED)
@pytest.mark.parametrize("separator", ["\t", ","])
def test_headings_of_unknown_names_are_recognised_and_told(
    headings: tuple[str, ...], separator: str, tmp_path: Path
) -> None:
    path = write(tmp_path / ("g.csv" if separator == "," else "g.tsv"), [headings, *ROWS], separator)
    graph = read_graph(path)
    assert triples(graph) == set(ROWS)
    assert "took the first line for headings" in notes(graph)
    assert "--no-header" in notes(graph) and "--columns head,relation,tail" in notes(graph)
    assert triples(read_graph(path, header=False)) == {*ROWS, headings}


def test_headings_give_the_order_of_the_columns(tmp_path: Path) -> None:
    path = write(tmp_path / "g.tsv", [("edge", "to_node", "from_node"), *((r, t, h) for h, r, t in ROWS)])
    assert triples(read_graph(path)) == set(ROWS)


def test_words_above_numbers_are_headings(tmp_path: Path) -> None:
    rows = [
        ("person", "does", "whom", "since"),
        *((*row, year) for row, year in zip(ROWS, EXTRA["times"], strict=True)),
    ]
    graph = read_graph(write(tmp_path / "g.tsv", rows))
    assert triples(graph) == set(ROWS) and "left out since (looks like times" in notes(graph)


def test_names_that_occur_again_are_no_headings(tmp_path: Path) -> None:
    """A graph about graphs: its first triple reads like headings."""
    rows = [("from_node", "edge", "to_node"), ("to_node", "edge", "from_node"), ("edge", "kind", "to_node"), ("bad",)]
    path = write(tmp_path / "g.tsv", rows)
    graph = read_graph(path, on_bad_line="skip")
    assert triples(graph) == set(rows[:3]) and "for headings" not in notes(graph)
    assert "skipped 1 bad line at line 4" in notes(graph)


def test_a_single_line_is_no_headings(tmp_path: Path) -> None:
    assert triples(read_graph(write(tmp_path / "g.tsv", [GUESSED[0]]))) == {GUESSED[0]}


def test_a_first_line_that_stands_alone_is_a_triple_and_told(tmp_path: Path) -> None:
    rows = [(f"p{n}", "does", f"p{n + 1}") for n in range(12)]
    path = write(tmp_path / "g.tsv", [("person", "verb", "whom"), *rows])
    graph = read_graph(path)
    assert ("person", "verb", "whom") in triples(graph) and "--header" in notes(graph)
    assert triples(read_graph(path, header=True)) == set(rows)
    assert "--header" not in notes(read_graph(path, header=False))


def test_headings_in_a_folder(tmp_path: Path) -> None:
    write(tmp_path / "train.txt", [("head", "relation", "tail"), *ROWS])
    write(tmp_path / "test.txt", [("head", "relation", "tail"), ROWS[0]])
    graph = read_graph(tmp_path)
    assert (len(graph.train), len(graph.test), len(graph.entities)) == (4, 1, 3)


def test_an_option_that_would_do_nothing_is_refused(tmp_path: Path) -> None:
    (tmp_path / "g.nt").write_text("<x:a> <x:r> <x:b> .\n")
    with pytest.raises(GraphError, match="read as nt, takes no columns"):
        read_graph(tmp_path / "g.nt", columns="head,relation,tail")
    pl.DataFrame(ROWS, schema=["h", "r", "t"], orient="row").write_parquet(tmp_path / "g.parquet")
    with pytest.raises(GraphError, match="takes no header"):
        read_graph(tmp_path / "g.parquet", header=True)
    with pytest.raises(GraphError, match="takes no header"):
        read_graph(ROWS, header=False)
