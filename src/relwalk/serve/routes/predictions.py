"""Questions: one or many, for a tail, a head or a relation; as many answers as asked for, or as cover the true one."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from relwalk.answers import Answers
from relwalk.errors import RelWalkError
from relwalk.prediction import ANSWERS as USUAL
from relwalk.prediction import Query as Asked
from relwalk.prediction import check_queries
from relwalk.serve import limits
from relwalk.serve.batching import How
from relwalk.serve.opened import Opened
from relwalk.serve.service import API, Given, Shared, Steady, answer

router = APIRouter(prefix=API, tags=["predictions"])
MaybeName = Annotated[str | None, Query(max_length=limits.NAME)]
Coverage = Annotated[float | None, Query(gt=0, le=1, description="In place of k: the shortest list that covers.")]
NameField = Annotated[str, Field(max_length=limits.NAME)]


class Question(BaseModel):
    """Two of the three; the third is predicted."""

    model_config = ConfigDict(extra="forbid")
    head: NameField | None = None
    relation: NameField | None = None
    tail: NameField | None = None


class Questions(BaseModel):
    """Many questions, answered in the same way."""

    model_config = ConfigDict(extra="forbid")
    queries: list[Question] = Field(min_length=1, max_length=limits.QUESTIONS)
    k: int | None = Field(None, ge=1, le=limits.ANSWERS)
    only_new: bool = False
    coverage: float | None = Field(None, gt=0, le=1)
    raw: bool = False


@router.get("/predict", summary="One question", responses={200: {"model": Answers}})
async def predict(
    request: Request,
    opened: Steady,
    service: Shared,
    head: MaybeName = None,
    relation: MaybeName = None,
    tail: MaybeName = None,
    k: Annotated[int | None, Query(ge=1, le=limits.ANSWERS, description="How many answers; 10 when not said.")] = None,
    only_new: Annotated[bool, Query(description="Leave out what the graph already says.")] = False,
    coverage: Coverage = None,
    raw: Annotated[bool, Query(description="The model's own p, not calibrated.")] = False,
) -> Response:
    """The best answers to (head, relation, ?), (?, relation, tail) or (head, ?, tail), each with its score, its share
    of p as fitted on valid, and the confidence that it is a fact which the graph lacks."""
    how, asked = How(k, only_new, coverage, raw), (head, relation, tail)
    await _check(opened, [asked], how)
    (found,) = await service.batcher.ask(opened, [asked], how)
    return answer(request, {"run": opened.name, **_limited(found).as_dict()})


@router.post("/predict", summary="Many questions")
async def predict_many(request: Request, opened: Given, service: Shared, many: Questions) -> Response:
    """The same for each of many, in their order."""
    how = How(many.k, many.only_new, many.coverage, many.raw)
    queries: list[Asked] = [(q.head, q.relation, q.tail) for q in many.queries]
    await _check(opened, queries, how)
    found = await service.batcher.ask(opened, queries, how)
    return answer(request, {"run": opened.name, "answers": [_limited(one).as_dict() for one in found]})


async def _check(opened: Opened, queries: list[Asked], how: How) -> None:
    """What cannot be answered is told before it waits with others."""
    if len(queries) * (how.k or USUAL) > limits.CELLS:
        raise RelWalkError(
            f"found {len(queries):,} questions with {how.k or USUAL:,} answers each; expected at most {limits.CELLS:,} "
            "answers together. Ask in parts."
        )
    entities, relations = opened.run.graph.entities, opened.run.graph.relations
    at_once = all(
        name is None or name in known
        for query in queries
        for name, known in zip(query, (entities, relations, entities), strict=True)
    )
    check = partial(check_queries, opened.run, queries, **asdict(how))
    if at_once:
        check()
    else:
        await asyncio.to_thread(check)  # the nearest names take a while to find


def _limited(found: Answers) -> Answers:
    """A list that covers may be as long as the graph: it is cut, and says so."""
    if found.coverage is None or len(found) <= limits.ANSWERS:
        return found
    note = f"{len(found):,} answers cover; these are the first {limits.ANSWERS:,}. {found.note}"
    return Answers(found.head, found.relation, found.tail, found.answers[: limits.ANSWERS], note, found.coverage)
