"""What a format is, and the journal that a reader keeps while it reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from relwalk.errors import BadLine
from relwalk.graph.raw import RawGraph

OnBadLine = Literal["error", "skip"]

SKIP_CURE = "Mend the line, or leave such lines out: --on-bad-line skip (on_bad_line='skip')."


@dataclass(frozen=True)
class Format:
    """One way to lay out a graph on disk. `read` checks everything; `detects` only looks at names and first lines."""

    name: str
    description: str
    detects: Callable[[Path], bool]
    read: Callable[[Path, OnBadLine], RawGraph]


@dataclass
class Journal:
    """What happened while reading: bad lines are raised or counted here, the rest is told in `notes`."""

    on_bad_line: OnBadLine
    notes: list[str] = field(default_factory=list)
    skipped: dict[Path, int] = field(default_factory=dict)
    _first: dict[Path, BadLine] = field(default_factory=dict)

    def note(self, text: str) -> None:
        self.notes.append(text)

    def bad(self, error: BadLine) -> None:
        """Raise the error, or count it when bad lines are to be skipped."""
        if self.on_bad_line == "error":
            raise error
        self.skipped[error.path] = self.skipped.get(error.path, 0) + 1
        self._first.setdefault(error.path, error)

    def told(self) -> tuple[str, ...]:
        """All notes, one more for each file of which lines were skipped."""
        return (*self.notes, *(self._skip_note(path) for path in self.skipped))

    def _skip_note(self, path: Path) -> str:
        count, first = self.skipped[path], self._first[path]
        lines = "1 bad line" if count == 1 else f"{count:,} bad lines, first"
        return f"{path.name}: skipped {lines} at line {first.line}: found {first.found}; expected {first.expected}"


def shorten(text: str, limit: int = 80) -> str:
    """A quoted text that fits into a message."""
    return repr(text if len(text) <= limit else text[: limit - 1] + "…")


def listing(names: list[str], limit: int = 8) -> str:
    """A few of many names, for a message."""
    shown = ", ".join(names[:limit]) or "nothing"
    return f"{shown} and {len(names) - limit:,} more" if len(names) > limit else shown
