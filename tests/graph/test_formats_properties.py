"""Properties of the readers: two readings that agree, and arbitrary bytes that raise nothing foreign."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from relwalk.errors import GraphError, RelWalkError
from relwalk.graph.formats.base import Journal
from relwalk.graph.formats.columns import Ids, Ignored, KnownNames, Labels, Names
from relwalk.graph.formats.named import TRIPLES
from relwalk.graph.formats.openke import NAME_AND_ID
from relwalk.graph.formats.source import Source
from relwalk.graph.formats.table import Table, _careful, _fast
from relwalk.graph.read import read_graph

quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
MARKS = [b"a", b"\t", b"\t", b"\n", b"\n", b"\r\n", b"\r", b" ", b'"', b",", b"0", b"1", b"-1", b"+", b"\xff", b"\0"]
MARKS += [
    b"\xef\xbb\xbf",
    b"<x:a> ",
    b". ",
    b"a\tr\tb\n",
    b"0\t1\t0\n",
    b"a,r,b\n",
    b"from_node\tedge\tto_node\t1\n",
    b"head,",
    "\u2028".encode(),
]
pieces = st.lists(st.sampled_from(MARKS), max_size=14).map(b"".join)
IDS = (Ids("head", 2), Ids("tail", 2), Ids("relation", 1))
TABLES = {
    "plain": Table(TRIPLES.columns),
    "csv": Table(TRIPLES.columns, ","),
    "csv with more": Table((Names("head"), Ignored("more"), Names("tail"), Ignored("rest")), ","),
    "socher": Table((*TRIPLES.columns, Labels())),
    "rotate": Table((KnownNames("name", ["a", "0"], "a list"), Names("tail"))),
    "libkge": Table(IDS),
    "openke": Table(IDS, "space", header=True),
    "openke negatives": Table((*IDS, Labels()), "space"),
    "openke map": NAME_AND_ID,
}


@pytest.mark.parametrize("name", TABLES)
@quick
@given(data=pieces, header=st.booleans())
def test_the_fast_reading_agrees_with_the_careful_one(name: str, tmp_path: Path, data: bytes, header: bool) -> None:
    table = replace(TABLES[name], header=header)
    path = tmp_path / "file"
    path.write_bytes(data)
    try:
        fast = _fast(Source(path), table)
    except GraphError:  # UTF-16 or the like
        return
    if fast is not None:
        assert fast.rows() == _careful(Source(path), table, Journal()).rows()


PLAIN = dict.fromkeys(("train.txt", "valid.txt", "test.txt", "labels.tsv"), b"")
FOLDERS: list[dict[str, bytes]] = [
    PLAIN | {"train.txt": b"a\tr\tb\n"},
    PLAIN | {"train.txt": b"a\tr\tb\n", "test.txt": b"a\tr\tb\t1\n"},
    PLAIN | {"train.txt": b"a\tr\tb\n", "entities.dict": b"0\ta\n1\tb\n", "relations.dict": b"0\tr\n"},
    {"train.del": b"0\t0\t1\n", "test.del": b"", "entity_ids.del": b"0\ta\n1\tb\n", "relation_ids.del": b"0\tr\n"},
    {"train2id.txt": b"1\n0 1 0\n", "entity2id.txt": b"2\na\t0\nb\t1\n", "relation2id.txt": b"1\nr\t0\n"}
    | {"type_constrain.txt": b"1\n0\t0\n0\t0\n", "valid_neg.txt": b""},
]
SINGLE = [name + packed for name in ("g.tsv", "g.csv", "g.nt", "g.ttl", "g.parquet") for packed in ("", ".gz", ".zst")]
TARGETS = [(files, name) for files in FOLDERS for name in files] + [({}, name) for name in SINGLE]


@settings(quick, max_examples=400)
@given(
    target=st.sampled_from(TARGETS),
    data=pieces | st.binary(max_size=40),
    pack=st.booleans(),
    on_bad_line=st.sampled_from(["error", "skip"]),
    header=st.sampled_from([None, True, False]),
    columns=st.sampled_from([None, "head,relation,tail", "_,tail,relation,head,_"]),
)
def test_arbitrary_bytes_give_a_graph_or_a_relwalk_error(
    tmp_path_factory: pytest.TempPathFactory,
    target: tuple[dict[str, bytes], str],
    data: bytes,
    pack: bool,
    on_bad_line: str,
    header: bool | None,
    columns: str | None,
) -> None:
    files, name = target
    if pack and name.endswith(".gz"):
        data = gzip.compress(data)
    if pack and name.endswith(".zst"):
        data = zstandard.compress(data)
    folder = tmp_path_factory.mktemp("g")
    for file, content in (files | {name: data}).items():
        (folder / file).write_bytes(content)
    try:
        source = folder if files else folder / name
        assert len(read_graph(source, on_bad_line=on_bad_line, header=header, columns=columns).train) > 0  # type: ignore[arg-type]
    except RelWalkError as error:
        assert str(error)
