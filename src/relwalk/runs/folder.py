"""The folder of a run from its first moment to its last: begun, gone on with, replaced, by one process at a time.

A run is always begun in the folder `.new` within its own, and moves up as soon as its record is there; in place of an
earlier run, only when it is finished. The record moves last, and only `.new` can hold less than a whole run: so a crash
at any moment leaves an earlier run as it was, and the next process that opens the folder finishes what was begun or
starts over.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from relwalk.errors import RefusedOverwrite, RunError
from relwalk.files import LOCK, lock_folder, remove_leftovers

RECORD, WEIGHTS, GRAPH = "run.json", "weights.safetensors", "graph.safetensors"
ENTITIES, RELATIONS, HISTORY, CHECKPOINT = "entities.tsv", "relations.tsv", "history.jsonl", "checkpoint.safetensors"
FILES = (RECORD, WEIGHTS, GRAPH, ENTITIES, RELATIONS, HISTORY, CHECKPOINT)
_SHARD = re.compile(r"(weights|checkpoint)\.\d+-of-\d+\.[0-9a-f]{12}\.safetensors")  # of one process: `shard_files`
REPORT = "report.html"
NEW = ".new"  # where a run is until it takes its place
WAIT = 5.0  # seconds for another process to be done with moving its files


@contextmanager
def begin(path: Path, write: Callable[[Path], None], *, force: bool) -> Iterator[Path]:
    """Begin a run, and hold its folder: yields where its files go. `write` puts the first ones there, the record last.

    With `force` an earlier run may be there. It stays as it is until the new one is finished, and of it only its own
    files go.
    """
    _refuse(path, force)
    made = not path.exists()
    path.mkdir(parents=True, exist_ok=True)
    try:
        with ExitStack() as held:
            folder = _begin(path, write, force, held)
            made = False
            yield folder
    finally:
        if made:  # nothing came of it
            with suppress(OSError):
                path.rmdir()
    settle(path)


def _begin(path: Path, write: Callable[[Path], None], force: bool, held: ExitStack) -> Path:
    new = path / NEW
    with ExitStack() as whole:
        whole.enter_context(lock_folder(path))
        _put_in_place(path)
        _refuse(path, force)
        replacing = is_run(path)
        new.mkdir(exist_ok=True)
        with ExitStack() as own:
            if replacing:
                own.enter_context(lock_folder(new))
            try:
                _empty(new)
                write(new)
            except BaseException:
                shutil.rmtree(new, ignore_errors=True)
                raise
            held.push(own.pop_all())
        if replacing:  # the earlier run can be used, and written to, while the new one is trained
            return new
        _put_in_place(path)
        held.push(whole.pop_all())
    return path


@contextmanager
def reopen(path: Path) -> Iterator[Path]:
    """Hold the folder of a run to go on with it: yields where its files are, in place or still to take their place."""
    folder = folder_to_resume(path)
    with lock_folder(folder):
        remove_leftovers(folder, lambda name: is_run_file(name) or name == REPORT)
        if folder == path and not is_run(path / NEW):
            shutil.rmtree(path / NEW, ignore_errors=True)  # the start of a run that died before its record
        yield folder
    settle(path)


def whole_run(path: Path) -> Path:
    """The folder of a run, also for that of a run which is to replace it."""
    return path.parent if path.name == NEW else path


def writing_into(folder: Path) -> Any:
    """Hold a folder while something is written into it, if it is that of a run."""
    return lock_folder(folder) if is_run(folder) else nullcontext()


def folder_to_resume(path: Path) -> Path:
    """Where the files of the run are that `resume` goes on with: one that is to replace this one comes first."""
    settle(path)
    if not is_run(path):
        raise RunError(not_a_run(path))
    return path / NEW if is_run(path / NEW) else path


def settle(path: Path) -> None:
    """Move a run to its place that waits for it, because a crash or another process came in between."""
    if not _waits(path):
        return
    try:
        with lock_folder(path, wait=WAIT):
            _put_in_place(path)
    except OSError as error:
        raise RunError(
            f"{path / NEW} holds a run that cannot be moved to {path} ({error}). Make it writable."
        ) from error


def shards_in(folder: Path, stem: str = "") -> list[str]:
    """The files of rows that are there, of the weights or of the checkpoint, or of both."""
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    return [name for name in names if _SHARD.fullmatch(name) and name.startswith(stem)]


def is_run_file(name: str) -> bool:
    """Whether a run has a file of this name."""
    return name in FILES or _SHARD.fullmatch(name) is not None


def is_run(path: Path) -> bool:
    return (path / RECORD).is_file()


def not_a_run(path: Path) -> str:
    if (path / NEW).is_dir():
        return f"{path} holds no run yet: its training stopped before it began. Train again: nothing is in the way."
    return f"{path} is not a relwalk run: it has no {RECORD}. Give the folder that `relwalk train` made."


def remove_run(path: Path) -> None:
    """Remove the files of a run, the record first, its report, and the folder if nothing else is in it."""
    if not path.is_dir():
        return
    with lock_folder(path):
        for name in (*FILES, REPORT, *shards_in(path)):
            (path / name).unlink(missing_ok=True)
        shutil.rmtree(path / NEW, ignore_errors=True)
    with suppress(OSError):
        path.rmdir()


def other_files(path: Path) -> list[str]:
    """What lies in a folder beside the files of a run: a report, notes, exports."""
    names = sorted(p.name for p in path.iterdir()) if path.is_dir() else []
    return [name for name in names if name not in (LOCK, NEW) and not is_run_file(name)]


def _refuse(path: Path, force: bool) -> None:
    """What is not a run is never replaced, and a run only with force."""
    if not path.exists():
        return
    if not path.is_dir():
        raise RefusedOverwrite(path, "or move it away: it is a file, and a run is a folder")
    if is_run(path):
        if force:
            return
        if _peek(path).get("status") == "finished":
            raise RefusedOverwrite(path)
        raise RefusedOverwrite(
            path, f"go on with its run (relwalk resume {path}), or say --force (force=True) to replace it"
        )
    begun = (path / NEW).is_dir()
    others = sorted(p.name for p in path.iterdir() if p.name not in (LOCK, NEW) and not (begun and is_run_file(p.name)))
    if others:
        raise RefusedOverwrite(path, f"or move away what is in it ({others[0]!r} is no part of a run)")


def _waits(path: Path) -> bool:
    return is_run(path / NEW) and (not is_run(path) or _peek(path / NEW).get("status") == "finished")


def _put_in_place(path: Path) -> None:
    """Move a run that waits up from `.new`. Done again after a crash, it goes on where it was."""
    if not _waits(path):
        return
    new = path / NEW
    vouched = [name for name in _peek(new).get("files", {}) if name in FILES]
    if all((new / name).exists() for name in vouched):  # none has moved yet
        for name in (*FILES, *shards_in(path)):
            if not (new / name).exists():
                (path / name).unlink(missing_ok=True)  # of the run that is replaced
    for name in (*shards_in(new), *vouched, *reversed(FILES)):  # the record last
        if (new / name).exists():
            (new / name).replace(path / name)
    shutil.rmtree(new, ignore_errors=True)


def _empty(new: Path) -> None:
    for path in new.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.name != LOCK:
            path.unlink()


def _peek(folder: Path) -> dict[str, Any]:
    """What a record says, unchecked; nothing when it is not readable."""
    try:
        content = json.loads((folder / RECORD).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) and isinstance(content.get("files"), dict) else {}
