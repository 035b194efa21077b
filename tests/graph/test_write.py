"""Every writer: what is written is read back, nothing is overwritten, nothing half-written stays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relwalk.errors import GraphError, RefusedOverwrite, UnknownChoice
from relwalk.graph.answers import SIDES
from relwalk.graph.formats import FORMATS, detect
from relwalk.graph.formats.rdf_parser import from_iri, to_iri
from relwalk.graph.graph import Graph
from relwalk.graph.read import read_graph
from relwalk.graph.vocabulary import Vocabulary
from relwalk.graph.write import OWNED, WRITERS, write_graph

NAMES = ("http://x.org/é?q#f", "a b", '"q"', "%41", "_:b0", "007", "NA", "urn:relwalk:z", "#", " s ", "a,b")


def triples(*rows: tuple[int, int, int]) -> np.ndarray:
    return np.array(rows, np.int32).reshape(-1, 3)


def make(names: tuple[str, ...] = NAMES, negatives: bool = True) -> Graph:
    return Graph(
        name="g",
        entities=Vocabulary("entity", names, ("Label é", None, *names[2:])),
        relations=Vocabulary("relation", ("r", "is near", "unused"), (None, "close to", None)),
        train=triples(*((i, i % 2, (i + 1) % len(names)) for i in range(len(names)))),
        valid=triples((0, 1, 2), (2, 1, 0)),
        test=triples((1, 1, 1)),
        valid_negatives=triples((0, 0, 0)) if negatives else None,
        test_negatives=triples((1, 0, 0), (2, 0, 0)) if negatives else None,
    )


def named(graph: Graph, part: str) -> list[tuple[str, str, str]]:
    entities, relations = graph.entities.names, graph.relations.names
    return [(entities[h], relations[r], entities[t]) for h, r, t in graph.parts()[part].tolist()]


def labels(graph: Graph) -> dict[str, str]:
    return {v.names[i]: v.label(i) for v in (graph.entities, graph.relations) for i in range(len(v))}


@pytest.mark.parametrize("format", WRITERS)
def test_what_is_written_is_read_back(format: str, tmp_path: Path) -> None:
    graph, out = make(), tmp_path / ("g.nt" if format == "nt" else "g")
    files = write_graph(graph, out, format)
    assert all(path.is_file() for path in files) and detect(out).name == format
    assert sorted(files) == sorted(out.iterdir() if out.is_dir() else [out])
    back = read_graph(out)
    if format == "nt":
        given_, got = (
            {triple for part in ("train", "valid", "test") for triple in named(g, part)} for g in (graph, back)
        )
        assert got == given_
    else:
        for part in set(graph.parts()) & (set(back.parts()) | {"train", "valid", "test"}):
            assert named(back, part) == named(graph, part)
        assert ("test_negatives" in back.parts()) == (format in ("openke", "socher", "parquet"))
    assert labels(back).items() <= labels(graph).items() and back.name == "g"
    assert set(path.name for path in files) <= OWNED | {"g.nt"}


@pytest.mark.parametrize("format", ["rotate", "openke", "libkge"])
def test_formats_with_id_maps_keep_ids(format: str, tmp_path: Path) -> None:
    graph = make(negatives=format == "openke")
    write_graph(graph, tmp_path / "g", format)
    back = read_graph(tmp_path / "g")
    assert back.fingerprint == graph.fingerprint
    if format == "openke":
        assert back.type_lists is not None
        for side in SIDES:
            assert np.array_equal(back.type_lists[side].values, graph.argument_lists[side].values)


@pytest.mark.parametrize("format", ["plain", "rotate", "openke", "libkge", "parquet"])
def test_a_graph_of_training_triples_alone(format: str, tmp_path: Path) -> None:
    graph = read_graph({"train": [("a", "r", "b")]})
    write_graph(graph, tmp_path / "g", format)
    back = read_graph(tmp_path / "g")
    assert named(back, "train") == [("a", "r", "b")] and len(back.valid) == len(back.test) == 0


@pytest.mark.parametrize("format", WRITERS)
@pytest.mark.parametrize("name", ["a\tb", "a\nb", "a\r", "\ufeffa"])
def test_names_that_a_format_cannot_hold(format: str, name: str, tmp_path: Path) -> None:
    graph = make((name, *NAMES))
    if format in ("parquet", "nt"):
        out = tmp_path / "g.nt"
        write_graph(graph, out, format)
        assert name in read_graph(out, format=format).entities
    else:
        with pytest.raises(GraphError, match="Write parquet"):
            write_graph(graph, tmp_path / "g", format)
        assert not list(tmp_path.iterdir())


def test_socher_needs_negatives(tmp_path: Path) -> None:
    with pytest.raises(GraphError, match="Write plain instead"):
        write_graph(make(negatives=False), tmp_path / "g", "socher")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("format", ["plain", "nt"])
def test_nothing_is_overwritten_without_force(format: str, tmp_path: Path) -> None:
    out = tmp_path / "g"
    write_graph(make(), out, format)
    other = read_graph({"train": [("x", "r", "y")]})
    with pytest.raises(RefusedOverwrite):
        write_graph(other, out, format)
    assert read_graph(out, format=format).entities.names != ("x", "y")
    write_graph(other, out, format, force=True)
    assert read_graph(out, format=format).entities.names == ("x", "y")


def test_force_removes_the_files_of_another_graph_and_no_others(tmp_path: Path) -> None:
    write_graph(make(), tmp_path / "g", "openke")
    (tmp_path / "g" / "thesis.tex").write_text("mine")
    (tmp_path / "g" / "train").mkdir()
    files = write_graph(read_graph({"train": [("x", "r", "y")]}), tmp_path / "g", "plain", force=True)
    assert [path.name for path in files] == ["train.txt"]
    assert sorted(path.name for path in (tmp_path / "g").iterdir()) == ["thesis.tex", "train", "train.txt"]
    assert named(read_graph(tmp_path / "g"), "train") == [("x", "r", "y")]


def test_an_empty_folder_is_not_in_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "g").mkdir()
    monkeypatch.chdir(tmp_path / "g")
    write_graph(make(), Path(), "plain")
    assert read_graph(tmp_path / "g").train.shape == (11, 3)


def test_a_writer_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("relwalk.graph.write._write_labels", fail)
    with pytest.raises(GraphError, match="disk full"):
        write_graph(make(), tmp_path / "g", "plain")
    assert not list(tmp_path.iterdir())


def test_an_unknown_format(tmp_path: Path) -> None:
    with pytest.raises(UnknownChoice, match="Did you mean 'openke'"):
        write_graph(make(), tmp_path / "g", "openk")


def test_whatever_is_written_can_be_read() -> None:
    assert WRITERS.keys() <= FORMATS.keys()


@settings(deadline=None)
@given(st.text(min_size=1, alphabet=st.characters(exclude_categories=["Cs"])) | st.sampled_from(NAMES))
def test_every_name_survives_as_an_iri(name: str) -> None:
    assert from_iri(to_iri(name)) == name
