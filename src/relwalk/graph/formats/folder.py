"""Finding the files of a layout in a folder, and what all folders share: parts and labels."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypedDict

import polars as pl

from relwalk.errors import GraphError
from relwalk.graph.formats.base import Journal, listing
from relwalk.graph.formats.columns import Names
from relwalk.graph.formats.headings import COLUMNS_CURE
from relwalk.graph.formats.source import MAGIC, Source
from relwalk.graph.formats.table import Table, read_table

PARTS: dict[str, tuple[str, ...]] = {"train": ("train",), "valid": ("valid", "dev"), "test": ("test",)}
TEXT = (".txt", ".tsv", "")
LABELS = Table((Names("name"), Names("label")))


def there(folder: Path, stems: tuple[str, ...], suffixes: tuple[str, ...]) -> list[Path]:
    """What a folder has under such names, compressed or not, in any state. A folder `test` is no file `test`."""
    names = [stem + suffix + packed for stem in stems for suffix in suffixes for packed in ("", *MAGIC)]
    found = [folder / name for name in names if os.path.lexists(folder / name)]
    return [path for path in found if path.suffix or not path.is_dir()]


def find(folder: Path, stems: tuple[str, ...], suffixes: tuple[str, ...]) -> Path | None:
    """The one file of a folder with such a name, compressed or not."""
    found = there(folder, stems, suffixes)
    if len(found) > 1:
        both = " and ".join(path.name for path in found)
        raise GraphError(f"{folder}: found {both}; expected only one of them. Move the other out of the folder.")
    if found and not found[0].is_file():
        raise GraphError(f"{found[0]}: found {_state(found[0])}; expected a file. Put the file there, or remove it.")
    return found[0] if found else None


def _state(path: Path) -> str:
    if path.is_symlink() and not path.exists():
        return f"a link to {path.readlink()}, which does not exist"
    return "a folder" if path.is_dir() else "neither file nor folder"


def has(folder: Path, *names: str) -> bool:
    """Whether a folder holds all of these files, compressed or not."""
    return folder.is_dir() and all(there(folder, (name,), ("",)) for name in names)


def need(folder: Path, stem: str, suffixes: tuple[str, ...]) -> Path:
    """The file of that name, or an error that tells what is there instead."""
    path = find(folder, (stem,), suffixes)
    if path is None:
        raise GraphError(
            f"{folder}: found {_contents(folder)}; expected {stem}{suffixes[0]}. "
            "Point to the folder that holds it, or name the format."
        )
    return path


def _contents(folder: Path) -> str:
    return listing(sorted(path.name for path in folder.iterdir())) if folder.is_dir() else "no folder"


def parts(folder: Path, suffixes: tuple[str, ...], ending: str = "") -> dict[str, Path]:
    """The files of train, valid and test; only train must be there."""
    found = {"train": need(folder, "train" + ending, suffixes)}
    for part in ("valid", "test"):
        path = find(folder, tuple(stem + ending for stem in PARTS[part]), suffixes)
        if path is not None:
            found[part] = path
    return found


def read_parts(
    files: Mapping[str, Path], journal: Journal, read: Callable[[Source], pl.DataFrame]
) -> dict[str, pl.DataFrame]:
    """The triples of each part; an empty train is an error, another empty part a note."""
    frames = {part: read(source_of(path, journal)) for part, path in files.items()}
    for part, path in files.items():
        if frames[part].is_empty():
            note_empty(path, part, journal)
    return frames


def source_of(path: Path, journal: Journal) -> Source:
    """A file, to be read within the limit that was asked for."""
    return Source(path, journal.options.max_unpacked)


def note_empty(path: Path, part: str, journal: Journal) -> None:
    """Say that a file holds no triple; without training triples there is no graph."""
    if part == "train":
        if path in journal.skipped:
            raise GraphError(
                f"{path}: found no good line, but {journal.bad_lines(path)}. Say --format, or "
                f"what each column of names is: {COLUMNS_CURE}."
            )
        raise GraphError(f"{path}: found no triples; expected at least one. Give it lines of head, relation and tail.")
    journal.note(f"{path.name} holds no triples")


class LabelKeywords(TypedDict):
    """The keywords of RawGraph for readable names."""

    entity_labels: dict[str, str]
    relation_labels: dict[str, str]


def read_labels(folder: Path, journal: Journal) -> LabelKeywords:
    """The readable names that may lie beside a graph."""
    entity_labels = _labels(find(folder, ("labels",), (".tsv",)), journal)
    relation_labels = _labels(find(folder, ("relation_labels",), (".tsv",)), journal)
    return {"entity_labels": entity_labels, "relation_labels": relation_labels}


def _labels(path: Path | None, journal: Journal) -> dict[str, str]:
    if path is None:
        return {}
    frame = read_table(source_of(path, journal), LABELS, journal)
    distinct = frame.unique("name", keep="first", maintain_order=True)
    if len(distinct) < len(frame):
        journal.note(f"{path.name}: {len(frame) - len(distinct):,} names have several labels; the first counts")
    return dict(zip(distinct["name"].to_list(), distinct["label"].to_list(), strict=True))


def format_note(layout: str, files: Mapping[str, Path]) -> str:
    """The note on what was read."""
    return f"read as {layout}: {', '.join(path.name for path in files.values())}"
