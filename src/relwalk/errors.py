"""Every error a user can meet.

RelWalkError
├── GraphError            a graph's files or contents cannot be used
│   ├── BadLine           one line of one file: where, what was found, what was expected, the cure
│   └── UnknownName       a name that is not in the graph; offers the nearest ones
├── UnknownChoice         a model, objective, sampler, format or recipe that does not exist
├── DownloadError         a named graph could not be fetched
├── TrainingDiverged      the loss or the weights stopped being numbers
├── RunError              a saved run cannot be read, or is not what it claims to be
└── RefusedOverwrite      something of the user's is in the way

    try:
        graph = relwalk.read_graph("my-graph/")
    except relwalk.RelWalkError as error:
        print(error)        # one message: file, line, found, expected, cure
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TypeVar

Choice = TypeVar("Choice")


class RelWalkError(Exception):
    """The base of all errors that relwalk raises on purpose."""


class GraphError(RelWalkError):
    """A graph's files or contents cannot be used."""


class BadLine(GraphError):
    """One line of one file is not what its format says."""

    def __init__(self, path: Path | str, line: int, *, found: str, expected: str, cure: str) -> None:
        self.path, self.line, self.found, self.expected, self.cure = Path(path), line, found, expected, cure
        super().__init__(f"{path}, line {line}: found {found}; expected {expected}. {cure}")


class UnknownName(GraphError):
    """An entity or relation that the graph does not have."""

    def __init__(self, kind: str, name: str, nearest: Iterable[str]) -> None:
        self.kind, self.name, self.nearest = kind, name, tuple(nearest)
        super().__init__(f"no {kind} is called {name!r}. {_offer(self.nearest)}".rstrip())


class UnknownChoice(RelWalkError):
    """A choice by name that does not exist: lists the known ones and the nearest."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        known = sorted(known)
        nearest = get_close_matches(name, known, n=1, cutoff=0.5)
        super().__init__(f"unknown {kind} {name!r}. {_offer(nearest)} Known: {', '.join(known)}.".replace(".  ", ". "))


class DownloadError(RelWalkError):
    """A named graph could not be fetched."""


class TrainingDiverged(RelWalkError):
    """The loss or the weights stopped being numbers."""


class RunError(RelWalkError):
    """A saved run cannot be read, or is not what it claims to be."""


class RefusedOverwrite(RelWalkError):
    """Something of the user's is in the way, and --force was not given."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} exists already. Choose another place, or say --force (force=True) to replace it.")


def choose(kind: str, name: str, choices: Mapping[str, Choice]) -> Choice:
    """The entry of a literal dict of choices, or an error that lists them."""
    if name not in choices:
        raise UnknownChoice(kind, name, choices)
    return choices[name]


def _offer(nearest: Iterable[str]) -> str:
    names = ", ".join(repr(name) for name in nearest)
    return f"Did you mean {names}?" if names else ""
