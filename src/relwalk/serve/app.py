"""The application: routes, the page, health, and the guard around all of it."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib.resources import files
from typing import Any

from fastapi import FastAPI, Request
from pydantic import BaseModel
from starlette.responses import Response

from relwalk import __version__
from relwalk.serve import problems
from relwalk.serve.guard import Guard
from relwalk.serve.opened import Shelf
from relwalk.serve.routes import ROUTERS
from relwalk.serve.service import Service
from relwalk.serve.watch import keep_watch

KINDS = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml", "txt": "text/plain"}
WORDS = (
    "A trained knowledge graph over HTTP. Names may be labels or the last part of an IRI. Every error is a problem "
    "(RFC 9457) with the cure in its detail."
)


class Problem(BaseModel):
    """What went wrong, and the cure; `nearest` are names that may have been meant."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    nearest: list[str] | None = None


PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"description": words, "content": {problems.KIND: {"schema": {"$ref": "#/components/schemas/Problem"}}}}
    for status, words in {
        400: "What was asked cannot be done",
        401: "The token is missing or wrong",
        404: "No such name; the nearest are offered",
        409: "Several have this name",
        413: "The body is too long",
        415: "The body is not JSON",
        422: "A value is of the wrong kind, or beyond its limit",
        503: "Too many wait, or it took too long",
    }.items()
}


def create_app(shelf: Shelf, *, token: str | None = None, local: bool = True, watch: float | None = None) -> FastAPI:
    """The service of some runs. `token` guards what is of a run; `local` answers to this machine's names alone; with
    `watch` folders are looked at every so many seconds, and a new run is swapped in whole."""
    service = Service(shelf)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        watcher = asyncio.create_task(keep_watch(service, watch)) if watch is not None else None
        yield
        if watcher is not None:
            watcher.cancel()
            with suppress(asyncio.CancelledError):
                await watcher
        await service.close()

    app = FastAPI(
        title="relwalk",
        version=__version__,
        description=WORDS,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
    )
    app.state.service = service
    for router in ROUTERS:
        app.include_router(router, responses=PROBLEMS)
    problems.install(app)
    app.add_exception_handler(Exception, lambda _, error: problems.problem(500, "fault", "relwalk failed to answer."))
    _health(app, service)
    _page(app)
    _describe(app)
    app.add_middleware(Guard, measures=service.measures, token=token, local=local)
    return app


def _health(app: FastAPI, service: Service) -> None:
    @app.get("/healthz", tags=["health"], summary="Whether it lives")
    async def healthz() -> dict[str, str]:
        return {"status": "alive"}

    @app.get("/readyz", tags=["health"], summary="Whether it answers", responses={503: PROBLEMS[503]})
    async def readyz() -> Response:
        if not service.ready:
            return problems.problem(503, "ending", "the service is ending.")
        return Response('{"status":"ready"}', media_type="application/json")

    @app.get("/metrics", tags=["health"], summary="Figures for Prometheus", response_class=Response)
    async def metrics() -> Response:
        return Response(service.measures.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


def _page(app: FastAPI) -> None:
    """The files of the page, read once: no path of a request ever reaches the file system."""
    folder = files("relwalk.serve") / "page"
    content = {file.name: file.read_bytes() for file in folder.iterdir() if file.name.rpartition(".")[2] in KINDS}
    etags = {name: f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"' for name, body in content.items()}

    def send(request: Request, name: str) -> Response:
        headers = {"ETag": etags[name], "Cache-Control": "no-cache"}
        if etags[name] in request.headers.get("if-none-match", ""):
            return Response(None, 304, headers)
        return Response(content[name], 200, headers, f"{KINDS[name.rpartition('.')[2]]}; charset=utf-8")

    @app.get("/", include_in_schema=False)
    async def index(request: Request) -> Response:
        return send(request, "index.html")

    @app.get("/docs", include_in_schema=False)
    async def docs(request: Request) -> Response:
        return send(request, "docs.html")

    @app.get("/page/{name}", include_in_schema=False)
    async def part(request: Request, name: str) -> Response:
        if name not in content:
            return problems.problem(404, "http", "Nothing is here. The page /docs lists what there is.")
        return send(request, name)


def _describe(app: FastAPI) -> None:
    """The description of the API, with problems in it and the token."""
    made = app.openapi

    def openapi() -> dict[str, Any]:
        schema = made()
        parts = schema.setdefault("components", {})
        parts.setdefault("schemas", {})["Problem"] = Problem.model_json_schema()
        parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        schema["security"] = [{}, {"token": []}]
        return schema

    app.openapi = openapi  # type: ignore[method-assign]
