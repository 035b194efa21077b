"""A training asked to stop by a signal does so between two steps, when everything can be saved."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from relwalk.errors import Interrupted


class StopRequest:
    """Whether a signal came, and which: the trainer asks between steps."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self._breaking = False

    def __call__(self) -> bool:
        return self.signal is not None

    @contextmanager
    def breaking(self) -> Iterator[None]:
        """Within, a signal does not wait for the end: `Interrupted` is raised at once. For what only reads."""
        self._breaking = True
        try:
            if self.signal is not None:
                raise Interrupted(0)
            yield
        finally:
            self._breaking = False

    def receive(self, number: int) -> None:
        self.signal = number
        if self._breaking:
            self._breaking = False
            raise Interrupted(0)


@contextmanager
def stop_on(*signals: signal.Signals, then: Any = None) -> Iterator[StopRequest]:
    """Within, the first of these signals is a request to stop; a second one does `then`, or what it did before.

    A signal that is ignored (nohup, a background job) stays so; outside of the main thread nothing is caught.
    """
    request = StopRequest()
    before: dict[signal.Signals, Any] = {}

    def receive(number: int, frame: FrameType | None) -> None:
        for caught, earlier in before.items():
            signal.signal(caught, earlier if then is None else then)
        request.receive(number)

    if threading.current_thread() is threading.main_thread():
        for wanted in signals:
            earlier = signal.getsignal(wanted)
            if earlier not in (signal.SIG_IGN, None):
                before[wanted] = earlier
                signal.signal(wanted, receive)
    try:
        yield request
    finally:
        for caught, earlier in before.items():
            signal.signal(caught, earlier)
