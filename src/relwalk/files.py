"""Files that are either whole or not there, folders that one process writes at a time, JSON that may be anything."""

from __future__ import annotations

import hashlib
import json
import os
import re
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from relwalk.errors import FolderInUse

if sys.platform != "win32":
    import fcntl

LOCK = ".lock"  # held by the process that writes a folder; what it says of itself is for people
_TEMPORARY = re.compile(r"\.(.+)\.\d+\.tmp", re.DOTALL)  # the name that a file was to have, and its writer's process
_POLL = 0.05  # seconds between two attempts


def write_atomically(path: Path, content: bytes) -> None:
    """Write, fsync, rename: a crash at any moment leaves the old file or the new one."""
    with atomic_file(path) as file:
        file.write(content)


@contextmanager
def atomic_file(path: Path) -> Iterator[IO[bytes]]:
    """A file to write, under another name until it is whole and on the disk.

    What a dead process left of the same file is removed. A device or a pipe (/dev/stdout, say) is written to, never
    replaced. An error of the system names `path`.
    """
    with _naming(path):
        if path.exists() and not path.is_file():
            with path.open("wb") as device:
                yield device
            return
        remove_leftovers(path.parent, lambda name: name == path.name)
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        file = _open_locked(temporary)
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            temporary.replace(path)
            _sync_folder(path.parent)
        finally:
            with suppress(OSError):  # it is renamed, or was never made, or cannot be removed either
                temporary.unlink()
            with suppress(OSError):  # what a full disk did not take is told already
                file.close()


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """An error of the system that names no file, as a full disk does, or one of ours names this one instead."""
    try:
        yield
    except OSError as error:
        found = error.filename and _TEMPORARY.fullmatch(Path(os.fsdecode(error.filename)).name)
        if error.filename is None or (found and found[1] == path.name):
            error.filename, error.filename2 = str(path), None
        raise


def remove_leftovers(folder: Path, ours: Callable[[str], bool] = lambda name: True) -> None:
    """Remove the half-written files whose writers died: a living one holds a lock on its own.

    `ours` says of the name a file was to have whether it may be removed.
    """
    there = list(folder.iterdir()) if folder.is_dir() else []
    for path in there:
        half = _TEMPORARY.fullmatch(path.name)
        if half is None or not ours(half[1]):
            continue
        with suppress(OSError):
            handle = os.open(path, os.O_RDWR)
            try:
                if _lock(handle, unsure=False):
                    path.unlink(missing_ok=True)
            finally:
                os.close(handle)


@contextmanager
def lock_folder(folder: Path, *, wait: float = 0.0) -> Iterator[None]:
    """Within, no other process can lock the folder; `FolderInUse` says who holds it, after so many seconds of waiting.

    The system drops the lock of a process that dies, however it dies: a lock file it left counts for nothing.
    """
    path, until = folder / LOCK, time.monotonic() + wait
    while (handle := _take(path)) is None:
        if time.monotonic() >= until:
            raise FolderInUse(folder, _holder(path))
        time.sleep(_POLL)
    try:
        os.ftruncate(handle, 0)
        os.write(handle, _this_process())
        yield
    finally:
        if _is_at(handle, path):
            path.unlink()
        os.close(handle)


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _take(path: Path) -> int | None:
    """A handle that holds the lock, or None while another one does."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        if not _lock(handle):
            os.close(handle)
            return None
        if _is_at(handle, path):
            return handle
        os.close(handle)  # removed by its holder between our two calls


def _lock(handle: int, *, unsure: bool = True) -> bool:
    """Lock an open file: whether no other handle has it locked, or `unsure` where the file system cannot say."""
    if sys.platform == "win32":
        return unsure
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        return False
    except OSError:
        return unsure


def _open_locked(path: Path) -> IO[bytes]:
    while True:
        file = path.open("wb")
        if _lock(file.fileno()) and _is_at(file.fileno(), path):
            return file
        file.close()  # taken for a leftover before it was locked


def _is_at(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _this_process() -> bytes:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return (json.dumps({"process": os.getpid(), "host": socket.gethostname(), "since": now}) + "\n").encode()


def parse_json(data: bytes | str) -> Any:
    """What JSON of anybody's file says; ValueError where it is none, is nested without end, or has a string that is no
    text (half of a surrogate pair), which could be read and never be written."""
    try:
        content = json.loads(data)
        json.dumps(content, ensure_ascii=False).encode()
    except RecursionError as error:
        raise ValueError("nested without end") from error
    return content


def _holder(path: Path) -> str:
    """Who holds a lock, in words."""
    try:
        content = json.loads(path.read_bytes()[:1000])
        return f"process {content['process']} on {content['host']} since {content['since']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable, where the system lets a folder be opened."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
