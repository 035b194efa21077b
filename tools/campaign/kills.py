"""Kind `kills`: a training killed again and again, resumed, and compared bit for bit with one that was left alone.

Half of the signals come after some time, the others at a certain file operation: the moments that matter are those
between two operations on the run's folder, and there a seed kills in the same place each time.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from tools.campaign.command import Done, command
from tools.campaign.fault import Fault, shorten
from tools.campaign.guard import watch_changes
from tools.campaign.place import Place

COMMON = ["--dim", "8", "--epochs", "6", "--batch-size", "32", "--validate-every", "2", "--checkpoint-seconds", "0"]
RECIPES: dict[str, list[str]] = {
    "likelihood": [],
    "drawn": ["--candidates-per-step", "16", "--optimizer", "rowwise-adagrad"],
    "negatives": ["--objective", "softmax", "--negatives", "4"],
    "averaged": ["--average-from", "3", "--schedule", "cosine"],
}
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
STOPPED = (0, 1, 130, 143, *(-number for number in SIGNALS))


def _train(recipe: str) -> list[str]:
    return ["train", "facts.tsv", "--out", "run", "--threads", "1", *COMMON, *RECIPES[recipe]]


def write_facts(folder: Path) -> None:
    rows = (f"e{i % 30}\tr{i % 4}\te{i * 11 % 37}\n" for i in range(200))
    (folder / "facts.tsv").write_text("".join(rows))


def prepare(base: Path) -> None:
    """Each recipe trained undisturbed: its files, its time, and how many file operations it took."""
    for recipe in RECIPES:
        folder = base / recipe
        folder.mkdir()
        write_facts(folder)
        place, started = Place(base, folder, 120.0, print), time.monotonic()
        command(_train(recipe), folder, place, before=_at_operation(folder, None, folder / "count")).check([0])
        seconds, operations = time.monotonic() - started, (folder / "count").stat().st_size
        (base / f"{recipe}.json").write_text(json.dumps({"seconds": seconds, "operations": operations}))


def check(rng: Random, place: Place) -> None:
    recipe = rng.choice(list(RECIPES))
    place.say(recipe)
    facts: dict[str, Any] = json.loads((place.base / f"{recipe}.json").read_text())
    write_facts(place.folder)
    words = _train(recipe)
    for _ in range(rng.choice([1, 1, 2, 3])):
        if _killed(rng, words, place, facts).check(STOPPED).code == 1:
            break  # nothing to go on with
        if (place.folder / "run" / "run.json").is_file():
            words = ["resume", "run"]
    _carry_to_the_end(recipe, place)
    _compare(place.folder / "run", place.base / recipe / "run")


def _killed(rng: Random, words: list[str], place: Place, facts: dict[str, Any]) -> Done:
    number = rng.choice(SIGNALS)
    if rng.random() < 0.5:
        moment = rng.uniform(0, 1.1 * facts["seconds"])
        place.say(f"{words[0]}, {number.name} after {moment:.3f} s")
        return command(words, place.folder, place, kill=(moment, number))
    operation = rng.randrange(facts["operations"])
    place.say(f"{words[0]}, {number.name} at file operation {operation}")
    return command(words, place.folder, place, before=_at_operation(place.folder, (operation, number), None))


def _at_operation(folder: Path, kill: tuple[int, signal.Signals] | None, count: Path | None) -> Callable[[], None]:
    """Watch the changes below a folder: send a signal at one of them, or put a byte into a file for each."""

    def before() -> None:
        handle = os.open(count, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) if count is not None else None
        seen = 0

        def act(path: Path) -> None:
            nonlocal seen
            if not path.is_relative_to(folder / "run"):
                return
            if handle is not None:
                os.write(handle, b".")
            if kill is not None and seen == kill[0]:
                os.kill(os.getpid(), kill[1])
            seen += 1

        watch_changes(act)

    return before


def _carry_to_the_end(recipe: str, place: Place) -> None:
    """What a user does next: resume, and if there is nothing to resume, train again as the message says."""
    done = command(["resume", "run"], place.folder, place).check([0, 1])
    if done.code == 0:
        return
    done.check_one_line()
    place.say("nothing to resume")
    again = command(_train(recipe), place.folder, place).check([0, 1])
    if again.code == 0:
        return
    again.check_one_line()
    forced = command([*_train(recipe), "--force"], place.folder, place).check([0, 1])
    if forced.code:
        raise Fault("a folder that can neither be resumed nor trained again", shorten(forced.err.strip()))


def _compare(found: Path, expected: Path) -> None:
    left, right = ({path.name for path in folder.rglob("*")} for folder in (found, expected))
    if left != right:
        raise Fault(
            "other files than an undisturbed run", f"too many {sorted(left - right)}, too few {sorted(right - left)}"
        )
    if (found / "weights.safetensors").read_bytes() != (expected / "weights.safetensors").read_bytes():
        raise Fault("other weights than an undisturbed run")
    figures = [json.loads((folder / "run.json").read_text())["metrics"] for folder in (found, expected)]
    if figures[0] != figures[1]:
        raise Fault("other figures than an undisturbed run", f"{figures[0]} and {figures[1]}")
