"""Relations: all of them, a card of each, and pictures of their matrices."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from relwalk.serve import relation as cards
from relwalk.serve.limits import NAME
from relwalk.serve.service import API, Shared, Steady, answer, id_of

router = APIRouter(prefix=API, tags=["relations"])
Name = Annotated[str, Query(max_length=NAME, description="A name, a label, or the last part of an IRI.")]


@router.get("/relations", summary="All relations")
async def relations(request: Request, opened: Steady) -> Response:
    """The most frequent first, with their facts and cardinality."""
    return answer(request, {"relations": await asyncio.to_thread(cards.listing, opened)})


@router.get("/relation", summary="A relation's card")
async def relation(request: Request, opened: Steady, service: Shared, name: Name) -> Response:
    """What it links, how well it is learned, how orthogonal its matrix is, its eigenvalues, and its kin: relations
    that are alike, inverse, or composed with it."""
    number = await id_of(opened.run.graph.relations, name)
    return answer(request, await service.once(opened, ("relation", number), partial(cards.card, opened, number)))


@router.get("/relation/matrix", summary="A heat map", response_class=Response)
async def matrix(
    request: Request,
    opened: Steady,
    service: Shared,
    name: Name,
    which: Annotated[cards.Matrix, Query(description="M, or R1ᵀR1, or R2ᵀR2.")] = "M",
) -> Response:
    """A matrix of a relation as PNG: zero is transparent."""
    number = await id_of(opened.run.graph.relations, name)
    png = await service.once(opened, ("matrix", number, which), partial(cards.picture, opened, number, which))
    return Response(png, 200, {"ETag": request.state.etag, "Cache-Control": "private, no-cache"}, "image/png")
