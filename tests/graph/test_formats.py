"""Every layout is read; every kind of bad input is named, and nothing foreign is raised."""

from __future__ import annotations

import gzip
from pathlib import Path

import polars as pl
import pytest
import zstandard

from relwalk.errors import BadLine, GraphError
from relwalk.graph.answers import SIDES
from relwalk.graph.formats import FORMATS
from relwalk.graph.formats.base import Journal, Options
from relwalk.graph.formats.named import TRIPLES
from relwalk.graph.formats.source import Source
from relwalk.graph.formats.table import _fast, read_table
from relwalk.graph.graph import Graph
from relwalk.graph.read import read_graph

TRIPLE = [("a", "r", "b")]
NT = "<x:a> <x:r> <x:b> .\n"


def put(folder: Path, files: dict[str, str | bytes]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def named(graph: Graph, part: str) -> list[tuple[str, str, str]]:
    entities, relations = graph.entities.names, graph.relations.names
    return [(entities[h], relations[r], entities[t]) for h, r, t in graph.parts()[part].tolist()]


def everything(graph: Graph) -> list[tuple[str, str, str]]:
    return sorted(named(graph, "train") + named(graph, "valid") + named(graph, "test"))


def noted(graph: Graph, text: str) -> bool:
    return any(text in note for note in graph.notes)


ROTATE = {"entities.dict": "1\ta\n0\tb\n", "relations.dict": "0\tr\n"}
OPENKE = {"entity2id.txt": "2\nb\t0\na\t1\n", "relation2id.txt": "1\nr\t0\n"}
LIBKGE = {"entity_ids.del": "0\tb\n1\ta\n", "relation_ids.del": "0\tr\n"}

LAYOUTS: dict[str, tuple[str, dict[str, str | bytes]]] = {
    "plain .txt": ("plain", {"train.txt": "a\tr\tb\n", "valid.txt": "b\tr\ta\n", "test.txt": "a\tr\ta\n"}),
    "plain .tsv, dev": ("plain", {"train.tsv": "a\tr\tb\n", "dev.tsv": "b\tr\ta\n", "test.tsv": "a\tr\ta"}),
    "plain, no suffix": ("plain", {"train": "a\tr\tb\n", "valid": "b\tr\ta\n", "test": "a\tr\ta\n"}),
    "plain, packed": ("plain", {"train.txt.gz": gzip.compress(b"a\tr\tb\n"), "dev.txt": "b\tr\ta", "test": "a\tr\ta"}),
    "rotate": ("rotate", {"train.txt": "a\tr\tb\n", "valid.txt": "b\tr\ta\n", "test.txt": "a\tr\ta\n", **ROTATE}),
    "openke, tabs": (
        "openke",
        {"train2id.txt": "1\n1\t0\t0\n", "valid2id.txt": "1\n0\t1\t0", "test2id.txt": "1\n1\t1\t0\n", **OPENKE},
    ),
    "openke, spaces": (
        "openke",
        {"train2id.txt": "1\r\n1 0 0\r\n", "valid2id.txt": "1\n0  1 0\n", "test2id.txt": "1\n1 1\t0\n", **OPENKE},
    ),
    "libkge": ("libkge", {"train.del": "1\t0\t0\n", "valid.del": "0\t0\t1\n", "test.del": "1\t0\t1\n", **LIBKGE}),
    "socher": (
        "socher",
        {"train.txt": "a\tr\tb\n", "dev.txt": "b\tr\ta\t1\na\tr\tb\t-1", "test.txt": "a\tr\ta\t1\r\nb\tr\tb\t-1\r\n"},
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_folder_layout_is_detected_and_read(layout: str, tmp_path: Path) -> None:
    format, files = LAYOUTS[layout]
    graph = read_graph(put(tmp_path / "g.1", files))
    assert [named(graph, part) for part in ("train", "valid", "test")] == [TRIPLE, [("b", "r", "a")], [("a", "r", "a")]]
    assert graph.name == "g.1" and noted(graph, f"read as {format}")
    if format == "socher":
        assert (named(graph, "valid_negatives"), named(graph, "test_negatives")) == (TRIPLE, [("b", "r", "b")])
    if format in ("rotate", "openke", "libkge"):
        assert graph.entities.names == ("b", "a")


def test_every_format_is_named_by_its_key() -> None:
    assert all(key == format.name and format.description for key, format in FORMATS.items())


def test_valid_and_test_are_optional_and_labels_are_read(tmp_path: Path) -> None:
    labels = {"labels.tsv": "b\tBee\nzzz\tunused\n", "relation_labels.tsv": "r\tis near\n"}
    graph = read_graph(put(tmp_path, {"train.txt": "a\tr\tb\n", **labels}))
    assert graph.entities.labels == (None, "Bee") and graph.relations.labels == ("is near",)
    assert len(graph.valid) == len(graph.test) == 0


def test_openke_extras(tmp_path: Path) -> None:
    files = LAYOUTS["openke, tabs"][1] | {
        "type_constrain.txt": "1\n0\t2\t1\t0\n0\t1\t1\n",
        "valid_neg.txt": "0\t1\t0\t1\n0\t0\t0\t-1\n",
        "test_neg.txt": "1 1 0 1\n1 0 0 -1\n",
        "entity2id.txt": "2\nb and c\t0\na\t1\n",
    }
    graph = read_graph(put(tmp_path, files))
    assert graph.entities.names == ("b and c", "a")
    assert graph.type_lists is not None
    assert [graph.type_lists[side][0].tolist() for side in SIDES] == [[0, 1], [1]]
    assert graph.valid_negatives is not None and graph.valid_negatives.tolist() == [[0, 0, 0]]
    assert graph.test_negatives is not None and graph.test_negatives.tolist() == [[1, 0, 0]]


SINGLE: dict[str, str] = {
    "g.tsv": "a\tr\tb\n",
    "g.txt": "tail\tHead\tRELATION\tyear\nb\ta\tr\t\nb\ta\tr\n",
    "g.csv": "a,r,b\n",
    "headed.csv": "x,Subject,predicate,object\n,a,r,b\n",
    "quoted.csv": '"from","rel","to"\r\n"a","r","b"\r\n',
    "blank.tsv": "\nhead\trelation\ttail\na\tr\tb\n",
    "short.tsv": "h\tr\tt\na\tr\tb\n",
    "g.nt": "<urn:relwalk:a> <urn:relwalk:r> <urn:relwalk:b> .\n",
    "g.ttl": "@prefix n: <urn:relwalk:> . n:a n:r n:b .\n",
}


@pytest.mark.parametrize("packing", ["", ".gz", ".zst"])
@pytest.mark.parametrize("name", SINGLE)
def test_single_files_packed_or_not(name: str, packing: str, tmp_path: Path) -> None:
    pack = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.compress}[packing]
    put(tmp_path, {name + packing: pack(SINGLE[name].encode())})
    graph = read_graph(tmp_path / (name + packing))
    assert everything(graph) == TRIPLE and graph.name == name.partition(".")[0]


@pytest.mark.parametrize("headings", [("s", "p", "o"), ("Head", "Relation", "Tail"), ("one", "two", "three")])
def test_parquet(headings: tuple[str, ...], tmp_path: Path) -> None:
    frame = pl.DataFrame([("a", "r", "b")], schema=list(headings), orient="row")
    frame.write_parquet(tmp_path / "g[1].parquet")
    (tmp_path / "g.parquet.gz").write_bytes(gzip.compress((tmp_path / "g[1].parquet").read_bytes()))
    for name in ("g[1].parquet", "g.parquet.gz"):
        assert everything(read_graph(tmp_path / name)) == TRIPLE


def test_rdf_literals_labels_and_blank_nodes(tmp_path: Path) -> None:
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    text = f'{NT}_:n <x:r> <x:a> .\n<x:a> <x:age> "7" .\n<x:a> {label} "eh"@fr .\n<x:a> {label} "ay"@en .\n'
    put(tmp_path, {"g.nt": text})
    graph = read_graph(tmp_path / "g.nt", valid=0, test=0)
    assert everything(graph) == [("_:n", "x:r", "x:a"), ("x:a", "x:r", "x:b")]
    assert graph.entities.label(graph.entities.id("x:a")) == "ay" and noted(graph, "left out 1 triples")


# What must remain a name, or be left out, in a file read by polars.

ODD_NAMES = [
    "NA",
    "null",
    "nan",
    "None",
    "007",
    "1e5",
    "#a",
    '"',
    'a"b',
    '"a"',
    " a ",
    "a\u2028b",
    "a\x85b",
    "é,;|",
]
ODD_NAMES += ["a\rb", "\x1a", "\x0b", "x" * 300_000, "\ufeffa"]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names_stay_as_they_are(name: str, tmp_path: Path) -> None:
    text = f"a\tr\tb\n{name}\t{name}\t{name}\n"
    graph = read_graph(put(tmp_path, {"train.txt": text}))
    assert named(graph, "train") == [*TRIPLE, (name, name, name)]
    with_blank = read_graph(put(tmp_path, {"train.txt": "\n" + text}))  # by way of the careful reading
    assert named(with_blank, "train") == named(graph, "train")


TWICE = [*TRIPLE, ("c", "r", "d")]
ODD_ENDS = {
    "crlf": b"a\tr\tb\r\nc\tr\td\r\n",
    "no last newline": b"a\tr\tb\nc\tr\td",
    "bom": b"\xef\xbb\xbfa\tr\tb\nc\tr\td\n",
    "blank between": b"a\tr\tb\n\n\nc\tr\td\n",
    "blank first": b"\n\r\na\tr\tb\nc\tr\td\n",
    "blank last": b"a\tr\tb\r\nc\tr\td\r\n\r\n\n",
    "spaces only": b"a\tr\tb\n   \nc\tr\td\n",
}


@pytest.mark.parametrize("case", ODD_ENDS)
@pytest.mark.parametrize("name", ["g.tsv", "g.csv", "g.tsv.zst"])
def test_line_ends_and_blank_lines(case: str, name: str, tmp_path: Path) -> None:
    data = ODD_ENDS[case].replace(b"\t", b"," if "csv" in name else b"\t")
    put(tmp_path, {name: zstandard.compress(data) if name.endswith("zst") else data})
    assert everything(read_graph(tmp_path / name)) == TWICE


def test_blank_lines_do_not_cost_the_fast_reading(tmp_path: Path) -> None:
    put(tmp_path, {"g": "a\tr\tb\n\nc\tr\td\n\n"})
    fast = _fast(Source(tmp_path / "g"), TRIPLES)
    assert fast is not None and fast.rows() == TWICE


# Bad lines: file, line, and what stands there.

BAD_FILES: dict[str, tuple[str, int, dict[str, str | bytes]]] = {
    "too few columns": ("train.txt", 2, {"train.txt": "a\tr\tb\na\tr\n"}),
    "too few, first line": ("train.txt", 1, {"train.txt": "a r b\n"}),
    "too many columns": ("train.txt", 4, {"train.txt": "\na\tr\tb\n\na\tr\tb\tc\na\tr\tb\n"}),
    "an empty column at the very end": ("train.txt", 2, {"train.txt": "a\tr\tb\na\tr\tb\t"}),
    "empty name": ("train.txt", 2, {"train.txt": "a\tr\tb\na\t\tb\n"}),
    "tabs alone": ("train.txt", 3, {"train.txt": "a\tr\tb\n\n\t\t\n"}),
    "bad utf-8": ("valid.txt", 2, {"train.txt": "a\tr\tb\n", "valid.txt": b"a\tr\tb\n\xff\tr\tb\n"}),
    "label": ("dev.txt", 2, {"train.txt": "a\tr\tb\n", "dev.txt": "a\tr\tb\t1\na\tr\tb\t2\n"}),
    "label file": ("labels.tsv", 1, {"train.txt": "a\tr\tb\n", "labels.tsv": "a\n"}),
    "rotate: not listed": ("train.txt", 2, {"train.txt": "a\tr\tb\na\tr\tc\n", **ROTATE}),
    "libkge: out of range": ("train.del", 2, {"train.del": "0\t0\t1\n0\t0\t2\n", **LIBKGE}),
    "libkge: negative": ("train.del", 1, {"train.del": "-1\t0\t1\n", **LIBKGE}),
    "libkge: huge": ("train.del", 1, {"train.del": "99999999999999999999\t0\t1\n", **LIBKGE}),
    "libkge: not a number": ("train.del", 1, {"train.del": "a\t0\t1\n", **LIBKGE}),
    "openke: out of range": ("train2id.txt", 3, {"train2id.txt": "2\n0 1 0\n0 1 1\n", **OPENKE}),
    "openke: negatives": (
        "test_neg.txt",
        1,
        {"train2id.txt": "1\n0 1 0\n", "test_neg.txt": "0 1 0 0\n", **OPENKE},
    ),
    "openke: types": (
        "type_constrain.txt",
        3,
        {"train2id.txt": "1\n0 1 0\n", "type_constrain.txt": "1\n0 1 1\n0 2 1\n", **OPENKE},
    ),
    "openke: types out of range": (
        "type_constrain.txt",
        2,
        {"train2id.txt": "1\n0 1 0\n", "type_constrain.txt": "1\n0 1 2\n0 0\n", **OPENKE},
    ),
    "csv quote": ("g.csv", 2, {"g.csv": 'a,r,"b"\na,"r"x,b\n'}),
    "csv lines in quotes": ("g.csv", 3, {"g.csv": 'a,r,"b\nb"\na,r\n'}),
    "csv utf-8": ("g.csv", 2, {"g.csv": b'a,r,"b"\n\xff,r,b\n'}),
    "csv columns": ("g.csv", 1, {"g.csv": "a,r\n"}),
    "tsv.gz": ("g.tsv.gz", 2, {"g.tsv.gz": gzip.compress(b"a\tr\tb\na\n")}),
    "tsv.zst utf-8": ("g.tsv.zst", 3, {"g.tsv.zst": zstandard.compress(b"a\tr\tb\n\n\xff\tr\tb\n")}),
    "nt": ("g.nt", 2, {"g.nt": NT + "<x:a> x <x:b> .\n"}),
    "ttl": ("g.ttl", 2, {"g.ttl": NT + "<x:a> x <x:b> .\n" + NT}),
}


def source(folder: Path, files: dict[str, str | bytes]) -> Path:
    """The folder, or its only file when that is a graph of its own."""
    put(folder, files)
    return folder / next(iter(files)) if next(iter(files)).startswith("g.") else folder


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_bad_line_is_named_or_skipped_and_noted(case: str, tmp_path: Path) -> None:
    name, line, files = BAD_FILES[case]
    path = source(tmp_path, files)
    with pytest.raises(BadLine) as caught:
        read_graph(path)
    assert (caught.value.path.name, caught.value.line) == (name, line)
    assert caught.value.found and caught.value.expected and caught.value.cure and len(str(caught.value)) < 600
    if name != "train.txt" or line > 1:
        try:
            assert noted(read_graph(path, on_bad_line="skip"), f"{name}: skipped 1 bad line at line {line}: found")
        except GraphError as error:  # nothing but bad lines
            assert "no good line" in str(error)


def test_skipped_lines_are_counted_and_the_first_is_told(tmp_path: Path) -> None:
    put(tmp_path, {"train.txt": b"a\tr\tb\nx\n\xff\nc\tr\td\n" + b"y" * 999})
    graph = read_graph(tmp_path, on_bad_line="skip")
    assert named(graph, "train") == TWICE
    assert noted(graph, "train.txt: skipped 3 bad lines, first at line 2: found 1 column: 'x'; expected 3 columns")


def test_blank_nodes_without_a_name_are_named_by_their_place(tmp_path: Path) -> None:
    drawn = "abcdef0123456789abcdef0123456789"  # written, though it looks as if the parser had drawn it
    text = f"<x:a> <x:r> [ <x:s> <x:b> ] , ( <x:c> ) , _:own, _:{drawn} .\n" + "# \n" * 5000 + f"_:{drawn} <x:r> [] .\n"
    put(tmp_path, {"g.ttl": text})
    graphs = [read_graph(tmp_path / "g.ttl", valid=0, test=0) for _ in range(2)]
    assert graphs[0].fingerprint == graphs[1].fingerprint
    blank = {name for name in graphs[0].entities.names if name.startswith("_:")}
    assert blank == {"_:[1]", "_:[2]", "_:[3]", "_:own", f"_:{drawn}"}
    assert {("_:[1]", "x:s", "x:b"), (f"_:{drawn}", "x:r", "_:[3]")} <= set(named(graphs[0], "train"))


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (NT + "<x:a> <x:r> x:" + "\0" * 2000 + "\n", 2, "more than 1,000 errors; expected subject"),
        (NT + "<x:a> x <x:b> .\n" * 100_001, 100_002, "100,001 errors and 1 triples up to here"),
    ],
    ids=["of a line", "of a file"],
)
def test_rdf_with_errors_beyond_measure_is_given_up(text: str, line: int, words: str, tmp_path: Path) -> None:
    put(tmp_path, {"g.ttl": text})
    with pytest.raises(BadLine, match=words) as caught:
        read_graph(tmp_path / "g.ttl", on_bad_line="skip")
    assert caught.value.line == line


@pytest.mark.parametrize(
    ("name", "long"),
    [
        ("g.ttl", "<x:" + "a" * (5 << 20) + ">"),
        ("g.nt", "<x:b>" + "a" * (5 << 20)),
        ("g.nt", '"' + "a b " * (5 << 20) + '"'),
    ],
    ids=["an iri", "a name that never ends", "a text with blanks"],
)
def test_an_rdf_term_of_megabytes_is_an_error_of_its_line(name: str, long: str, tmp_path: Path) -> None:
    put(tmp_path, {name: f"{NT}<x:a> <x:r> {long} .\n"})
    with pytest.raises(BadLine, match=r"a term of more than 4\.2 MB; expected shorter names") as caught:
        read_graph(tmp_path / name, on_bad_line="skip")
    assert caught.value.line == 2


@pytest.mark.parametrize("name", ["g.ttl.gz", "g.nt.gz"])
@pytest.mark.parametrize("what", [b"\n", b"a\tr\tb\n", b"# a remark\n"], ids=["blank", "a table", "remarks"])
def test_rdf_without_triples_for_megabytes_is_given_up(name: str, what: bytes, tmp_path: Path) -> None:
    put(tmp_path, {name: gzip.compress(NT.encode() + what * ((18 << 20) // len(what)), 1)})
    with pytest.raises(BadLine, match=r"16\.8 MB without a triple|errors"):
        read_graph(tmp_path / name, on_bad_line="skip")


STRUCTURAL: dict[str, tuple[str, dict[str, str | bytes]]] = {
    "empty train": ("train.txt: found no triples", {"train.txt": ""}),
    "no train": ("expected training triples", {"valid.txt": "a\tr\tb\n"}),
    "train twice": ("train.txt and train.tsv", {"train.txt": "a\tr\tb\n", "train.tsv": "a\tr\tb\n"}),
    "repeated id": ("relations.dict, line 2", {"train.txt": "a\tr\tb\n", **ROTATE, "relations.dict": "0\tr\n0\ts\n"}),
    "gap": ("relations.dict, line 3", {"train.txt": "a\tr\tb\n", **ROTATE, "relations.dict": "0\tr\n\n2\ts\n"}),
    "repeated name": ("entities.dict, line 2", {"train.txt": "a\tr\tb\n", **ROTATE, "entities.dict": "0\ta\n1\ta\n"}),
    "id is text": ("entity_ids.del, line 1", {"train.del": "0\t0\t0\n", **LIBKGE, "entity_ids.del": "a\t0\n"}),
    "no relation map": ("expected relation_ids.del", {"train.del": "0\t0\t0\n", "entity_ids.del": "0\ta\n"}),
    "no count": ("train2id.txt, line 1", {"train2id.txt": "0 1 0\n", **OPENKE}),
    "empty map": ("entity2id.txt, line 1", {"train2id.txt": "1\n0 1 0\n", **OPENKE, "entity2id.txt": ""}),
    "suffix": ("found the suffix '.xyz'", {"g.xyz": "a\tr\tb\n"}),
    "cut gzip": ("g.tsv.gz cannot be read", {"g.tsv.gz": gzip.compress(b"a\tr\tb\n" * 99)[:-9]}),
    "cut zstd": ("g.tsv.zst cannot be read", {"g.tsv.zst": zstandard.compress(b"a\tr\tb\n" * 99)[:-3]}),
    "cut zstd rdf": ("g.nt.zst cannot be read", {"g.nt.zst": zstandard.compress(NT.encode() * 99)[:-3]}),
    "cut gzip rdf": ("g.nt.gz cannot be read", {"g.nt.gz": gzip.compress(NT.encode() * 99)[:-9]}),
    "gzip with flags of no gzip": (
        "found the flags 0x80 in its header",
        {"g.tsv.gz": b"\x1f\x8b\x08\x80" + gzip.compress(b"a\tr\tb\n" * 99)[4:]},
    ),
    "no gzip": ("Drop .gz from its name", {"g.tsv.gz": "a\tr\tb\n"}),
    "no zstd": ("Drop .zst from its name", {"g.tsv.zst": "a\tr\tb\n"}),
    "corrupt parquet": ("g.parquet cannot be read", {"g.parquet": b"PAR1" + b"\x07" * 40 + b"PAR1"}),
    "parquet in zstd": ("unzstd", {"g.parquet.zst": zstandard.compress(b"PAR1")}),
    "open quote": ("g.csv, line 2: found a quote that is never closed", {"g.csv": 'a,r,b\na,r,"b\na,r,b\n'}),
    "only literals": ("g.nt: found no triples", {"g.nt": '<x:a> <x:r> "b" .\n'}),
}


@pytest.mark.parametrize("on_bad_line", ["error", "skip"])
@pytest.mark.parametrize("case", STRUCTURAL)
def test_structural_errors_are_never_skipped(case: str, on_bad_line: str, tmp_path: Path) -> None:
    message, files = STRUCTURAL[case]
    with pytest.raises(GraphError) as caught:
        read_graph(source(tmp_path, files), on_bad_line=on_bad_line)  # type: ignore[arg-type]
    assert message in str(caught.value)


@pytest.mark.parametrize("name", ["train2id.txt", "entity2id.txt"])
def test_a_wrong_count_is_an_error_or_a_note(name: str, tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {"train2id.txt": "1\n0 1 0\n", **OPENKE}
    files[name] = "7" + str(files[name])[1:]
    put(tmp_path, files)
    with pytest.raises(BadLine, match=f"{name}, line 1: found the count 7"):
        read_graph(tmp_path)
    assert noted(read_graph(tmp_path, on_bad_line="skip"), f"{name}: the first line counts 7 lines")


def test_bad_rows_of_parquet(tmp_path: Path) -> None:
    path = tmp_path / "g.parquet"
    pl.DataFrame({"s": ["a", None, ""], "p": ["r"] * 3, "o": ["b"] * 3}).write_parquet(path)
    with pytest.raises(GraphError, match="row 2: found"):
        read_graph(path)
    graph = read_graph(path, on_bad_line="skip")
    assert everything(graph) == TRIPLE and noted(graph, "skipped 2 bad rows")
    pl.DataFrame({"s": [1.5], "p": ["r"], "o": ["b"]}).write_parquet(path)
    with pytest.raises(GraphError, match="'s' holds Float64"):
        read_graph(path)


def test_a_path_with_wildcards_is_one_path(tmp_path: Path) -> None:
    put(tmp_path / "a*[b]?", {"train.txt": "a\tr\tb\n"})
    put(tmp_path / "axb?", {"train.txt": "c\tr\td\n"})
    assert named(read_graph(tmp_path / "a*[b]?"), "train") == TRIPLE


def test_the_careful_reading_takes_more_than_one_chunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relwalk.graph.formats.table.CHUNK", 2)
    put(tmp_path, {"g.tsv": "".join(f"{n}\tr\t{n}\n" for n in range(5)) + "bad\n"})
    frame = read_table(Source(tmp_path / "g.tsv"), TRIPLES, Journal(Options(on_bad_line="skip")))
    assert frame["head"].to_list() == list("01234")
