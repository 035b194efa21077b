"""What can be asked over HTTP, a file for each subject. `ROUTERS` lists them all."""

from __future__ import annotations

from fastapi import APIRouter

from relwalk.serve.routes import entities, judgements, links, maps, predictions, relations, runs

ROUTERS: tuple[APIRouter, ...] = (
    runs.router,
    entities.router,
    predictions.router,
    relations.router,
    links.router,
    maps.router,
    judgements.router,
)
