"""The maps of the runs that are served: read where they are kept, made once where they are not."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass, replace
from typing import Any, Literal

from relwalk.serve.mapping import EntityMap, best_known, load_map
from relwalk.serve.opened import Opened

State = Literal["none", "making", "ready", "failed"]
NAMED = 150  # entities that may bear their label


@dataclass(frozen=True)
class Progress:
    """How far the map of a run is."""

    state: State
    done: int = 0
    total: int = 1
    what: str = ""


class MapMaker:
    """Starts a process for each map that is asked for and not there, one at a time for a run."""

    def __init__(self) -> None:
        self._progress: dict[str, Progress] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._children: set[asyncio.subprocess.Process] = set()

    def progress(self, opened: Opened) -> Progress:
        if self.ready(opened) is not None:
            return Progress("ready", 1, 1)
        return self._progress.get(opened.fingerprint, Progress("none"))

    def ready(self, opened: Opened) -> EntityMap | None:
        """The map of a run, if it is made."""
        if "map" not in opened.made:
            found = load_map(opened.folder, opened.fingerprint, len(opened.run.graph.entities))
            if found is None:
                return None
            opened.made["map"] = found
        found = opened.made["map"]
        return found if isinstance(found, EntityMap) else None

    def begin(self, opened: Opened) -> Progress:
        """Start to make it, unless that is done or under way."""
        now = self.progress(opened)
        if now.state in ("none", "failed"):
            self._progress[opened.fingerprint] = now = Progress("making", what="starting")
            task = asyncio.create_task(self._make(opened))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return now

    async def _make(self, opened: Opened) -> None:
        command = ["-P", "-m", "relwalk.serve.map_child", str(opened.folder), opened.fingerprint]
        pipes: Any = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE}
        child = await asyncio.create_subprocess_exec(sys.executable, *command, **pipes, start_new_session=True)
        self._children.add(child)
        failure = "the process that lays out the map died; its messages are in the log"
        assert child.stdout is not None
        try:
            async for line in child.stdout:
                words = line.decode("utf-8", "replace").split(maxsplit=2)
                if words[:1] == ["error"]:
                    failure = " ".join(words[1:])
                elif len(words) == 3 and words[0].isdigit() and words[1].isdigit():
                    now = Progress("making", int(words[0]), max(1, int(words[1])), words[2].strip())
                    self._progress[opened.fingerprint] = now
            await child.wait()
        finally:
            self._children.discard(child)
            if child.stdin is not None:
                child.stdin.close()
        if self.ready(opened) is None:
            self._progress[opened.fingerprint] = replace(Progress("failed"), what=failure)

    async def close(self) -> None:
        """End what is under way; a map that is not whole is not kept."""
        for child in list(self._children):
            if child.returncode is None:
                child.kill()
        for task in list(self._tasks):
            await asyncio.wait([task], timeout=5)

    def named(self, opened: Opened) -> list[dict[str, Any]]:
        """The best connected entities, to bear their labels on the map."""
        found = self.ready(opened)
        if found is None:
            return []
        label, names = opened.run.graph.entities.label, opened.run.graph.entities.names
        chosen = best_known(found, opened.degree, NAMED)
        return [{"id": i, "name": names[i], "label": label(i)} for i in chosen]
