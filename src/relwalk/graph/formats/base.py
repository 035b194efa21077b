"""What a format is, what a caller can ask of a reading, and the journal that a reader keeps while it reads."""

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
class Options:
    """What a caller can ask of any reading."""

    on_bad_line: OnBadLine = "error"
    columns: tuple[str, ...] | None = None  # head, relation, tail or _ for each column of a table
    header: bool | None = None  # whether the first line of a table is headings; None: to be found out
    max_unpacked: int | None = None  # bytes that a packed file or a pipe may give; None: the default of `limits`


@dataclass(frozen=True)
class Format:
    """One way to lay out a graph on disk. `read` checks everything; `detects` only looks at names and first lines.

    `takes` are the options that only some formats heed: columns, header.
    """

    name: str
    description: str
    detects: Callable[[Path, Options], bool]
    read: Callable[[Path, Options], RawGraph]
    takes: tuple[str, ...] = ()


@dataclass
class Journal:
    """What happened while reading: bad lines are raised or counted here, the rest is told in `notes`."""

    options: Options = field(default_factory=Options)
    notes: list[str] = field(default_factory=list)
    skipped: dict[Path, int] = field(default_factory=dict)
    _first: dict[Path, BadLine] = field(default_factory=dict)

    @property
    def on_bad_line(self) -> OnBadLine:
        return self.options.on_bad_line

    def note(self, text: str) -> None:
        self.notes.append(text)

    def bad(self, error: BadLine) -> None:
        """Raise the error, or count it when bad lines are to be skipped."""
        if self.on_bad_line == "error":
            raise error
        self.skipped[error.path] = self.skipped.get(error.path, 0) + 1
        self._first.setdefault(error.path, error)

    def forget(self, path: Path) -> None:
        """Take back what was skipped of a file that is to be read again."""
        self.skipped.pop(path, None)
        self._first.pop(path, None)

    def summary(self) -> tuple[str, ...]:
        """All notes, one more for each file of which lines were skipped."""
        return (*self.notes, *(f"{path.name}: skipped {self.bad_lines(path)}" for path in self.skipped))

    def bad_lines(self, path: Path) -> str:
        """How many lines of a file were skipped, and what the first was."""
        count, first = self.skipped[path], self._first[path]
        lines = "1 bad line" if count == 1 else f"{count:,} bad lines, first"
        return f"{lines} at line {first.line}: found {first.found}; expected {first.expected}"


def shorten(text: str, limit: int = 80) -> str:
    """A quoted text that fits into a message."""
    return repr(text if len(text) <= limit else text[: limit - 1] + "…")


def listing(names: list[str], limit: int = 8) -> str:
    """A few of many names, for a message."""
    shown = ", ".join(names[:limit]) or "nothing"
    return f"{shown} and {len(names) - limit:,} more" if len(names) > limit else shown
