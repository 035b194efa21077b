"""Entities that start from vectors: by name, at the model's length, nothing else changed, and repeated."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from relwalk.errors import Interrupted, RelWalkError
from relwalk.experiment import resume, train
from relwalk.exports import export
from relwalk.graph.graph import Graph
from relwalk.models import MODELS, build_model
from relwalk.models.base import Scorer
from relwalk.runs.folder import CHECKPOINT, HISTORY
from relwalk.training.start import start_entities
from relwalk.walk2vec import walk_vectors
from tests.entry import relwalk as command

DIM = 4


def fresh(graph: Graph, model: str = "relwalk") -> Scorer:
    return build_model(model, len(graph.entities), len(graph.relations), DIM, seed=0, options={})


def save(path: Path, names: str, vectors: np.ndarray) -> str:
    np.savez(path, entity=vectors, entity_names=np.array(list(names)))
    return str(path)


@pytest.fixture
def file(tmp_path: Path) -> str:
    """Vectors of c and a, in that order, of one that the graph does not have, and of b only zeros."""
    vectors = np.array([[3, 0, 0, 4], [0, 12, 0, 5], [1, 1, 1, 1], [0, 0, 0, 0]], np.float64)
    return save(tmp_path / "v.npz", "cazb", vectors)


def test_only_the_named_entities_start_elsewhere(five: Graph, file: str) -> None:
    plain, started = fresh(five), fresh(five)
    said = start_entities(started, five, file, seed=0)
    assert said == f"2 of 5 entities start from {file}; 3 have no vector there and start at random"
    before, after = plain.state_dict(), started.state_dict()
    rows = before.pop("entity.weight"), after.pop("entity.weight")
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert torch.equal(rows[0][[1, 3, 4]], rows[1][[1, 3, 4]])
    length = rows[0].square().sum(1).mean().sqrt()
    expected = torch.tensor([[0, 12, 0, 5], [3, 0, 0, 4]]) * length / ((13**2 + 5**2) / 2) ** 0.5
    torch.testing.assert_close(rows[1][[0, 2]], expected)


@pytest.mark.parametrize("model", MODELS)
def test_every_model_can_start_from_walks(five: Graph, model: str) -> None:
    plain, started = fresh(five, model), fresh(five, model)
    if plain.constrained:
        plain.constrain()  # what a start is followed by
    start_entities(started, five, "deepwalk", seed=0)
    both = zip(plain.parameters(), started.parameters(), strict=True)
    same = torch.allclose if plain.constrained else torch.equal  # norms are made twice, and rounded twice
    changed = [a.shape for a, b in both if not same(a, b)]
    assert len(changed) == 1 and changed[0][0] == 5
    assert same(plain.vectors()[4], started.vectors()[4])  # no walk meets e


def test_a_constraint_holds_from_the_start(five: Graph, file: str) -> None:
    model = fresh(five, "transe")
    model.constrained = True
    model.constrain = lambda entities=None: model.entity.weight.copy_(
        torch.nn.functional.normalize(model.entity.weight)
    )
    start_entities(model, five, file, seed=0)
    torch.testing.assert_close(model.entity.weight.norm(dim=1), torch.ones(5))


def test_vectors_of_another_width_or_of_other_names_are_refused(five: Graph, tmp_path: Path) -> None:
    wide = save(tmp_path / "wide.npz", "a", np.ones((1, 6)))
    with pytest.raises(RelWalkError, match=r"has vectors of 6 numbers; RelWalk of dim 4 has 4 for .*--dim 4"):
        train(five, dim=DIM, epochs=1, start_entities=wide, out=tmp_path / "run")
    other = save(tmp_path / "other.npz", "xyz", np.ones((3, DIM)))
    with pytest.raises(RelWalkError, match="no vector for any of the 5 entities, 'a' for one"):
        train(five, dim=DIM, epochs=1, start_entities=other, out=tmp_path / "run")
    with pytest.raises(FileNotFoundError):
        train(five, dim=DIM, epochs=1, start_entities="deepwlk", out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_run_remembers_its_start_and_can_be_repeated(five: Graph, tmp_path: Path) -> None:
    first = train(five, dim=DIM, epochs=2, start_entities="node2vec", out=tmp_path / "run", seed=5)
    again = train(five, config=tmp_path / "run" / "run.json")
    assert again.record.training.start_entities == "node2vec"
    other = train(five, dim=DIM, epochs=2, seed=5)
    weights = [run.model.vectors() for run in (first, again, other)]
    assert torch.equal(weights[0], weights[1]) and not torch.equal(weights[0], weights[2])


@pytest.mark.parametrize("kept", [True, False])
def test_a_resumed_run_ends_with_the_same_bits(five: Graph, file: str, tmp_path: Path, kept: bool) -> None:
    settings = {"dim": DIM, "epochs": 3, "start_entities": file}
    whole = train(five, **settings)
    with pytest.raises(Interrupted):
        train(five, **settings, out=tmp_path / "run", stop=lambda: True)
    if kept:
        Path(file).unlink()  # the checkpoint has the start in it
    else:
        (tmp_path / "run" / CHECKPOINT).unlink()
        (tmp_path / "run" / HISTORY).unlink()
    assert torch.equal(resume(tmp_path / "run").model.vectors(), whole.model.vectors())


def test_the_flag(five: Graph, tmp_path: Path) -> None:
    words = ["train", "world", "--dim", 4, "--epochs", 1, "--batch-size", 9000, "--out", tmp_path / "run"]
    export(walk_vectors("world", dim=4, walks=1, length=3), tmp_path / "v.txt", "word2vec")
    done = command(*words, "--start-entities", tmp_path / "v.txt")
    assert f"entities start from {tmp_path / 'v.txt'}" in done.stderr
    wrong = command(*words[:-1], tmp_path / "new", "--start-entities", tmp_path / "no.txt", status=1)
    assert "no.txt: it does not exist" in wrong.stderr and not (tmp_path / "new").exists()
