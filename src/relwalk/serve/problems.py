"""Errors over HTTP: problem details (RFC 9457) with the words and the cure that the command line has."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from relwalk.checks import shown
from relwalk.errors import AmbiguousName, RelWalkError, UnknownChoice, UnknownName
from relwalk.serve.batching import Crowded

LOG = logging.getLogger("relwalk.serve")
KIND = "application/problem+json"
CROWDED = "too many questions wait already. Ask again in a second."


class NotModified(Exception):
    """The reader has this answer already."""

    def __init__(self, etag: str) -> None:
        self.etag = etag


def problem(status: int, code: str, detail: str, **more: Any) -> Response:
    """A problem as JSON; `code` names its kind for programs."""
    content = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "code": code}
    headers = {"Retry-After": "1"} if status == 503 else {}
    return JSONResponse({**content, "detail": detail, **more}, status, headers, media_type=KIND)


def from_error(error: RelWalkError) -> Response:
    """An error of relwalk's own."""
    if isinstance(error, AmbiguousName):
        return problem(409, "ambiguous-name", str(error), kind=error.kind, nearest=list(error.nearest))
    if isinstance(error, UnknownName):
        return problem(404, "unknown-name", str(error), kind=error.kind, nearest=list(error.nearest))
    if isinstance(error, UnknownChoice):
        return problem(404, "unknown-choice", str(error))
    return problem(400, "refused", str(error))


def invalid(error: RequestValidationError) -> Response:
    """A value of the wrong kind or beyond its limit: where it stands, what was found, what was expected."""
    faults = [(".".join(str(p) for p in e["loc"]), e.get("msg", ""), e.get("input")) for e in error.errors()]
    where, words, found = faults[0]
    detail = f"{where} is {_printable(found)}; {words[:1].lower()}{words[1:]}. The page /docs says what is taken."
    return problem(422, "invalid", detail, faults=[{"where": w, "what": m} for w, m, _ in faults[:20]])


def _printable(value: object) -> str:
    return shown(value).encode("utf-8", "backslashreplace").decode()


def install(app: FastAPI) -> None:
    """Every way in which an answer can fail."""

    def known(_: Request, error: Exception) -> Response:
        assert isinstance(error, RelWalkError)
        return from_error(error)

    def wrong(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return invalid(error)

    def other(_: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        cure = {404: "Nothing is here. The page /docs lists what there is.", 405: "It takes other methods: see /docs."}
        return problem(error.status_code, "http", cure.get(error.status_code, str(error.detail)))

    def same(_: Request, error: Exception) -> Response:
        assert isinstance(error, NotModified)
        return Response(None, 304, {"ETag": error.etag, "Cache-Control": "private, no-cache"})

    app.add_exception_handler(RelWalkError, known)
    app.add_exception_handler(RequestValidationError, wrong)
    app.add_exception_handler(HTTPException, other)
    app.add_exception_handler(NotModified, same)
    app.add_exception_handler(Crowded, lambda _, __: problem(503, "crowded", CROWDED))


def unforeseen(error: BaseException) -> Response:
    """A fault of ours: told to the log, and to the reader that there was one."""
    LOG.error("an answer failed", exc_info=error)
    return problem(500, "fault", "relwalk failed to answer; its log says where. Please report it.")
