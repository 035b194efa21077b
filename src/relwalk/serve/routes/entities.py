"""Entities: searched by what one types, shown as a card, drawn with what is around them."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from relwalk.answers import Answers
from relwalk.errors import RelWalkError
from relwalk.serve import spelling
from relwalk.serve.batching import How
from relwalk.serve.entity import NEW, Role, card, questions, roles
from relwalk.serve.limits import EDGES, NAME, NAMES
from relwalk.serve.neighbourhood import neighbourhood
from relwalk.serve.opened import Opened
from relwalk.serve.service import API, Service, Shared, Steady, answer, id_of

router = APIRouter(prefix=API, tags=["entities"])
Name = Annotated[str, Query(max_length=NAME, description="A name, a label, or the last part of an IRI.")]


@router.get("/entities", summary="Entities by what one has typed")
async def entities(
    request: Request,
    opened: Steady,
    q: Annotated[str, Query(max_length=NAME, description="Some letters; nothing for the best connected.")] = "",
    limit: Annotated[int, Query(ge=1, le=100)] = 10,
) -> Response:
    """Names and labels that begin so, then words in them, then parts, then what is spelled alike."""
    found = await asyncio.to_thread(opened.spelling.search, q, limit)
    names = opened.run.graph.entities
    return answer(request, {"entities": [spelling.as_dict(m, names, opened.degree) for m in found]})


@router.get("/names", summary="Entities by number")
async def names(
    request: Request,
    opened: Steady,
    ids: Annotated[str, Query(max_length=8 * NAMES, description="Numbers as on the map, with commas between.")],
) -> Response:
    """Name, label and number of facts of each."""
    words, count = ids.split(",")[:NAMES], len(opened.run.graph.entities)
    wrong = [w for w in words if not (w.isascii() and w.isdigit() and len(w) < 10 and int(w) < count)]
    if wrong:
        raise RelWalkError(f"ids holds {wrong[0][:60]!r}; expected whole numbers from 0 to {count - 1:,}")
    vocabulary = opened.run.graph.entities
    found = [
        {"id": i, "name": vocabulary.names[i], "label": vocabulary.label(i), "facts": int(opened.degree[i])}
        for i in map(int, words)
    ]
    return answer(request, {"entities": found})


@router.get("/entity", summary="An entity's card")
async def entity(request: Request, opened: Steady, service: Shared, name: Name) -> Response:
    """Known facts, new facts with share and confidence, its roles, and the entities nearest to it."""
    number = await id_of(opened.run.graph.entities, name)
    own = roles(opened.run.graph, number)
    answered = await _new(opened, service, number, own, NEW)
    return answer(request, await asyncio.to_thread(card, opened, number, own, answered))


@router.get("/neighbourhood", summary="What is around an entity")
async def around(
    request: Request,
    opened: Steady,
    service: Shared,
    name: Name,
    known: Annotated[int, Query(ge=0, le=EDGES, description="Known edges at most.")] = 24,
    predicted: Annotated[int, Query(ge=0, le=EDGES, description="Predicted edges at most.")] = 8,
) -> Response:
    """Nodes and edges for a drawing, known and predicted."""
    number = await id_of(opened.run.graph.entities, name)
    own = roles(opened.run.graph, number)
    answered = await _new(opened, service, number, own, min(NEW, predicted)) if predicted else []
    found = await asyncio.to_thread(neighbourhood, opened, number, own, answered, known, predicted)
    return answer(request, found)


async def _new(opened: Opened, service: Service, number: int, own: list[Role], each: int) -> list[Answers]:
    asked = questions(opened.run.graph, number, own)
    return await service.batcher.ask(opened, asked, How(each, only_new=True)) if asked else []
