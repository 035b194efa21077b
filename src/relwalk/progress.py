"""How far a long piece of work has come: a bar on a terminal, a line a minute in a log, nothing while it is short.

The one who works calls `on_progress(done, total, what)`, as often as it likes; what is shown of that, and where, is
decided here. Every `progress` argument of relwalk takes the same:

    None    show it where somebody watches: on a terminal and in a notebook (the default)
    True    show it in a log as well, by a line a minute on standard error
    False   show nothing
    a function of (done, total, what), which is then called instead
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

SHORT = 3.0  # seconds during which nothing is shown
MINUTE = 60.0  # between two lines of a log
WHOLE = 1000  # what a part of a larger work counts as
BAR = (10, 40)  # its least and its greatest width
Clock = Callable[[], float]


class OnProgress(Protocol):
    """Told how much of a work is done, of how much, and what is being done now."""

    def __call__(self, done: int, total: int, what: str, /) -> None: ...


Progress = bool | OnProgress | None


def silent(done: int, total: int, what: str) -> None:
    """Nobody listens."""


def part_of(on_progress: OnProgress, number: int, of: int, what: str) -> OnProgress:
    """Reports the progress of one of several parts (the first is 0) as that of the whole."""

    def within(done: int, total: int, _: str = "") -> None:
        on_progress(number * WHOLE + WHOLE * done // max(total, 1), of * WHOLE, what)

    return within


def each_once(tell: Callable[[str], None]) -> OnProgress:
    """Tells what is being done whenever that changes, and no figures."""
    last: list[str] = []

    def on_progress(done: int, total: int, what: str) -> None:
        if last != [what]:
            last[:] = [what]
            tell(what)

    return on_progress


class Count:
    """Adds up what is done and reports it."""

    def __init__(self, on_progress: OnProgress, total: int, what: str) -> None:
        self.on_progress, self.total, self.what, self.done = on_progress, total, what, 0

    def add(self, done: int) -> None:
        self.done += done
        self.on_progress(self.done, self.total, self.what)


@dataclass(frozen=True)
class Line:
    """One line of progress. Where it is too long for the screen, `first` and `last` stay: the bar goes, then the
    others, the last of them first."""

    first: str
    others: tuple[str, ...]
    last: str
    share: float

    def text(self, width: int | None = None, marks: str = "━─") -> str:
        """The line in so many columns, with a bar of the two marks where there is room; without a width, all words."""
        if width is None:
            return "  ".join([self.first, *self.others, self.last])
        room = width - len(self.first) - len(self.last) - 2
        kept: list[str] = []
        for other in self.others:
            if len(other) + 2 > room:
                break
            kept.append(other)
            room -= len(other) + 2
        least, most = BAR
        bar = [_bar(min(most, room - 2), self.share, marks)] if room - 2 >= least else []
        return "  ".join([self.first, *bar, *kept, self.last])[:width]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        yield Text(self.text(options.max_width, "#." if options.ascii_only else "━─"), no_wrap=True, overflow="crop")


def _bar(width: int, share: float, marks: str) -> str:
    full = round(width * min(1.0, max(0.0, share)))
    return marks[0] * full + marks[1] * (width - full)


class Screen(Protocol):
    """Where progress is shown."""

    def show(self, line: Line, every: float = MINUTE) -> None:
        """How it stands now. A log writes it when `every` seconds have passed since its last line."""

    def say(self, text: str) -> None:
        """A remark that stays."""

    def close(self) -> None: ...


class Log:
    """Plain lines: for files and pipes. The first line of a minute's distance comes after `short` seconds."""

    def __init__(
        self, *, short: float = SHORT, clock: Clock = time.monotonic, write: Callable[[str], None] | None = None
    ) -> None:
        self.clock, self.write = clock, write or _to_stderr
        self.last = clock() + short - MINUTE

    def show(self, line: Line, every: float = MINUTE) -> None:
        if self.clock() >= self.last + every:
            self.say(line.text())

    def say(self, text: str) -> None:
        self.last = self.clock()
        self.write(text)

    def close(self) -> None:
        pass


class Terminal:
    """A bar that redraws itself to the width of the terminal, once the work has taken `short` seconds."""

    def __init__(self, *, short: float = SHORT, clock: Clock = time.monotonic, console: Console | None = None) -> None:
        from rich.console import Console
        from rich.live import Live

        self.clock, self.due = clock, clock() + short
        self.console = console or Console(stderr=True, force_jupyter=False)
        self.live = Live(console=self.console, refresh_per_second=4, transient=True)

    def show(self, line: Line, every: float = MINUTE) -> None:
        if self.clock() < self.due:
            return
        self.live.update(line)
        if not self.live.is_started:
            self.live.start(refresh=True)

    def say(self, text: str) -> None:
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def close(self) -> None:
        self.live.stop()


class Notebook:
    """One line that is written over: what every notebook shows without an extension."""

    WIDTH = 79

    def __init__(
        self, *, short: float = SHORT, clock: Clock = time.monotonic, write: Callable[[str], object] | None = None
    ) -> None:
        self.clock, self.due = clock, clock() + short
        self.write = write or sys.stderr.write
        self.open = False

    def show(self, line: Line, every: float = MINUTE) -> None:
        if self.clock() >= self.due:
            self.due = self.clock() + 0.2
            self.open = True
            self.write(f"\r{line.text(self.WIDTH):{self.WIDTH}}")

    def say(self, text: str) -> None:
        self.close()
        self.write(f"{text}\n")

    def close(self) -> None:
        if self.open:
            self.write(f"\r{'':{self.WIDTH}}\r")
        self.open = False


def in_notebook() -> bool:
    return "ipykernel" in sys.modules


def watched() -> bool:
    """Whether somebody is there to see a bar."""
    return in_notebook() or on_terminal()


def on_terminal() -> bool:
    return sys.stderr is not None and not sys.stderr.closed and sys.stderr.isatty()


def open_screen(progress: bool | None, *, bar_after: float = SHORT, line_after: float = SHORT) -> Screen | None:
    """Where progress is to be shown; None: nowhere."""
    if progress is False or (progress is None and not watched()):
        return None
    if in_notebook():
        return Notebook(short=bar_after)
    return Terminal(short=bar_after) if on_terminal() else Log(short=line_after)


class Work:
    """Shows on a screen how a work comes along, and when it will be done."""

    def __init__(self, screen: Screen, *, clock: Clock = time.monotonic) -> None:
        self.screen, self.clock, self.started = screen, clock, clock()

    def __call__(self, done: int, total: int, what: str, /) -> None:
        share = done / max(total, 1)
        left = time_left(self.clock() - self.started, share)
        self.screen.show(Line(f"{what} {share:4.0%}", (), f"ETA {left}", share))


@contextmanager
def shown(progress: Progress) -> Iterator[OnProgress]:
    """Within, what is reported is shown as `progress` says (see above)."""
    if callable(progress):
        yield progress
        return
    screen = open_screen(progress)
    if screen is None:
        yield silent
        return
    try:
        yield Work(screen)
    finally:
        screen.close()


def time_left(elapsed: float, share: float) -> str:
    """The time that the rest of a work will take, when this share of it took that long."""
    return clock_time(elapsed * (1 - share) / share) if share > 0 else "-:--"


def clock_time(seconds: float) -> str:
    """As 0:07, 12:30 or 1:02:03."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def duration(seconds: float) -> str:
    """As 7 s, 12 min, 1 h 2 min: two figures at most."""
    if seconds < 60:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min" if minutes >= 10 else f"{seconds / 60:.1f} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def _to_stderr(text: str) -> None:
    """A log that cannot be written to, its reader gone or its disk full, is no reason to stop the work."""
    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            print(text, file=sys.stderr, flush=True)  # noqa: T201
