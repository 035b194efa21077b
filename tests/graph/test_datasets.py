"""Named graphs are found where they should be, in the right order, and downloaded only when nowhere else."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from relwalk.errors import UnknownChoice
from relwalk.graph import datasets
from relwalk.graph.datasets import DATASETS, locate, status
from relwalk.graph.download import OnDownload, RemoteFile, digest

BENCHMARKS = ("wn18rr", "fb15k-237", "fb13")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test sees, or fills, the cache of the person who runs it."""
    monkeypatch.delenv("RELWALK_DATA", raising=False)
    monkeypatch.setenv("RELWALK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(autouse=True)
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Stands for the network: notes what would have been downloaded."""
    calls: list[Path] = []

    def fetch(_files: Mapping[str, RemoteFile], into: Path, _progress: OnDownload | None = None) -> None:
        calls.append(into)

    monkeypatch.setattr(datasets, "fetch", fetch)
    return calls


def fill(folder: Path, name: str) -> None:
    folder.mkdir(parents=True)
    for file, remote in DATASETS[name].files.items():
        with (folder / file).open("wb") as sparse:
            sparse.truncate(remote.size)


def test_the_table_is_consistent() -> None:
    assert list(DATASETS) == ["world", *BENCHMARKS]
    for name, dataset in DATASETS.items():
        assert dataset.name == name
        assert dataset.embedded == (name == "world")
        assert dataset.description and dataset.licence
        for file in dataset.files.values():
            assert file.url.startswith("https://raw.githubusercontent.com/")
            assert len(file.sha256) == 64 and file.size > 0


def test_world_is_embedded(fetched: list[Path]) -> None:
    assert sorted(path.name for path in locate("world").glob("*.tsv")) == ["test.tsv", "train.tsv", "valid.tsv"]
    assert status("world") == "embedded"
    assert fetched == []


@pytest.mark.parametrize("ask", [locate, status])
def test_an_unknown_name_lists_the_known_ones(ask: object) -> None:
    assert callable(ask)
    with pytest.raises(UnknownChoice, match=r"data set 'wn18r'\. Did you mean 'wn18rr'\?.*fb13, fb15k-237"):
        ask("wn18r")


@pytest.mark.parametrize("folder", ["wn18rr", "WN18RR"])
def test_a_folder_of_yours_comes_first(folder: str, tmp_path: Path, fetched: list[Path]) -> None:
    fill(tmp_path / "mine" / folder, "wn18rr")
    found = locate("wn18rr", data_dir=tmp_path / "mine")
    assert found.samefile(tmp_path / "mine" / folder)
    assert status("wn18rr", tmp_path / "mine") == f"in {found}"
    assert fetched == []


def test_the_environment_names_a_folder_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path / "env" / "fb13", "fb13")
    fill(tmp_path / "said" / "fb13", "fb13")
    monkeypatch.setenv("RELWALK_DATA", str(tmp_path / "env"))
    assert locate("fb13") == tmp_path / "env" / "fb13"
    assert locate("fb13", data_dir=tmp_path / "said") == tmp_path / "said" / "fb13"


def test_a_graph_that_is_nowhere_is_downloaded_to_the_cache(
    tmp_path: Path, own_cache: Path, fetched: list[Path]
) -> None:
    assert status("wn18rr", tmp_path) == "to be downloaded (3.4 MB)"
    assert locate("wn18rr", data_dir=tmp_path) == own_cache / "wn18rr"
    assert fetched == [own_cache / "wn18rr"]


def test_a_cached_graph_is_reported(own_cache: Path) -> None:
    fill(own_cache / "fb15k-237", "fb15k-237")
    assert status("fb15k-237") == "cached"
    (own_cache / "fb15k-237" / "test.txt").unlink()
    assert status("fb15k-237") == "to be downloaded (24.1 MB)"


def test_where_the_cache_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert datasets.cache_dir() == tmp_path / "cache"
    monkeypatch.delenv("RELWALK_CACHE")
    assert datasets.cache_dir() == tmp_path / "xdg" / "relwalk"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert datasets.cache_dir() == tmp_path / "home" / ".cache" / "relwalk"


DATA = os.environ.get("RELWALK_DATA") or None


@pytest.mark.skipif(DATA is None, reason="set RELWALK_DATA to a folder with wn18rr/, fb15k-237/ and fb13/")
@pytest.mark.parametrize("name", BENCHMARKS)
def test_the_benchmarks_are_as_promised(name: str) -> None:
    """The files in the folder have the sums, and the counts, that a download would be held to."""
    dataset = DATASETS[name]
    folder = locate(name, data_dir=Path(str(DATA)))
    counts, entities, relations = {}, set(), set()
    for file, remote in dataset.files.items():
        content = (folder / file).read_bytes()
        assert len(content) == remote.size
        assert digest(content, any_order=remote.any_order) == remote.sha256
        rows = [line.split("\t") for line in content.decode("utf-8").splitlines()]
        true = [row for row in rows if row[3:] in ([], ["1"])]
        counts[file.replace("dev", "valid").removesuffix(".txt")] = len(true)
        entities |= {name for row in rows for name in (row[0], row[2])}
        relations |= {row[1] for row in rows}
    assert counts == {"train": dataset.train, "valid": dataset.valid, "test": dataset.test}
    assert (len(entities), len(relations)) == (dataset.entities, dataset.relations)
