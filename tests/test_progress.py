"""What is shown of a long piece of work, with the time put in by the test."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from rich.console import Console

from relwalk import progress
from relwalk.evaluation.classification import classify
from relwalk.evaluation.ranking import rank
from relwalk.graph.graph import Graph
from relwalk.models import build_model
from relwalk.progress import Line, Log, Notebook, Terminal, Work, clock_time, duration, each_once, part_of, shown
from relwalk.theory.analyse import PARTS, analyse


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def work_of(screen: Callable, clock: Clock, seconds: int, each: int = 1, **more) -> None:
    """A work that takes so many seconds and reports after each of them."""
    shows = screen(clock=clock, **more)
    report = Work(shows, clock=clock)
    for second in range(0, seconds + 1, each):
        clock.now = float(second)
        report(second, seconds, "ranking test")
    shows.close()


def test_a_short_work_leaves_no_trace_in_a_log() -> None:
    lines: list[str] = []
    work_of(Log, Clock(), 2, write=lines.append)
    assert lines == []


def test_a_long_work_is_a_line_a_minute_in_a_log() -> None:
    lines: list[str] = []
    work_of(Log, Clock(), 600, write=lines.append)
    assert lines[0] == "ranking test   0%  ETA 9:57"  # once it is known to be long
    assert lines[1] == "ranking test  10%  ETA 8:57"
    assert len(lines) == 10


def screen_of(width: int) -> tuple[Console, io.StringIO]:
    out = io.StringIO()
    return Console(file=out, force_terminal=True, width=width, color_system=None, legacy_windows=False), out


@pytest.mark.parametrize(("seconds", "drawn"), [(2, False), (30, True)])
def test_a_terminal_gets_a_bar_when_the_work_is_long(seconds: int, drawn: bool) -> None:
    console, out = screen_of(80)
    work_of(Terminal, Clock(), seconds, console=console)
    assert ("ranking test" in out.getvalue() and "━" in out.getvalue()) == drawn


def test_a_notebook_gets_one_line_that_is_written_over_and_cleared() -> None:
    written: list[str] = []
    work_of(Notebook, Clock(), 2, write=written.append)
    assert written == []
    work_of(Notebook, Clock(), 30, write=written.append)
    assert all(text.startswith("\r") and "\n" not in text for text in written)
    assert "ranking test" in written[0] and written[-1].strip() == ""


LINE = Line("epoch 37/100", ("loss 5.8608", "best valid MRR 0.5344", "step 12/300"), "ETA 1:02:03", 0.37)


def drawn(line: Line, width: int) -> str:
    console, out = screen_of(width)
    console.print(line)
    return out.getvalue().rstrip("\n")


@pytest.mark.parametrize("width", range(26, 140))
def test_at_any_width_epoch_and_time_left_stay_on_one_line(width: int) -> None:
    text = drawn(LINE, width)
    assert text.startswith("epoch 37/100") and text.endswith("ETA 1:02:03")
    assert len(text) <= width and "\n" not in text


def test_what_does_not_fit_goes_the_least_important_first() -> None:
    assert drawn(LINE, 40) == "epoch 37/100  loss 5.8608  ETA 1:02:03"
    assert "best valid MRR 0.5344" in drawn(LINE, 70) and "step" not in drawn(LINE, 70)
    assert "━" in drawn(LINE, 100) and "step 12/300" in drawn(LINE, 100)
    assert LINE.text() == "epoch 37/100  loss 5.8608  best valid MRR 0.5344  step 12/300  ETA 1:02:03"


def test_who_listens_is_one_choice_for_every_verb(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[int, int, str]] = []
    with shown(lambda *report: told.append(report)) as report:
        report(1, 2, "x")
    assert told == [(1, 2, "x")]
    for watched, asked, kind in (
        (False, None, progress.silent),
        (True, False, progress.silent),
        (False, True, Work),
        (True, None, Work),
    ):
        monkeypatch.setattr(progress, "on_terminal", lambda watched=watched: watched)
        with shown(asked) as report:
            assert report is kind or type(report) is kind


def test_a_log_that_nobody_can_read_does_not_stop_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    closed = io.StringIO()
    closed.close()
    for stream in (Gone(), closed, None):
        monkeypatch.setattr("sys.stderr", stream)
        Log().say("half done")
        assert not progress.watched()


def test_a_part_reports_as_a_share_of_the_whole() -> None:
    told: list[tuple[int, int, str]] = []
    for number in range(2):
        part = part_of(lambda *report: told.append(report), number, 2, f"part {number}")
        part(1, 2, "")
    assert [done / total for done, total, _ in told] == [0.25, 0.75]
    words: list[str] = []
    once = each_once(words.append)
    for _, _, what in [*told, *told[-1:]]:
        once(0, 1, what)
    assert words == ["part 0", "part 1"]


def test_times_in_words() -> None:
    assert [duration(s) for s in (2.04, 35, 90, 900, 3600, 29_000)] == [
        *("2.0 s", "35 s", "1.5 min", "15 min", "1 h", "8 h 3 min"),
    ]
    assert [clock_time(s) for s in (7, 750, 3723)] == ["0:07", "12:30", "1:02:03"]


def test_every_long_verb_reports_from_its_first_part_to_its_end(world: Graph) -> None:
    model = build_model("relwalk", len(world.entities), len(world.relations), 8, seed=0, options={})
    told: list[tuple[int, int, str]] = []

    def heard(verb: Callable, **more) -> tuple[list[float], list[str]]:
        told.clear()
        verb(model, world, progress=lambda *report: told.append(report), **more)
        shares = [done / total for done, total, _ in told]
        assert shares == sorted(shares) and shares[-1] <= 1
        return shares, list(dict.fromkeys(what for _, _, what in told))

    shares, words = heard(rank, block=200_000)
    assert len(shares) > 4 and shares[-1] == 1 and words == ["ranking test"]
    shares, words = heard(classify)
    assert shares[0] == 0 and shares[-1] == 1 and words == ["making negatives", "classifying"]
    some = [part for part in PARTS if part != "limits"]  # as dear for a small model as for a large one
    shares, words = heard(analyse, directions=20, sample=100, parts=some)
    assert len(shares) > 30 and shares[-1] == 1 and words == some
