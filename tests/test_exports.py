from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from relwalk.errors import RefusedOverwrite, UnknownChoice
from relwalk.experiment import train
from relwalk.exports import EXPORTERS, export
from relwalk.runs.run import Run
from tests.conftest import TRAIN, make_graph


@pytest.fixture(scope="module", params=["exact", "soft"])
def run(request: pytest.FixtureRequest) -> Run:
    return train(make_graph(TRAIN), dim=4, epochs=1, orthogonality=request.param, hidden=False, relation_bias=False)


def test_npz(run: Run, tmp_path: Path) -> None:
    export(run, tmp_path / "a.npz", "npz")
    with np.load(tmp_path / "a.npz", allow_pickle=False) as arrays:
        np.testing.assert_array_equal(arrays["entity"], run.model.entity.weight.detach().numpy())
        assert arrays["R1"].shape == arrays["R2"].shape == (2, 4, 4)
        assert arrays["entity_names"].tolist() == list("abcde")
        assert set(arrays) == {"entity", "R1", "R2", "entity_names", "relation_names"}


def test_parquet(run: Run, tmp_path: Path) -> None:
    export(run, tmp_path / "p", "parquet")
    entities = pl.read_parquet(tmp_path / "p" / "entities.parquet")
    np.testing.assert_array_equal(entities["entity"].to_numpy(), run.model.entity.weight.detach().numpy())
    relations = pl.read_parquet(tmp_path / "p" / "relations.parquet")
    assert relations.columns[:2] == ["name", "label"] and sorted(relations.columns[2:]) == ["R1", "R2"]
    for name in ("R1", "R2"):
        matrices = getattr(run.model, name).detach().numpy()
        np.testing.assert_array_equal(relations[name].to_numpy().reshape(matrices.shape), matrices)


def test_word2vec(run: Run, tmp_path: Path) -> None:
    export(run, tmp_path / "v.txt", "word2vec")
    lines = (tmp_path / "v.txt").read_text().splitlines()
    assert lines[0] == "5 4"
    assert lines[1].split()[0] == "a"
    np.testing.assert_allclose([float(x) for x in lines[1].split()[1:]], run.model.entity.weight[0].detach(), rtol=1e-6)


def test_projector(run: Run, tmp_path: Path) -> None:
    export(run, tmp_path / "t", "projector")
    assert (tmp_path / "t" / "metadata.tsv").read_text() == "a\nb\nc\nd\ne\n"
    assert np.loadtxt(tmp_path / "t" / "vectors.tsv").shape == (5, 4)


@pytest.mark.parametrize("format", EXPORTERS)
def test_nothing_is_overwritten_without_force(run: Run, tmp_path: Path, format: str) -> None:
    written = export(run, tmp_path / "out", format)
    with pytest.raises(RefusedOverwrite):
        export(run, tmp_path / "out", format)
    assert export(run, tmp_path / "out", format, force=True) == written


def test_an_unknown_format_is_named(run: Run, tmp_path: Path) -> None:
    with pytest.raises(UnknownChoice, match="word2vec"):
        export(run, tmp_path / "x", "hdf5")
