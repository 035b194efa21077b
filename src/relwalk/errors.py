"""Every error a user can meet.

RelWalkError
├── GraphError            a graph's files or contents cannot be used
│   ├── BadLine           one line of one file: where, what was found, what was expected, the cure
│   └── UnknownName       a name that is not in the graph; offers the nearest ones
│       └── AmbiguousName a label or local name that several names share; lists them
├── UnknownChoice         a model, objective, sampler, format or recipe that does not exist
├── DownloadError         a named graph could not be fetched
├── TrainingDiverged      the loss or the weights stopped being numbers
├── Interrupted           training was asked to stop, and did, between two steps
├── RunError              a saved run cannot be read, or is not what it claims to be
│   └── FolderInUse       another process writes there
├── OtherRankFailed       another process of the same training ended, or did not answer in time
└── RefusedOverwrite      something of the user's is in the way

    try:
        graph = relwalk.read_graph("my-graph/")
    except relwalk.RelWalkError as error:
        print(error)        # one message: file, line, found, expected, cure
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TypeVar

Choice = TypeVar("Choice")


LONGEST = 2000  # characters of a message: a damaged file can hold names without end


class RelWalkError(Exception):
    """The base of all errors that relwalk raises on purpose. A message keeps its beginning and its end."""

    def __init__(self, message: str = "") -> None:
        kept = message if len(message) <= LONGEST else f"{message[: LONGEST - 500]} … {message[-490:]}"
        super().__init__(kept)


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


class AmbiguousName(UnknownName):
    """A label, or the last part of an IRI, that several entities or relations share."""

    def __init__(self, kind: str, name: str, names: Sequence[str]) -> None:
        self.kind, self.name, self.nearest = kind, name, tuple(names[:5])
        shown = ", ".join(map(repr, self.nearest)) + (f" and {len(names) - 5:,} more" if len(names) > 5 else "")
        plural = "entities" if kind == "entity" else f"{kind}s"
        GraphError.__init__(self, f"{len(names):,} {plural} are called {name!r}: {shown}. Give the whole name of one.")


class UnknownChoice(RelWalkError):
    """A choice by name that does not exist: lists the known ones and the nearest."""

    def __init__(self, kind: str, name: object, known: Iterable[str]) -> None:
        known = sorted(known)
        nearest = get_close_matches(name, known, n=1, cutoff=0.5) if isinstance(name, str) else []
        super().__init__(f"unknown {kind} {name!r}. {_offer(nearest)} Known: {', '.join(known)}.".replace(".  ", ". "))


class DownloadError(RelWalkError):
    """A named graph could not be fetched."""


class TrainingDiverged(RelWalkError):
    """The loss or the weights stopped being numbers."""


class Interrupted(RelWalkError):
    """Training was asked to stop, and did, between two steps of this epoch."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        super().__init__(f"stopped in epoch {epoch}")


class RunError(RelWalkError):
    """A saved run cannot be read, or is not what it claims to be."""


class FolderInUse(RunError):
    """Another process writes in this folder."""

    def __init__(self, folder: Path, holder: str) -> None:
        super().__init__(f"{folder} is being written by {holder}. Wait for it, or choose another folder.")


class OtherRankFailed(RelWalkError):
    """Another process of the same training ended, or did not answer in time."""


class RefusedOverwrite(RelWalkError):
    """Something of the user's is in the way, and --force was not given."""

    def __init__(self, path: Path, cure: str = "or say --force (force=True) to replace it") -> None:
        super().__init__(f"{path} exists already. Choose another place, {cure}.")


def choose(kind: str, name: str, choices: Mapping[str, Choice]) -> Choice:
    """The entry of a literal dict of choices, or an error that lists them."""
    if not isinstance(name, str) or name not in choices:
        raise UnknownChoice(kind, name, choices)
    return choices[name]


def _offer(nearest: Iterable[str]) -> str:
    names = ", ".join(repr(name) for name in nearest)
    return f"Did you mean {names}?" if names else ""
