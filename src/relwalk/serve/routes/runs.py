"""The runs that are served."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from relwalk.serve.service import API, Shared, answer

router = APIRouter(prefix=API, tags=["runs"])


@router.get("/runs", summary="The runs that are served")
async def runs(request: Request, service: Shared) -> Response:
    """Name, graph, sizes, model, state and fingerprint of each; the first is meant where a request names none."""
    return answer(request, {"runs": [opened.as_dict() for opened in service.shelf]})
