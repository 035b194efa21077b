"""Questions that wait together are answered by one product.

One thread answers. While it does, others arrive and wait; when it is done it takes all that ask in the same way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from relwalk.answers import Answers
from relwalk.prediction import ANSWERS, Query, predict_many
from relwalk.serve.limits import WAITING
from relwalk.serve.opened import Opened

MOST = 256  # questions answered together: more delay those that come after them


class Crowded(Exception):
    """So many questions wait that one more would wait too long."""


@dataclass(frozen=True)
class How:
    """How questions are answered; those of the same kind can be answered together, whatever their k."""

    k: int | None = None
    only_new: bool = False
    coverage: float | None = None
    raw: bool = False

    @property
    def kind(self) -> How:
        return replace(self, k=None)


@dataclass(frozen=True, eq=False)
class _Waiting:
    opened: Opened
    queries: list[Query]
    how: How
    found: asyncio.Future[list[Answers]]


class Batcher:
    """A queue of questions in front of one thread. `on_batch` is told the size of each batch."""

    def __init__(self, on_batch: Callable[[int], object] = lambda size: None) -> None:
        self._waiting: list[_Waiting] = []
        self._thread = ThreadPoolExecutor(1, "answers")
        self._busy = False
        self._on_batch = on_batch

    @property
    def waiting(self) -> int:
        return sum(len(one.queries) for one in self._waiting)

    async def ask(self, opened: Opened, queries: list[Query], how: How) -> list[Answers]:
        """The answers to each question, as `predict_many` gives them. Names must have been looked up before."""
        if self._waiting and self.waiting + len(queries) > WAITING:
            raise Crowded
        one = _Waiting(opened, queries, how, asyncio.get_running_loop().create_future())
        self._waiting.append(one)
        if not self._busy:
            self._busy = True
            task = asyncio.create_task(self._work())
            task.add_done_callback(lambda done: None)
        return await one.found

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while batch := self._take():
                self._on_batch(sum(len(one.queries) for one in batch))
                try:
                    found = await loop.run_in_executor(self._thread, _answer, batch)
                except Exception as error:
                    for one in batch:
                        if not one.found.done():
                            one.found.set_exception(error)
                    continue
                for one, answers in zip(batch, found, strict=True):
                    if not one.found.done():
                        one.found.set_result(answers)
        finally:
            self._busy = False

    def _take(self) -> list[_Waiting]:
        """The first that waits, and all that can be answered with it."""
        waiting = [one for one in self._waiting if not one.found.done()]
        batch: list[_Waiting] = []
        size = 0
        for one in waiting:
            alike = one.opened is waiting[0].opened and one.how.kind == waiting[0].how.kind
            if alike and (not batch or size + len(one.queries) <= MOST):
                batch.append(one)
                size += len(one.queries)
        taken = set(map(id, batch))
        self._waiting = [one for one in waiting if id(one) not in taken]
        return batch

    def close(self) -> None:
        self._thread.shutdown(wait=True, cancel_futures=True)


def _answer(batch: list[_Waiting]) -> list[list[Answers]]:
    """Each gets as many answers as it asked for; all are looked for together, as many as the greediest wants."""
    kind = batch[0].how.kind
    most = None if kind.coverage is not None else max(one.how.k or ANSWERS for one in batch)
    asked = [query for one in batch for query in one.queries]
    how = {"only_new": kind.only_new, "coverage": kind.coverage, "raw": kind.raw}
    opened = batch[0].opened
    answers = predict_many(opened.run, asked, k=most, index=opened.index, **how)  # type: ignore[arg-type]
    found = []
    for one in batch:
        own = [next(answers) for _ in one.queries]
        few = one.how.k or ANSWERS
        found.append(own if most is None else [replace(a, answers=a.answers[:few]) for a in own])
    return found
