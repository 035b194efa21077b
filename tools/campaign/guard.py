"""What a process does to files, watched before it happens: no attack of the campaign may reach the user's own."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.chmod", "os.link", "os.symlink")
DEVICES = ("/dev/null", "/dev/full", "/dev/tty")
OUTSIDE = 99  # the exit code of a process that was stopped


def watch_changes(act: Callable[[Path], None]) -> None:
    """Call with every path that this process is about to write, make, move or remove, from now to its end."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            _, mode, flags = arguments
            writes = (
                flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
                if isinstance(flags, int)
                else mode not in (None, "r", "rb")
            )
            paths = arguments[:1] if writes else ()
        else:
            paths = arguments[:2] if event in ("os.rename", "os.link", "os.symlink") else arguments[:1]
            paths = paths if event in CHANGES else ()
        for path in paths:
            if isinstance(path, str | bytes | os.PathLike):
                act(Path.cwd() / os.fsdecode(path))

    sys.addaudithook(hook)


def stay_within(folder: Path, witness: int) -> None:
    """End this process before it changes anything outside a folder, and say so to a witness."""

    def act(path: Path) -> None:
        if not path.is_relative_to(folder) and str(path) not in DEVICES and path.parts[1] != "proc":
            os.write(witness, f"stopped by the campaign: it would change {path}".encode())
            os._exit(OUTSIDE)

    watch_changes(act)
