"""What the routes share: the runs, the queue of questions, the thread for what takes long, maps and judgements."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Query, Request
from starlette.responses import Response

from relwalk import __version__
from relwalk.graph.vocabulary import Vocabulary
from relwalk.serve.batching import Batcher
from relwalk.serve.curation import Judgements
from relwalk.serve.limits import NAME
from relwalk.serve.map_maker import MapMaker
from relwalk.serve.measures import Measures
from relwalk.serve.opened import Opened, Shelf
from relwalk.serve.problems import NotModified

Value = TypeVar("Value")
API = "/api/v1"  # where all that is of a run is asked for
KEPT = 32  # lists that took long to make, of each run


class Service:
    """One for each application."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf
        self.measures = Measures()
        self.batcher = Batcher(self.measures.batch.observe)
        self.maps = MapMaker()
        self.ready = True
        self._long = ThreadPoolExecutor(2, "long")
        self._under_way: dict[Any, asyncio.Future[Any]] = {}
        self._judgements: dict[Path, Judgements] = {}
        for opened in shelf:
            self.judgements(opened)
        self.count()

    def count(self) -> None:
        """Which runs are served now."""
        self.measures.run.clear()
        for opened in self.shelf:
            self.measures.run.labels(opened.name, opened.run.graph.name, opened.fingerprint).set(1)

    def judgements(self, opened: Opened) -> Judgements:
        if opened.folder not in self._judgements:
            self._judgements[opened.folder] = Judgements(opened.folder)
        return self._judgements[opened.folder]

    async def long(self, work: Callable[[], Value]) -> Value:
        """Work that takes longer than a question, two at a time."""
        return await asyncio.get_running_loop().run_in_executor(self._long, work)

    async def once(self, opened: Opened, key: Any, work: Callable[[], Value]) -> Value:
        """The same, kept: who asks for it meanwhile waits for the first, and one who gives up does not stop it."""
        if key in opened.made:
            found: Value = opened.made[key]
            return found
        place = (opened.fingerprint, key)
        if place not in self._under_way:
            self._under_way[place] = asyncio.ensure_future(self._keep(opened, key, work, place))
        return await asyncio.shield(self._under_way[place])

    async def _keep(self, opened: Opened, key: Any, work: Callable[[], Value], place: Any) -> Value:
        try:
            found = await self.long(work)
            lists = [name for name in opened.made if isinstance(name, tuple)]
            if len(lists) >= KEPT:
                opened.made.pop(lists[0], None)
            opened.made[key] = found
            return found
        finally:
            self._under_way.pop(place, None)

    async def close(self) -> None:
        self.ready = False
        await self.maps.close()
        self.batcher.close()
        self._long.shutdown(wait=False, cancel_futures=True)


async def service_of(request: Request) -> Service:
    """Those that routes depend on are coroutines: what is none would be given a thread of its own, and wait for it."""
    found: Service = request.app.state.service
    return found


RunName = Annotated[str | None, Query(max_length=NAME, description="Which run, by name; the first when not said.")]


async def opened_of(service: Annotated[Service, Depends(service_of)], run: RunName = None) -> Opened:
    """The run that is asked about."""
    return service.shelf.get(run)


async def unchanged(request: Request, opened: Annotated[Opened, Depends(opened_of)]) -> Opened:
    """The same, of an answer that changes only with the run: whoever has it already is told so."""
    etag = etag_of(opened)
    if etag in [tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")]:
        raise NotModified(etag)
    request.state.etag = etag
    return opened


async def id_of(vocabulary: Vocabulary, name: str) -> int:
    """The id of a name. To find the nearest to one that is not there takes a while, and nobody else waits for it."""
    return vocabulary.id(name) if name in vocabulary else await asyncio.to_thread(vocabulary.id, name)


def etag_of(opened: Opened) -> str:
    return f'"{opened.fingerprint}-{__version__}"'


def answer(request: Request, content: Any, status: int = 200) -> Response:
    """JSON; with the run's ETag where nothing else can change it."""
    headers = {}
    if (etag := getattr(request.state, "etag", None)) is not None:
        headers = {"ETag": etag, "Cache-Control": "private, no-cache"}
    words = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Response(words.encode("utf-8", "replace"), status, headers, media_type="application/json")


Given = Annotated[Opened, Depends(opened_of)]
Steady = Annotated[Opened, Depends(unchanged)]
Shared = Annotated[Service, Depends(service_of)]
