"""Looks at the folders of the runs that are served, and swaps in a run that was trained on: whole, or not at all."""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from relwalk.errors import RelWalkError
from relwalk.runs.folder import RECORD
from relwalk.serve.opened import Opened, fingerprint_of, open_folder
from relwalk.serve.service import Service

LOG = logging.getLogger("relwalk.serve")
Stamp = tuple[int, int]


async def keep_watch(service: Service, seconds: float) -> None:
    """Until it is cancelled."""
    seen: dict[str, Stamp | None] = {opened.name: None for opened in service.shelf}
    while True:
        for opened in service.shelf:
            seen[opened.name] = await _look(service, opened, seen[opened.name])
        await asyncio.sleep(seconds)


async def _look(service: Service, opened: Opened, seen: Stamp | None) -> Stamp | None:
    """Swap in what is new. What cannot be read, as a run that is being moved to its place, is looked at again."""
    try:
        status = (opened.folder / RECORD).stat()
        stamp = status.st_mtime_ns, status.st_size
        if stamp == seen or fingerprint_of(opened.folder) == opened.fingerprint:
            return stamp
        new = await service.long(
            partial(open_folder, opened.folder, opened.name, device=opened.device, index=opened.index is not None)
        )
    except (RelWalkError, OSError) as error:
        LOG.warning("%s stays as it was: %s", opened.name, error)
        return seen
    if new.fingerprint == opened.fingerprint:  # its record was looked at half written, and is what it was
        return stamp
    if new.run.state.status != "finished":  # it will be, and its record will say so
        return stamp
    service.shelf.put(new)
    service.count()
    LOG.warning("%s was trained anew and has taken its place", new.name)
    return stamp
