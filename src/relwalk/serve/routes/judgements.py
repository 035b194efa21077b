"""What people say of predicted links: kept with the run, and given out for training."""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from relwalk.errors import RelWalkError
from relwalk.graph.judgements import Judgement, Verdict
from relwalk.serve.limits import NAME
from relwalk.serve.service import API, Given, Shared, answer, id_of

router = APIRouter(prefix=API, tags=["judgements"])
NameField = Annotated[str, Field(min_length=1, max_length=NAME)]


class Said(BaseModel):
    """A link, and what is said of it: accept, reject, later, or none to take an earlier word back."""

    model_config = ConfigDict(extra="forbid")
    head: NameField
    relation: NameField
    tail: NameField
    verdict: Verdict


@router.get("/judgements", summary="What was said")
async def judgements(request: Request, opened: Given, service: Shared) -> Response:
    """Of each link the last word."""
    return answer(request, {"run": opened.name, "judgements": service.judgements(opened).listing(opened.run.graph)})


@router.post("/judgements", summary="Judge a link")
async def judge(request: Request, opened: Given, service: Shared, said: Said) -> Response:
    """Kept in the run's folder; on the disk when this is answered."""
    graph = opened.run.graph
    names = graph.entities.names, graph.relations.names
    ids = (
        await id_of(graph.entities, said.head),
        await id_of(graph.relations, said.relation),
        await id_of(graph.entities, said.tail),
    )
    one = Judgement(names[0][ids[0]], names[1][ids[1]], names[0][ids[2]], said.verdict)
    own = service.judgements(opened)
    try:
        await asyncio.to_thread(own.add, one)
    except OSError as error:
        raise RelWalkError(
            f"{own.path.name} cannot be written ({error.strerror}). Make the run's folder writable."
        ) from error
    return answer(request, {"run": opened.name, **one.as_dict()})


@router.get("/judgements/export", summary="Judgements as a file", response_class=Response)
async def export(
    opened: Given, service: Shared, format: Annotated[Literal["tsv", "jsonl"], Query()] = "tsv"
) -> Response:
    """Accepted and rejected links for `relwalk train --judged FILE`, as a table or as JSON Lines."""
    own = service.judgements(opened)
    text = own.as_tsv() if format == "tsv" else own.as_jsonl(opened.run.graph)
    kinds = {"tsv": "text/tab-separated-values; charset=utf-8", "jsonl": "application/x-ndjson"}
    name = f'attachment; filename="judgements.{format}"'
    return Response(text.encode("utf-8", "replace"), 200, {"Content-Disposition": name}, kinds[format])
