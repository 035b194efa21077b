"""The map of all entities: whether it is made, making it, and its points."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from relwalk.errors import RelWalkError
from relwalk.serve.opened import Opened
from relwalk.serve.service import API, Given, Service, Shared, Steady, answer

router = APIRouter(prefix=API, tags=["map"])


def _state(opened: Opened, service: Service) -> dict[str, object]:
    now = service.maps.progress(opened)
    found = service.maps.ready(opened)
    state = {"run": opened.name, "state": now.state, "done": now.done, "total": now.total, "what": now.what}
    if found is None:
        return state
    _, roles = found.as_bytes(opened.run.graph)
    of = {"points": len(found.ids), "entities": len(opened.run.graph.entities)}
    return {**state, **of, "roles": list(roles), "named": service.maps.named(opened)}


@router.get("/map", summary="How far the map is")
async def state(request: Request, opened: Given, service: Shared) -> Response:
    """none, making (with how much is done of how much), ready, or failed (with the reason)."""
    return answer(request, _state(opened, service))


@router.post("/map", summary="Make the map", status_code=202)
async def make(request: Request, opened: Given, service: Shared) -> Response:
    """Starts to lay it out, unless it is there or under way. It is kept with the run."""
    service.maps.begin(opened)
    return answer(request, _state(opened, service), 202)


@router.get("/map/points", summary="The points of the map", response_class=Response)
async def points(request: Request, opened: Steady, service: Shared) -> Response:
    """Little-endian columns one after the other: ids (4 bytes each), x, y (2 bytes each, 0 to 65535), role (1 byte)."""
    found = service.maps.ready(opened)
    if found is None:
        raise RelWalkError("the map is not made yet. Ask for it by POST /api/v1/map.")
    content, _ = found.as_bytes(opened.run.graph)
    headers = {"ETag": request.state.etag, "Cache-Control": "private, no-cache"}
    return Response(content, 200, headers, "application/octet-stream")
