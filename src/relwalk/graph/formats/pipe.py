"""A pipe that nobody writes to would be waited for without end: it is read only with a writer at its other end."""

from __future__ import annotations

import io
import os
import time
from pathlib import Path

from relwalk.errors import GraphError

PATIENCE = 3.0  # seconds for a writer to come; once it is there, it may take its time
MOMENT = 0.02


class Pipe(io.RawIOBase):
    """The bytes that are written into a pipe."""

    def __init__(self, path: Path) -> None:
        self.descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        self.first = self._await_writer(path)
        os.set_blocking(self.descriptor, True)

    def _await_writer(self, path: Path) -> bytes:
        """What is there when a writer is: without one, a read that does not wait finds an end, with one, nothing."""
        late = time.monotonic() + PATIENCE
        while time.monotonic() < late:
            try:
                if first := os.read(self.descriptor, io.DEFAULT_BUFFER_SIZE):
                    return first
            except BlockingIOError:
                return b""
            time.sleep(MOMENT)
        os.close(self.descriptor)
        raise GraphError(
            f"{path}: found a pipe that nobody writes to; expected a writer within {PATIENCE:g} s. Start it first, "
            "as in <(zcat FILE), or give a file."
        )

    def read(self, size: int) -> bytes:  # type: ignore[override]
        if not self.first:
            return os.read(self.descriptor, max(size, 1))
        part, self.first = self.first[:size], self.first[size:]
        return part

    def close(self) -> None:
        if not self.closed:
            os.close(self.descriptor)
        super().close()
