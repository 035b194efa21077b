"""Packed files within a limit, pipes, encodings, and what stands where a file should be."""

from __future__ import annotations

import gzip
import os
import time
import tracemalloc
from contextlib import suppress
from pathlib import Path
from threading import Thread

import polars as pl
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from relwalk.errors import BadLine, GraphError
from relwalk.graph.formats import limits, pipe, source, zstd
from relwalk.graph.formats.limits import parse_size
from relwalk.graph.graph import Graph
from relwalk.graph.read import read_graph

LINES = b"a\tr\tb\nb\tr\tc\n"
NT = b"<x:a> <x:r> <x:b> .\n"
FOUND = {("a", "r", "b"), ("b", "r", "c")}


def triples(graph: Graph) -> set[tuple[str, str, str]]:
    entities, relations = graph.entities.names, graph.relations.names
    return {(entities[h], relations[r], entities[t]) for h, r, t in graph.triples.tolist()}


# Limits.


def zst_bomb(blocks: int) -> bytes:
    """A frame of runs of one byte: each block of four bytes unpacks to 128 KiB."""
    header = zstd.MAGIC + bytes([0, 0b01011000])  # no content size, a window of 2 MiB
    block = (128 << 10) << 3 | 1 << 1
    last = block | 1
    return header + (block.to_bytes(3, "little") + b"a") * (blocks - 1) + last.to_bytes(3, "little") + b"a"


def test_the_bomb_of_these_tests_explodes(tmp_path: Path) -> None:
    with zstandard.ZstdDecompressor().stream_reader(zst_bomb(4)) as file:
        assert len(file.read()) == 4 * (128 << 10)


@pytest.mark.parametrize("name", ["g.tsv.zst", "g.csv.zst", "g.nt.zst", "train.txt.zst"])
def test_a_small_zst_that_unpacks_to_gigabytes_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(zst_bomb(50_000))  # 200 KB, 6.5 GB
    tracemalloc.start()
    with pytest.raises(GraphError, match=r"found more than .*--max-unpacked 16GB"):
        read_graph(tmp_path if name.startswith("train") else tmp_path / name)
    assert tracemalloc.get_traced_memory()[1] < 10e6
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("name", "line"),
    [
        *(
            (name, line)
            for name in ("g.tsv.gz", "g.csv.gz", "train.txt.gz")
            for line in (b"a" * 99 + b"\n", b"a" * 100)
        ),
        ("g.parquet.gz", b"PAR1" * 25),
        ("g.nt.gz", b"#" + b"a" * 98 + b"\n"),
    ],
)
def test_unpacking_stops_at_the_limit(name: str, line: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LEAST", 1 << 20)
    (tmp_path / name).write_bytes(gzip.compress(line * 500_000))  # 50 MB in less than 200 KB: at most 20 MB
    tracemalloc.start()
    with pytest.raises(GraphError, match=r"found more than .*--max-unpacked 16GB"):
        read_graph(tmp_path if name.startswith("train") else tmp_path / name, on_bad_line="skip")
    assert tracemalloc.get_traced_memory()[1] < 45e6
    tracemalloc.stop()


@pytest.mark.parametrize(("name", "pack"), [("g.tsv.gz", gzip.compress), ("g.tsv.zst", zstandard.compress)])
def test_the_limit_can_be_raised_and_lowered(name: str, pack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LEAST", 1000)
    path = tmp_path / name
    path.write_bytes(pack(LINES + b"a\tr\tb\n" * 200_000))
    with pytest.raises(GraphError, match="--max-unpacked"):
        read_graph(path)
    assert triples(read_graph(path, max_unpacked="2MB")) == FOUND
    assert triples(read_graph(path, max_unpacked=2_000_000)) == FOUND
    with pytest.raises(GraphError, match=r"more than 1.0 MB .*--max-unpacked"):
        read_graph(path, max_unpacked="1MB")


def test_a_packed_file_may_be_a_hundred_times_its_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LEAST", 1)
    path = tmp_path / "g.tsv.gz"
    path.write_bytes(gzip.compress(b"".join(b"e%d\tr\te%d\n" % (n, n * 7919 % 1009) for n in range(1009))))
    assert len(read_graph(path).triples) == 1009


@pytest.mark.parametrize(
    ("text", "size"), [("16GB", 16 * 10**9), ("1.5 MiB", 3 << 19), ("7", 7), ("2k", 2000), (12, 12), ("1tb", 10**12)]
)
def test_sizes(text: str | int, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "lots", "-1", "0", "1XB", "GB", "1e3"])
def test_sizes_that_are_none(text: str) -> None:
    with pytest.raises(GraphError, match="16GB"):
        parse_size(text)


@settings(max_examples=60, deadline=None)
@given(
    parts=st.lists(st.tuples(st.binary(max_size=300), st.integers(1, 3000)), min_size=1, max_size=3),
    level=st.sampled_from([-5, 1, 3, 19]),
    sized=st.booleans(),
    checksum=st.booleans(),
)
def test_no_zst_unpacks_to_more_than_its_headers_allow(
    tmp_path_factory: pytest.TempPathFactory, parts: list[tuple[bytes, int]], level: int, sized: bool, checksum: bool
) -> None:
    packer = zstandard.ZstdCompressor(level=level, write_content_size=sized, write_checksum=checksum)
    path = tmp_path_factory.mktemp("z") / "f.zst"
    path.write_bytes(b"".join(packer.compress(piece * times) for piece, times in parts))
    size = sum(len(piece) * times for piece, times in parts)
    assert size == 0 or zstd.exceeds(path, size - 1)
    assert not zstd.exceeds(path, size + len(parts) * zstd.LARGEST_BLOCK)


def test_a_parquet_file_that_announces_too_many_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LEAST", 1)
    path = tmp_path / "g.parquet"
    pl.DataFrame({"h": ["a"] * 99_000, "r": ["r"] * 99_000, "t": ["b"] * 99_000}).write_parquet(path)
    with pytest.raises(GraphError, match=r"99,000 rows .*--max-unpacked"):
        read_graph(path)
    assert triples(read_graph(path, max_unpacked="10MB")) == {("a", "r", "b")}


# Pipes.


def fed(path: Path, data: bytes) -> Path:
    os.mkfifo(path)

    def feed() -> None:
        with suppress(BrokenPipeError):
            path.write_bytes(data)

    Thread(target=feed, daemon=True).start()
    return path


@pytest.mark.parametrize(
    ("format", "data", "found"),
    [
        ("tsv", LINES, FOUND),
        ("tsv", b"from_node\tedge\tto_node\n" + LINES + b"\n", FOUND),
        ("csv", b'"a",r,b\nb,r,c\n', FOUND),
        ("nt", NT, {("x:a", "x:r", "x:b")}),
    ],
)
def test_a_pipe_is_read_once(format: str, data: bytes, found: set, tmp_path: Path) -> None:
    graph = read_graph(fed(tmp_path / "63", data), format=format)
    assert triples(graph) == found and graph.name == "pipe"


def test_a_pipe_of_parquet(tmp_path: Path) -> None:
    pl.DataFrame({"h": ["a", "b"], "r": ["r", "r"], "t": ["b", "c"]}).write_parquet(tmp_path / "g.parquet")
    path = fed(tmp_path / "63", (tmp_path / "g.parquet").read_bytes())
    assert triples(read_graph(path, format="parquet")) == FOUND


def test_a_pipe_without_a_writer_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipe, "PATIENCE", 0.1)
    os.mkfifo(tmp_path / "g.tsv")
    with pytest.raises(GraphError, match="a pipe that nobody writes to"):
        read_graph(tmp_path / "g.tsv", format="tsv")


def test_a_writer_may_take_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipe, "PATIENCE", 1.0)
    path = tmp_path / "63"
    os.mkfifo(path)

    def feed() -> None:
        with path.open("wb", buffering=0) as file:
            time.sleep(1.5)
            for part in (LINES[:3], LINES[3:], LINES * 5000):
                file.write(part)

    Thread(target=feed, daemon=True).start()
    graph = read_graph(path, format="tsv")
    assert triples(graph) == FOUND and "dropped 10,000" in " ".join(graph.notes)


def test_errors_of_a_pipe_name_it(tmp_path: Path) -> None:
    with pytest.raises(BadLine, match="p1, line 2: found 2 columns"):
        read_graph(fed(tmp_path / "p1", b"a\tr\tb\nx\ty\n"), format="tsv")
    with pytest.raises(GraphError, match="--format tsv"):
        read_graph(fed(tmp_path / "p2", LINES))
    with pytest.raises(GraphError, match="found a gzip file"):
        read_graph(fed(tmp_path / "p3", gzip.compress(LINES)), format="tsv")
    with pytest.raises(GraphError, match=r"more than 1.0 KB"):
        read_graph(fed(tmp_path / "p4", LINES * 10_000), format="tsv", max_unpacked="1KB")


def test_a_device_is_refused_before_it_is_read() -> None:
    with pytest.raises(GraphError, match="/dev/zero: found a device"):
        read_graph("/dev/zero", format="tsv")


# Encodings.


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("name", ["g.tsv", "g.csv", "g.tsv.gz", "g.tsv.zst", "g.nt", "train.txt", "entities.dict"])
def test_wide_text_is_refused_by_name(encoding: str, name: str, tmp_path: Path) -> None:
    text = {"g.csv": b"a,r,b\n", "g.nt": NT, "entities.dict": b"0\ta\n1\tb\n"}.get(name, LINES).decode()
    data = text.encode(encoding)
    pack = {".gz": gzip.compress, ".zst": zstandard.compress}.get(Path(name).suffix, bytes)
    if name == "entities.dict":
        (tmp_path / "train.txt").write_bytes(LINES)
        (tmp_path / "relations.dict").write_text("0\tr\n")
    (tmp_path / name).write_bytes(pack(data))
    source = tmp_path / name if name.startswith("g.") else tmp_path
    for on_bad_line in ("error", "skip"):
        with pytest.raises(GraphError, match=rf"{name}: found {encoding.upper()[:6]}.*iconv"):
            read_graph(source, on_bad_line=on_bad_line)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["g.tsv", "g.tsv.gz", "g.tsv.zst", "g.csv", "quoted.csv"])
def test_a_nul_is_no_part_of_a_name(name: str, tmp_path: Path) -> None:
    data = LINES + b"c\tr\td\0e\n" + b"d\tr\te\n"
    data = data.replace(b"\t", b",") if ".csv" in name else data
    data = data + b'"e",r,f\n' if name == "quoted.csv" else data
    pack = {".gz": gzip.compress, ".zst": zstandard.compress}.get(Path(name).suffix, bytes)
    (tmp_path / name).write_bytes(pack(data))
    with pytest.raises(BadLine, match=r"line 3: .*NUL"):
        read_graph(tmp_path / name)
    graph = read_graph(tmp_path / name, on_bad_line="skip")
    assert triples(graph) > FOUND and not any("\0" in entity for entity in graph.entities)


def test_a_nul_in_memory_is_refused() -> None:
    with pytest.raises(GraphError, match="NUL"):
        read_graph([("a", "r", "b\0")])


def test_packed_bytes_without_the_suffix_are_told(tmp_path: Path) -> None:
    (tmp_path / "g.tsv").write_bytes(gzip.compress(LINES))
    with pytest.raises(GraphError, match=r"Add \.gz to its name"):
        read_graph(tmp_path / "g.tsv")


# What stands where a file should be.

ROTATE = {"train.txt": LINES, "entities.dict": b"0\ta\n1\tb\n2\tc\n", "relations.dict": b"0\tr\n"}
OPENKE = {"train2id.txt": b"1\n0 1 0\n", "entity2id.txt": b"2\na\t0\nb\t1\n", "relation2id.txt": b"1\nr\t0\n"}
LIBKGE = {"train.del": b"0\t0\t1\n", "entity_ids.del": b"0\ta\n1\tb\n", "relation_ids.del": b"0\tr\n"}


@pytest.mark.parametrize(("format", "files"), [("rotate", ROTATE), ("openke", OPENKE), ("libkge", LIBKGE)])
@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".zst", zstandard.compress)])
def test_id_maps_may_be_packed(format: str, files: dict[str, bytes], suffix: str, pack, tmp_path: Path) -> None:
    for name, content in files.items():
        (tmp_path / (name + suffix)).write_bytes(pack(content))
    graph = read_graph(tmp_path)
    assert graph.notes[0].startswith(f"read as {format}") and graph.entities.names[:2] == ("a", "b")


@pytest.mark.parametrize("name", ["valid.txt", "test.tsv", "labels.tsv", "entities.dict", "valid.txt.gz"])
@pytest.mark.parametrize("kind", ["folder", "link", "pipe"])
def test_what_is_no_file_does_not_count_as_absent(name: str, kind: str, tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_bytes(LINES)
    (tmp_path / "relations.dict").write_text("0\tr\n")
    path = tmp_path / name
    {"folder": path.mkdir, "link": lambda: path.symlink_to("nowhere"), "pipe": lambda: os.mkfifo(path)}[kind]()
    with pytest.raises(GraphError, match=f"{name}: found .*expected a file"):
        read_graph(tmp_path)


def test_a_folder_without_suffix_is_no_part(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_bytes(LINES)
    (tmp_path / "test").mkdir()
    assert len(read_graph(tmp_path).test) == 0


# Socher's folders.


@pytest.mark.parametrize("place", [0, 5, 9])
def test_one_line_with_a_label_makes_no_labelled_folder(place: int, tmp_path: Path) -> None:
    rows = [f"a\tr\tb{n}" for n in range(10)]
    rows[place] += "\t1"
    (tmp_path / "train.txt").write_bytes(LINES)
    (tmp_path / "valid.txt").write_text("\n".join(rows))
    with pytest.raises(BadLine, match=f"valid.txt, line {place + 1}: found 4 columns"):
        read_graph(tmp_path)
    graph = read_graph(tmp_path, on_bad_line="skip")
    assert graph.notes[0].startswith("read as plain") and len(graph.valid) == 9


@pytest.mark.parametrize("place", [0, 5, 9])
def test_one_line_without_a_label_leaves_a_labelled_folder(place: int, tmp_path: Path) -> None:
    rows = [f"a\tr\tb{n}\t{n % 2 * 2 - 1}" for n in range(10)]
    rows[place] = "a\tr\tb"
    (tmp_path / "train.txt").write_bytes(LINES)
    (tmp_path / "dev.txt").write_text("\n".join(rows))
    with pytest.raises(BadLine, match=f"dev.txt, line {place + 1}: found 3 columns"):
        read_graph(tmp_path)
    assert read_graph(tmp_path, on_bad_line="skip").notes[0].startswith("read as socher")


def test_a_column_of_times_makes_no_labelled_folder(tmp_path: Path) -> None:
    for part in ("train", "valid", "test"):
        (tmp_path / f"{part}.txt").write_text("".join(f"a\tr\tb{n}\t2014-01-0{n}\n" for n in range(1, 9)))
    graph = read_graph(tmp_path)
    assert graph.notes[0].startswith("read as plain") and sum("looks like times" in note for note in graph.notes) == 3


@pytest.mark.parametrize("chunk", [4, 5, 6, 7, 1 << 22])
def test_a_name_keeps_a_return_at_its_end(chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only CR LF ends a line: what polars would cut off belongs to the name, also where it reads in chunks."""
    monkeypatch.setattr(source, "CHUNK", chunk)
    path = tmp_path / "g.tsv"
    path.write_bytes(b"a\tr\tb\r\n\r\n\n \nc\r\tr\td\ne\tr\tf")
    assert set(read_graph(path, valid=0, test=0).entities.names) == {"a", "b", "c\r", "d", "e", "f"}


@pytest.mark.parametrize("name", ["g.tsv", "g.tsv.gz", "g.tsv.zst"])
def test_a_line_loses_one_cr_however_it_is_packed(name: str, tmp_path: Path) -> None:
    data = b"a\tr\tb\r\r\nc\tr\td\r\ne\tr\tf\n"
    pack = {".gz": gzip.compress, ".zst": zstandard.compress}.get(Path(name).suffix, bytes)
    (tmp_path / name).write_bytes(pack(data))
    assert set(read_graph(tmp_path / name).entities.names) == {"a", "b\r", "c", "d", "e", "f"}
