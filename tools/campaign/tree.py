"""Files in memory, to be changed there and then written: a name to its bytes, or to something that is no file."""

from __future__ import annotations

import os
from enum import Enum
from pathlib import Path


class Odd(Enum):
    """What may stand where a file is expected."""

    FOLDER = "a folder"
    BROKEN = "a broken link"
    LOOP = "a link to itself"
    PIPE = "a named pipe"


Tree = dict[str, bytes | Odd]


def write_tree(tree: Tree, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in tree.items():
        path = folder / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            _write_odd(path, content)


def _write_odd(path: Path, what: Odd) -> None:
    match what:
        case Odd.FOLDER:
            path.mkdir()
        case Odd.BROKEN:
            path.symlink_to(path.with_name("nowhere"))
        case Odd.LOOP:
            path.symlink_to(path)
        case Odd.PIPE:
            os.mkfifo(path)


def read_tree(folder: Path) -> Tree:
    """The files of a folder, none below it."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}
