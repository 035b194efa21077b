"""Kind `disks`: verbs that write, where writing fails: full disks, forbidden folders, closed and full outputs.

A command may succeed where there is room. Otherwise it ends with 1 and one line, leaves nothing half-written, and
leaves alone what was there.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import resource
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from relwalk.graph.read import read_graph
from relwalk.runs.folder import NEW
from tools.campaign.command import Done, command
from tools.campaign.fault import Fault
from tools.campaign.folders import SETTINGS, train_and_stop
from tools.campaign.kills import COMMON, write_facts
from tools.campaign.place import Place

TRAIN = [*COMMON, "--threads", "1"]
VERBS: dict[str, tuple[list[str], str]] = {  # a command, and the word of it that says where to write
    "train": (["train", "facts.tsv", *TRAIN, "--out", "new/run"], "new/run"),
    "train again": (["train", "facts.tsv", *TRAIN, "--force", "--seed", "1", "--out", "run"], ""),
    "resume": (["resume", "stopped"], ""),
    "resume further": (["resume", "run", "--epochs", "8"], ""),
    "export npz": (["export", "run", "new/vectors.npz"], "new/vectors.npz"),
    "export parquet": (["export", "run", "new/vectors", "--to", "parquet"], "new/vectors"),
    "export word2vec": (["export", "run", "new/vectors.txt", "--to", "word2vec"], "new/vectors.txt"),
    "export projector": (["export", "run", "new/vectors", "--to", "projector"], "new/vectors"),
    "report": (["report", "run", "--directions", "10", "--out", "new/page.html"], "new/page.html"),
    "report beside": (["report", "run", "--directions", "10"], ""),
    "predict": (["predict", "run", "--queries", "questions.tsv", "--out", "new/answers.tsv"], "new/answers.tsv"),
    "convert plain": (["convert", "facts.tsv", "new/graph"], "new/graph"),
    "convert openke": (["convert", "facts.tsv", "new/graph", "--to", "openke"], "new/graph"),
    "convert libkge": (["convert", "facts.tsv", "new/graph", "--to", "libkge"], "new/graph"),
    "convert parquet": (["convert", "facts.tsv", "new/graph", "--to", "parquet"], "new/graph"),
    "convert nt": (["convert", "facts.tsv", "new/graph.nt", "--to", "nt"], "new/graph.nt"),
    "generate": (["generate", "--triples", "300", "--entities", "40", "--dim", "4", "--out", "new/drawn"], "new/drawn"),
    "evaluate": (["evaluate", "run", "--by-relation"], ""),
    "info": (["info", "facts.tsv"], ""),
}
UPDATES = ("train again", "resume", "resume further")  # they may change their run, but never break it
Obstacle = Callable[[], None]


def prepare(base: Path) -> None:
    """A place to work in: a graph, questions, a finished run and one that was stopped."""
    write_facts(base)
    (base / "questions.tsv").write_text("e1\tr1\t?\n?\tr2\te3\ne4\t?\te5\n")
    (base / "new").mkdir()
    command(["train", "facts.tsv", *TRAIN, "--out", "run"], base, Place(base, base, 120.0, print)).check([0])
    # Last, for what follows a training in this process must not fork.
    train_and_stop(read_graph(base / "facts.tsv"), base / "stopped", 3, **SETTINGS)


def check(rng: Random, place: Place) -> None:
    shutil.copytree(place.base, place.folder, dirs_exist_ok=True)
    verb = rng.choice(list(VERBS))
    words, target = VERBS[verb]
    possible = [name for name, obstacle in OBSTACLES.items() if target or not obstacle.needs_target]
    how = "full" if rng.random() < 0.3 else rng.choice(possible)
    place.say(f"{verb}, {how}")
    before = _digests(place.folder)
    with OBSTACLES[how].put(rng, place.folder, target) as (instead, act):
        words = [instead if word == target and target else word for word in words]
        done = command(words, place.folder, place, before=_both(_quick_report, act)).check([0, 1])
    _check_answer(done, how)
    if done.code:
        _check_nothing_broken(verb, before, place)


def _both(one: Obstacle, other: Obstacle) -> Obstacle:
    def act() -> None:
        one()
        other()

    return act


def _quick_report() -> None:
    """A page takes seconds to make; here it matters only how it is written."""
    import relwalk.reporting

    relwalk.reporting.make_report = lambda *_, **__: "<p>page</p>" * 5000


def _check_answer(done: Done, how: str) -> None:
    if how == "full output" and done.code == 0 and done.words[0] in ("evaluate", "info"):
        raise Fault("a result lost without a word", " ".join(done.words))
    if done.code and how not in ("closed error", "full error"):
        done.check_one_line()


def _digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


def _check_nothing_broken(verb: str, before: dict[str, str], place: Place) -> None:
    after = _digests(place.folder)
    new = [name for name in after if name not in before]
    begun = [name for name in new if NEW in Path(name).parts]  # a training in the place of another, to be gone on with
    half = [name for name in new if name not in begun and _is_half_written(name)]
    if half:
        raise Fault(f"{verb} leaves half-written files", ", ".join(half))
    changed = [name for name, digest in before.items() if after.get(name) != digest]
    if changed and verb not in UPDATES:
        raise Fault(f"{verb} changes what was there", ", ".join(changed))
    if not changed and not begun:
        return
    run = (changed or begun)[0].partition("/")[0]
    for words in (["evaluate", run], ["resume", run]):
        done = command(words, place.folder, place).check([0, 1])
        if done.code:
            raise Fault(
                f"{verb} breaks the run that was there", f"relwalk {' '.join(words)}: {done.err.strip()[-200:]}"
            )


def _is_half_written(name: str) -> bool:
    return name.endswith(".tmp") or any(part.startswith(".") for part in Path(name).parts)


class _Obstacle:
    """Something in the way of a target. `put` gives the word to say in its place and what the process itself does."""

    def __init__(self, put: Callable[[Random, Path, str], tuple[str, Obstacle]], *, needs_target: bool = False) -> None:
        self._put, self.needs_target = put, needs_target

    @contextmanager
    def put(self, rng: Random, folder: Path, target: str) -> Iterator[tuple[str, Obstacle]]:
        try:
            yield self._put(rng, folder, target)
        finally:
            for path in (folder, *folder.rglob("*")):
                if not path.is_symlink():
                    path.chmod(0o755 if path.is_dir() else 0o644)


def _nothing() -> None:
    pass


def _full(rng: Random, folder: Path, target: str) -> tuple[str, Obstacle]:
    size = int(10 ** rng.uniform(0, 5))
    return target, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def _forbidden(rng: Random, folder: Path, target: str) -> tuple[str, Obstacle]:
    for name in ("new", "run", "stopped", "."):
        (folder / name).chmod(0o555)
    return target, _without_privileges


def _unreadable(rng: Random, folder: Path, target: str) -> tuple[str, Obstacle]:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    for path in rng.sample(files, rng.choice([1, 3, len(files)])):
        path.chmod(0)
    return target, _without_privileges


def _without_privileges() -> None:
    """Let the permissions of files count for the superuser too: give up all capabilities of this process."""
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # version 3, this process
    if ctypes.CDLL(None).capset(header, (ctypes.c_uint32 * 6)()) != 0:
        raise OSError("capset failed")


def _below_a_file(rng: Random, folder: Path, target: str) -> tuple[str, Obstacle]:
    return f"facts.tsv/{Path(target).name}", _nothing


def _something_there(rng: Random, folder: Path, target: str) -> tuple[str, Obstacle]:
    (folder / target).mkdir(parents=True)
    (folder / target / "mine.txt").write_text("mine")
    return target, _nothing


def _too_long(rng: Random, folder: Path, target: str) -> tuple[str, Obstacle]:
    return "new/" + "x" * rng.choice([250, 255, 256, 5000]) + Path(target).suffix, _nothing


def _broken_link(rng: Random, folder: Path, target: str) -> tuple[str, Obstacle]:
    (folder / target).symlink_to("nowhere/at/all")
    return target, _nothing


def _closed(number: int) -> Callable[[Random, Path, str], tuple[str, Obstacle]]:
    """As a shell's `2>&-`: the interpreter then has no such stream."""

    def act() -> None:
        os.close(number)
        setattr(sys, "stdout" if number == 1 else "stderr", None)

    return lambda rng, folder, target: (target, act)


def _full_stream(number: int) -> Callable[[Random, Path, str], tuple[str, Obstacle]]:
    def act() -> None:
        os.dup2(os.open("/dev/full", os.O_WRONLY), number)

    return lambda rng, folder, target: (target, act)


OBSTACLES: dict[str, _Obstacle] = {
    "full": _Obstacle(_full),
    "forbidden": _Obstacle(_forbidden),
    "unreadable": _Obstacle(_unreadable),
    "below a file": _Obstacle(_below_a_file, needs_target=True),
    "something there": _Obstacle(_something_there, needs_target=True),
    "name too long": _Obstacle(_too_long, needs_target=True),
    "broken link": _Obstacle(_broken_link, needs_target=True),
    "closed output": _Obstacle(_closed(1)),
    "closed error": _Obstacle(_closed(2)),
    "full output": _Obstacle(_full_stream(1)),
    "full error": _Obstacle(_full_stream(2)),
}
