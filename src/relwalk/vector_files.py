"""Vectors of entities by name, read from what `relwalk export` and `relwalk walk2vec` write, or another tool's word2vec
text."""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from relwalk.errors import BadLine, RelWalkError
from relwalk.graph.formats.base import shorten
from relwalk.graph.vocabulary import Vocabulary
from relwalk.memory import refuse_beyond_memory
from relwalk.runs.run import load_run

VECTORS, NAMES = "entity", "entity_names"  # in .npz and .safetensors
CURE = "Write it again: relwalk export, or relwalk walk2vec."


@dataclass(frozen=True)
class NamedVectors:
    """A vector for each name."""

    names: Sequence[str]
    vectors: NDArray[np.float32]  # (names, dim)
    underscores: bool = False  # in place of the blanks of a name, as word2vec text has them

    def of(self, entities: Vocabulary) -> NDArray[np.float32]:
        """The vector of each entity by its name; zeros for one that has none.  # (entities, dim)"""
        rows = {self._key(name): row for row, name in enumerate(self.names)}
        places = np.array([rows.get(self._key(name), -1) for name in entities], np.int64)
        found = np.zeros((len(entities), self.vectors.shape[1]), np.float32)
        found[places >= 0] = self.vectors[places[places >= 0]]
        return found

    def _key(self, name: str) -> str:
        return underscored(name) if self.underscores else name


def underscored(name: str) -> str:
    """A name as word2vec text can hold it: blanks become _."""
    return "_".join(name.split())


def read_vectors(path: Path | str) -> NamedVectors:
    """Vectors by name from an .npz or .safetensors file, the folder of a run (its first table), or word2vec text."""
    path = Path(path)
    if path.is_dir():
        run = load_run(path)
        return NamedVectors(run.graph.entities.names, run.model.tables()[0].weight.detach().numpy())
    with path.open("rb"):
        pass  # what the system refuses, in its words
    readers = {".npz": _npz, ".safetensors": _safetensors}
    found = readers.get(path.suffix, _word2vec)(path)
    if not np.isfinite(found.vectors).all():
        raise RelWalkError(f"{path}: found vectors that are not all numbers (NaN or infinite). {CURE}")
    if len(set(found.names)) < len(found.names):
        raise RelWalkError(f"{path}: found the same name twice; expected a vector for each name. Use another format.")
    return found


def _npz(path: Path) -> NamedVectors:
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
        refuse_beyond_memory(size, f"{path}, unpacked,", "Take a smaller file.")
        with np.load(path, allow_pickle=False) as arrays:
            if not {VECTORS, NAMES} <= set(arrays):
                raise _no_vectors(path, arrays)
            return _checked(path, arrays[NAMES].tolist(), arrays[VECTORS])
    except (zipfile.BadZipFile, zlib.error, ValueError, EOFError, NotImplementedError) as error:
        raise RelWalkError(f"{path} is not a readable .npz file ({error}). {CURE}") from error


def _safetensors(path: Path) -> NamedVectors:
    try:
        with safe_open(path, framework="numpy") as file:
            there, said = list(file.keys()), file.metadata() or {}
            if VECTORS not in there or NAMES not in said:
                raise _no_vectors(path, [*there, *said])
            return _checked(path, json.loads(said[NAMES]), file.get_tensor(VECTORS))
    except (SafetensorError, ValueError, TypeError, RecursionError) as error:
        raise RelWalkError(f"{path} is not a readable safetensors file ({error}). {CURE}") from error


def _no_vectors(path: Path, found: Any) -> RelWalkError:
    names = ", ".join(found)[:200] or "nothing"
    return RelWalkError(
        f"{path}: found {names}; expected {VECTORS} and {NAMES}. Give a file of relwalk export or relwalk walk2vec, "
        "or the folder of a run."
    )


def _checked(path: Path, names: Any, vectors: NDArray[Any]) -> NamedVectors:
    fits = isinstance(names, list) and all(isinstance(name, str) for name in names)
    if not fits or vectors.ndim != 2 or vectors.dtype.kind not in "fiu" or len(vectors) != len(names):
        raise RelWalkError(
            f"{path}: found {vectors.dtype} {vectors.shape} for {VECTORS}; expected a row of numbers for each name of "
            f"{NAMES}. {CURE}"
        )
    return NamedVectors(names, vectors.astype(np.float32, copy=False))


def _word2vec(path: Path) -> NamedVectors:
    """A line of counts, then a name and its numbers in each line."""
    names, rows = [], []
    try:
        with path.open(encoding="utf-8") as file:
            count, dim = _counts(path, file.readline(1000))
            for number, line in enumerate(file, start=2):
                name, *numbers = line.rstrip().rsplit(" ", dim)
                names.append(name)
                rows.append(_numbers(path, number, numbers, dim))
    except UnicodeDecodeError as error:
        raise RelWalkError(
            f"{path} is not UTF-8 text ({error}). Give .npz, .safetensors or word2vec's text format."
        ) from error
    if len(rows) != count:
        raise BadLine(path, 1, found=f"{count:,} names", expected=f"the {len(rows):,} that follow", cure=CURE)
    return NamedVectors(names, np.stack(rows), underscores=True)


def _counts(path: Path, line: str) -> tuple[int, int]:
    parts = line.split()
    if len(parts) == 2 and all(part.isascii() and part.isdigit() and 0 < int(part) < 2**31 for part in parts):
        return int(parts[0]), int(parts[1])
    expected = "two whole numbers, how many names and how many numbers for each: word2vec's text format"
    cure = "Give such a file, .npz, .safetensors, the folder of a run, or deepwalk, node2vec or rdf2vec."
    raise BadLine(path, 1, found=shorten(line.strip()), expected=expected, cure=cure)


def _numbers(path: Path, line: int, parts: list[str], dim: int) -> NDArray[np.float32]:
    try:
        row = np.array(parts, np.float32)
    except ValueError:
        row = np.zeros(0, np.float32)
    if len(row) != dim:
        found = shorten(" ".join(parts))
        raise BadLine(path, line, found=found, expected=f"a name and {dim} numbers", cure=CURE)
    return row
