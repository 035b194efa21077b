"""A run of the embedded graph, and a client that asks its service without a socket."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from relwalk.experiment import train
from relwalk.graph.graph import Graph
from relwalk.runs.run import Run, load_run
from relwalk.serve.app import create_app
from relwalk.serve.opened import Shelf, open_folder

API = "/api/v1"


@pytest.fixture(scope="session")
def learned(world: Graph, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run; not to be written to."""
    folder = tmp_path_factory.mktemp("served") / "world"
    train(world, dim=16, epochs=8, validate_every=8, threads=1, out=folder)
    return folder


@pytest.fixture(scope="session")
def run(learned: Path) -> Run:
    return load_run(learned)


@pytest.fixture
def folder(learned: Path, tmp_path: Path) -> Path:
    """A copy that a test may write to."""
    return Path(shutil.copytree(learned, tmp_path / "world"))


class Client:
    """Asks an application, one request or several at once."""

    def __init__(self, app: Any, **headers: str) -> None:
        self.app, self.headers = app, headers

    def together(self, *work: Callable[[httpx.AsyncClient], Any]) -> list[httpx.Response]:
        async def all_of_it() -> list[httpx.Response]:
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(
                transport=transport, base_url="http://127.0.0.1:8765", headers=self.headers
            ) as client:
                return await asyncio.gather(*(one(client) for one in work))

        return asyncio.run(all_of_it())

    def get(self, path: str, *, headers: dict[str, str] | None = None, **params: Any) -> httpx.Response:
        return self.together(lambda c: c.get(path, params=params, headers=headers))[0]

    def post(self, path: str, content: Any, **more: Any) -> httpx.Response:
        return self.together(lambda c: c.post(path, json=content, **more))[0]

    def ask(self, path: str, **params: Any) -> Any:
        found = self.get(API + path, **params)
        assert found.status_code == 200, found.text
        return found.json()


@pytest.fixture(scope="module")
def served(learned: Path) -> Iterator[Client]:
    app = create_app(Shelf([open_folder(learned, "world")]))
    yield Client(app)
    asyncio.run(app.state.service.close())
