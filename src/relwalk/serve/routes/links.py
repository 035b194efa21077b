"""Links: those that the graph lacks, why one is predicted, and walks along them.

What finds them imports scipy and polars, which an answer to a question does not need: 70 MB and a second of the start.
They are imported by the thread that does the work, when it is first asked for.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from relwalk.runs.run import Run
from relwalk.serve import limits
from relwalk.serve.service import API, Shared, Steady, answer, id_of

if TYPE_CHECKING:
    from relwalk.discovery.links import Discovery
    from relwalk.serve.why import Why
    from relwalk.theory.walk import Walks

router = APIRouter(prefix=API, tags=["links"])
Name = Annotated[str, Query(max_length=limits.NAME)]
MaybeName = Annotated[str | None, Query(max_length=limits.NAME)]


def _find(run: Run, **how: Any) -> Discovery:
    from relwalk.discovery.links import discover

    return discover(run, progress=False, **how)


def _explain(run: Run, *triple: str, side: Literal["head", "tail"]) -> Why:
    from relwalk.serve.why import why

    return why(run, *triple, side=side)


def _draw(run: Run, **how: Any) -> Walks:
    from relwalk.theory.walk import walk

    return walk(run.model, run.graph, **how)


@router.get("/discover", summary="Links that the graph lacks")
async def discover(
    request: Request,
    opened: Steady,
    service: Shared,
    k: Annotated[int, Query(ge=1, le=limits.ANSWERS, description="How many.")] = 100,
    relation: Annotated[list[str] | None, Query(max_length=100, description="Only of these.")] = None,
    min_confidence: Annotated[float | None, Query(ge=0, le=1)] = None,
    missing: Annotated[
        int | None, Query(ge=1, le=10**9, description="Facts that the graph is thought to lack.")
    ] = None,
    all_questions: Annotated[bool, Query(description="Also of entities not seen in that place.")] = False,
) -> Response:
    """The most confident first, over all questions of the graph. Made once, then kept."""
    chosen = tuple(sorted({await id_of(opened.run.graph.relations, name) for name in relation or ()}))
    names = [opened.run.graph.relations.names[r] for r in chosen] or None
    how = {"k": k, "min_confidence": min_confidence, "missing": missing, "all_questions": all_questions}
    work = partial(_find, opened.run, relations=names, **how)
    found = await service.once(opened, ("discover", chosen, *how.values()), work)
    return answer(request, {"run": opened.name, **found.as_dict(), "remarks": list(found.remarks())})


@router.get("/why", summary="Why a link is predicted")
async def why(
    request: Request,
    opened: Steady,
    service: Shared,
    head: Name,
    relation: Name,
    tail: Name,
    side: Annotated[Literal["head", "tail"], Query(description="What was asked.")] = "tail",
) -> Response:
    """The known facts that support it most, where the answer stands when its entities are learned without them (and, as
    a control, without as many others), and the ways through known facts that lead from head to tail."""
    run = opened.run
    ids = (
        await id_of(run.graph.entities, head),
        await id_of(run.graph.relations, relation),
        await id_of(run.graph.entities, tail),
    )
    work = partial(_explain, run, head, relation, tail, side=side)
    found = await service.once(opened, ("why", *ids, side), work)
    return answer(request, {"run": opened.name, **found.as_dict()})


@router.get("/walk", summary="Walks of the model")
async def walk(
    request: Request,
    opened: Steady,
    service: Shared,
    start: MaybeName = None,
    relation: MaybeName = None,
    hold: Literal["nothing", "entity"] = "nothing",
    steps: Annotated[int, Query(ge=1, le=limits.STEPS)] = 5,
    paths: Annotated[int, Query(ge=1, le=limits.PATHS)] = 10,
    step_size: Annotated[float, Query(ge=0, le=2)] = 0.1,
    temperature: Annotated[float, Query(ge=1e-6, le=1e6)] = 1.0,
    seed: Annotated[int, Query(ge=0, lt=2**63)] = 0,
) -> Response:
    """Paths by name from the learned model, the paper's generative process run forwards; of RelWalk alone."""
    how = {"steps": steps, "paths": paths, "step_size": step_size, "temperature": temperature, "seed": seed}
    work = partial(_draw, opened.run, start=start, relation=relation, hold=hold, **how)
    return answer(request, {"run": opened.name, **(await service.long(work)).as_dict()})
