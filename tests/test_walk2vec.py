"""Vectors from walks: what is near, what repeats, what is refused; files that hold them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import relwalk
from relwalk.errors import GraphError, RelWalkError
from relwalk.exports import EXPORTERS, export
from relwalk.graph.graph import Graph
from relwalk.vector_files import read_vectors
from relwalk.walk2vec import METHODS, walk_vectors
from tests.conftest import make_graph
from tests.entry import answer
from tests.entry import relwalk as command

SMALL = {"dim": 4, "walks": 2, "length": 4}


@pytest.fixture
def cliques() -> Graph:
    """Entities a to d all linked with each other, e to h as well, and one link between; i has none."""
    within = [(i, 0, j) for group in (range(4), range(4, 8)) for i in group for j in group if i != j]
    return make_graph([*within, (0, 1, 4)], test=[(8, 0, 0)], entities=9)


@pytest.mark.parametrize("method", METHODS)
def test_entities_that_are_met_together_are_alike(cliques: Graph, method: str) -> None:
    found = walk_vectors(cliques, method, dim=8, walks=200, window=2)
    assert found.vectors.shape == (9, 8) and found.vectors.dtype == np.float32
    assert found.unmet == 1 and not found.vectors[8].any()
    unit = found.vectors[:8] / np.linalg.norm(found.vectors[:8], axis=1, keepdims=True)
    alike = unit @ unit.T
    assert alike[:4, :4].mean() > alike[:4, 4:].mean() + 0.1


@pytest.mark.parametrize("method", METHODS)
def test_the_same_seed_gives_the_same_vectors(five: Graph, method: str) -> None:
    first, again, other = (walk_vectors(five, method, seed=seed, **SMALL).vectors for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_the_hash_of_strings_does_not_matter() -> None:
    code = (
        "import relwalk; v = relwalk.walk_vectors('world', 'rdf2vec', dim=4, walks=1).vectors; "
        "import hashlib; print(hashlib.sha256(v.tobytes()).hexdigest())"
    )
    found = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert found[0] == found[1] != ""


def test_what_is_said_of_it(five: Graph) -> None:
    found = relwalk.walk_vectors(five, "node2vec", q=0.5, **SMALL)
    about = {"graph": "hand", "entities": 5, "unmet": 1, "method": "node2vec", "dim": 4}
    settings = {"walks": 2, "length": 4, "window": 5, "epochs": 1, "seed": 0, "p": 1.0, "q": 0.5}
    assert found.as_dict() == about | settings
    assert repr(found).startswith("<WalkVectors node2vec of hand: 5 entities, dim 4")
    assert "zeros for 1 that no walk met" in str(found)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"method": "deepwlk"}, "Did you mean 'deepwalk'"),
        ({"dim": 0}, "dim is 0; expected a whole number from 1"),
        ({"walks": 0}, "walks is 0"),
        ({"length": 1}, "length is 1; expected a whole number from 2 to 5,000"),
        ({"window": 0}, "window is 0"),
        ({"epochs": 0}, "epochs is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"method": "node2vec", "p": 0}, "p is 0; expected a number"),
        ({"method": "node2vec", "q": -1.0}, "q is -1.0; expected a number"),
        ({"p": 2}, "p means nothing to deepwalk. Say --method node2vec, or leave it out."),
        ({"method": "node2vec", "inverse": True}, "inverse means nothing to node2vec. Say --method rdf2vec"),
    ],
)
def test_a_wrong_option_is_refused(five: Graph, wrong: dict, words: str) -> None:
    with pytest.raises(RelWalkError) as error:
        walk_vectors(five, **wrong)
    assert words in str(error.value)


def test_a_graph_without_a_link_is_refused() -> None:
    with pytest.raises(GraphError, match="nothing to walk along"):
        walk_vectors(make_graph([(0, 0, 0)]), dim=2)


def test_without_the_extra_the_cure_is_told(five: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gensim.models", None)
    with pytest.raises(RelWalkError, match=r"pip install 'relwalk\[walks\]'"):
        walk_vectors(five, dim=2)


@pytest.mark.parametrize("format", EXPORTERS)
def test_vectors_go_out_as_those_of_a_run_do(five: Graph, tmp_path: Path, format: str) -> None:
    found = walk_vectors(five, **SMALL)
    files = export(found, tmp_path / "out", format)
    assert files and all(file.stat().st_size for file in files)


@pytest.mark.parametrize(("file", "format"), [("v.npz", "npz"), ("v.safetensors", "safetensors"), ("v", "word2vec")])
def test_what_is_written_is_read_by_name(tmp_path: Path, file: str, format: str) -> None:
    names = ("New York", "b", "c", "Ünal", "e")
    graph = make_graph([(0, 0, 1), (1, 0, 2), (2, 1, 3)])
    graph = Graph("named", type(graph.entities)("entity", names), graph.relations, graph.train)
    found = walk_vectors(graph, **SMALL)
    export(found, tmp_path / file, format)
    other = type(graph.entities)("entity", ("unknown", *reversed(names)))
    read = read_vectors(tmp_path / file).of(other)
    np.testing.assert_allclose(read[1:], found.vectors[::-1], rtol=1e-6)
    assert not read[0].any()


def test_the_vectors_of_a_run_are_read_from_its_folder(five: Graph, tmp_path: Path) -> None:
    run = relwalk.train(five, model="distmult", dim=4, epochs=1, out=tmp_path / "run")
    read = read_vectors(tmp_path / "run").of(five.entities)
    np.testing.assert_array_equal(read, run.model.tables()[0].weight.detach().numpy())
    with pytest.raises(RelWalkError, match="expected entity and entity_names"):
        read_vectors(tmp_path / "run" / "weights.safetensors")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("v.txt", b"a 1 2\n", "line 1: found 'a 1 2'; expected two whole numbers"),
        ("v.txt", b"", "line 1: found ''"),
        ("v.txt", b"2 2\na 1 2\n", "line 1: found 2 names; expected the 1 that follow"),
        ("v.txt", b"1 2\na 1\n", "line 2: found"),
        ("v.txt", b"1 2\na 1 x\n", "line 2: found '1 x'; expected a name and 2 numbers"),
        ("v.txt", b"1 2\na 1 nan\n", "not all numbers"),
        ("v.txt", b"2 1\na 1\na 2\n", "the same name twice"),
        ("v.txt", b"\xff\xfe", "is not UTF-8 text"),
        ("v.npz", b"no zip", "is not a readable .npz file"),
        ("v.safetensors", b"\x00" * 20, "is not a readable safetensors file"),
    ],
)
def test_a_file_that_holds_no_vectors_is_refused(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(RelWalkError) as error:
        read_vectors(tmp_path / name)
    assert words in str(error.value)


def test_arrays_that_do_not_fit_each_other_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "v.npz", entity=np.zeros((2, 3)), entity_names=np.array(["a"]))
    with pytest.raises(RelWalkError, match=r"found float64 \(2, 3\) for entity"):
        read_vectors(tmp_path / "v.npz")
    np.savez(tmp_path / "v.npz", x=np.zeros(3))
    with pytest.raises(RelWalkError, match="found x; expected entity and entity_names"):
        read_vectors(tmp_path / "v.npz")
    np.savez(tmp_path / "v.npz", entity=np.zeros((1, 3)), entity_names=np.array([object()]))
    with pytest.raises(RelWalkError, match="is not a readable"):
        read_vectors(tmp_path / "v.npz")


def test_the_verb(tmp_path: Path) -> None:
    words = ["walk2vec", "world", tmp_path / "v.txt", "--to", "word2vec", "--dim", 4, "--walks", 1, "--length", 3]
    said = answer(*words, "--method", "node2vec", "--p", 2)
    assert (said["method"], said["p"], said["files"]) == ("node2vec", 2.0, [str(tmp_path / "v.txt")])
    assert (tmp_path / "v.txt").read_text().splitlines()[0] == "2737 4"
    assert "--force" in command(*words, status=1).stderr
    done = command(*words, "--force")
    assert done.stdout.strip() == str(tmp_path / "v.txt") and "deepwalk of world" in done.stderr
    assert "Known: npz" in command("walk2vec", "world", tmp_path / "x", "--to", "hdf5", status=1).stderr
