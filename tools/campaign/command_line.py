"""The options of the campaign: minutes or counts, one case again, and whether the table is kept."""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from tools.campaign.kinds import KINDS
from tools.campaign.table import Tally, as_markdown, command, write_record
from tools.campaign.workers import Limits, Outcome, prepare, try_seeds

PRELOAD = ("relwalk.cli.app", "relwalk.experiment", "relwalk.prediction", "relwalk.exports", "relwalk.reporting")


def main() -> None:
    chosen = _arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # leave nothing behind
    preload()
    with workplace(chosen.keep) as folder:
        failed = _one_case(chosen, folder) if chosen.seed is not None else _many_cases(chosen, folder)
    sys.exit(int(failed))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.campaign", description="Attack relwalk at random.")
    parser.add_argument("--minutes", type=float, default=10.0, help="how long, divided among the kinds")
    for name, kind in KINDS.items():
        parser.add_argument(f"--{name}", type=int, metavar="N", help=f"instead, so many cases: {kind.description}")
    parser.add_argument("--start", type=int, help="the first seed of each kind; drawn when not given")
    parser.add_argument("--kind", choices=KINDS, help="only this kind")
    parser.add_argument("--seed", type=int, help="with --kind: this one case")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="a new folder to work in, which then stays")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    parser.add_argument("--limit", type=float, default=Limits.seconds, help="seconds that one call may take")
    parser.add_argument("--record", action="store_true", help="keep the table in results/campaign.json and .md")
    chosen = parser.parse_args()
    if chosen.seed is not None and chosen.kind is None:
        parser.error("--seed needs --kind")
    return chosen


def preload() -> None:
    """Import what the verbs need, once for all forks."""
    for module in PRELOAD:
        importlib.import_module(module)
    gc.freeze()


@contextmanager
def workplace(keep: Path | None = None) -> Iterator[Path]:
    """A folder for all that is written, in memory where the system has such a place: nothing waits for a disk."""
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 1 << 30
    folder = keep or Path(tempfile.mkdtemp(prefix="campaign-", dir=memory if roomy else None))
    try:
        yield folder.resolve()
    finally:
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)


def _one_case(chosen: argparse.Namespace, folder: Path) -> bool:
    """A case again, and what it did."""
    prepare(chosen.kind, folder / "base")
    limits = Limits(seconds=chosen.limit)
    outcome = next(try_seeds(chosen.kind, iter([chosen.seed]), folder / "base", folder / "case", jobs=1, limits=limits))
    print(
        f"{outcome.kind} {outcome.seed}: {outcome.what or 'held'} ({outcome.seconds:.2f} s, {outcome.megabytes:.0f} MB)"
    )
    print("\n".join(part for part in (outcome.story, outcome.detail) if part))
    return bool(outcome.what)


def _many_cases(chosen: argparse.Namespace, folder: Path) -> bool:
    limits = Limits(seconds=chosen.limit)
    start = chosen.start if chosen.start is not None else random.SystemRandom().randrange(10**9)
    tallies = []
    for name, number, seconds in _plan(chosen):
        tallies.append(
            run_kind(name, start, folder / name, number=number, seconds=seconds, jobs=chosen.jobs, limits=limits)
        )
        if chosen.record:  # kind by kind: one that is stopped later has its earlier ones
            write_record(tallies, limits, f"python -m tools.campaign {' '.join(sys.argv[1:])}", Path("results"))
    print(as_markdown([tally.as_dict() for tally in tallies]))
    return any(tally.failures for tally in tallies)


def _plan(chosen: argparse.Namespace) -> list[tuple[str, int | None, float | None]]:
    """Each kind with its number of cases, or with its share of the minutes where no kind has a number."""
    names = [name for name in KINDS if chosen.kind in (None, name)]
    numbers = {name: getattr(chosen, name) for name in names}
    if any(number is not None for number in numbers.values()):
        return [(name, number, None) for name, number in numbers.items() if number]
    shares = sum(KINDS[name].share for name in names)
    return [(name, None, 60 * chosen.minutes * KINDS[name].share / shares) for name in names]


def run_kind(
    kind: str, start: int, folder: Path, *, number: int | None, seconds: float | None, jobs: int, limits: Limits
) -> Tally:
    """Try the seeds from `start` on, so many or so long, and say what fails as it comes.

    A case that is late is tried once more when all others are done: on a busy machine that alone is no hang.
    """
    print(f"{kind}: {KINDS[kind].description}; seeds from {start}", flush=True)
    until = None if seconds is None else time.monotonic() + seconds
    prepare(kind, folder / "base")
    seeds = count(start) if number is None else iter(range(start, start + number))
    tally, begun, late = Tally(kind, start), time.monotonic(), list[int]()
    places = (folder / "base", folder / "case")
    for outcome in try_seeds(kind, seeds, *places, jobs=jobs, limits=limits, until=until):
        if outcome.late:
            late.append(outcome.seed)
        elif tally.add(outcome):
            _say(outcome)
    for outcome in try_seeds(kind, iter(late), *places, jobs=1, limits=limits):
        if tally.add(outcome):
            _say(outcome)
    rate = tally.cases / max(time.monotonic() - begun, 1e-9)
    print(f"  {tally.cases:,} cases, {rate:,.1f} a second; {tally.failures:,} failed", flush=True)
    if tally.faults:
        print(tally.causes(), flush=True)
    return tally


def _say(outcome: Outcome) -> None:
    """The first failure of its cause, with the command that does it again."""
    told = [f"FAILED {outcome.what}", outcome.detail, outcome.story, command(outcome.kind, outcome.seed)]
    print("\n".join(f"  {line}" for line in told if line), flush=True)
