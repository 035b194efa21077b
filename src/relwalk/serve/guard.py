"""What every request passes: who asks, how much, for how long; and what every answer carries.

No page of another site may ask: the name it was called by must be the service's own, and what changes something must
be JSON, which a browser asks leave for first, and gets none.
"""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response

from relwalk.serve.limits import BODY, SECONDS
from relwalk.serve.measures import Measures
from relwalk.serve.problems import problem, unforeseen

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
OPEN = ("/api/", "/metrics")  # what a token guards; the page itself holds nothing of a run
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
LATE = f"the answer took longer than {SECONDS:g} s. What takes long is kept when it is made: ask again in a while."


class Guard:
    """Around the application. A `token` is asked for when there is one; `local` answers to this machine's names."""

    def __init__(self, app: App, *, measures: Measures, token: str | None = None, local: bool = True) -> None:
        self.app, self.measures, self.local = app, measures, local
        self.token = token.encode() if token is not None else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.perf_counter(), 500

        async def sending(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        self.measures.under_way.inc()
        try:
            await self._answer(scope, receive, sending)
        finally:
            self.measures.under_way.dec()
            route = getattr(scope.get("route"), "path", None) or "other"
            self.measures.requests.labels(scope["method"], route, str(status)).inc()
            self.measures.seconds.labels(route).observe(time.perf_counter() - began)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = self._refused(scope)
        body = b""
        if refused is None and scope["method"] not in ("GET", "HEAD"):
            refused, body = await _read(receive)
        if refused is not None:
            await refused(scope, receive, send)
            return
        started = False

        async def replayed() -> MutableMapping[str, Any]:
            nonlocal body
            if body is not None:
                content, body = body, None  # type: ignore[assignment]
                return {"type": "http.request", "body": content, "more_body": False}
            return await receive()

        async def watched(message: MutableMapping[str, Any]) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            async with asyncio.timeout(SECONDS):
                await self.app(scope, replayed, watched)
        except TimeoutError:
            if not started:
                await problem(503, "late", LATE)(scope, receive, send)
        except Exception as error:
            failure = unforeseen(error)
            if not started:
                await failure(scope, receive, send)

    def _refused(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if self.local and _name(headers.get("host", "")) not in LOOPBACK:
            words = "this service answers to localhost alone. Open http://127.0.0.1, or serve with --host and --token."
            return problem(421, "other-host", words)
        guarded = scope["path"].startswith(OPEN)
        if self.token is not None and guarded and not self._has_token(headers):
            words = "this service asks for a token. Send it as the header: Authorization: Bearer TOKEN."
            refused = problem(401, "token", words)
            refused.headers["WWW-Authenticate"] = "Bearer"
            return refused
        if scope["method"] in ("GET", "HEAD"):
            return None
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return problem(403, "other-site", "pages of other sites cannot ask for this.")
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if scope["method"] == "POST" and kind != "application/json":
            return problem(415, "not-json", f"found a body of {kind or 'no type'}; expected application/json.")
        return None

    def _has_token(self, headers: Headers) -> bool:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        own = self.token or b""
        return hmac.compare_digest(given.strip().encode("utf-8", "replace"), own) and scheme.lower() == "bearer"


async def _read(receive: Receive) -> tuple[Response | None, bytes]:
    """The body, or that it is too long."""
    body, more = b"", True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return problem(400, "gone", "the body ended early."), b""
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > BODY:
            with suppress(Exception):
                while more:  # read to its end, or the one who sends it never hears why
                    more = (await receive()).get("more_body", False)
            return problem(413, "too-long", f"found a body of more than {BODY:,} bytes; send it in parts."), b""
    return None, body


def _name(host: str) -> str:
    """A host without its port."""
    bare = host.rpartition(":")[0] if ":" in host and not host.endswith("]") else host
    return bare.lower()
