"""Every endpoint asked at random, from its own description: no answer is a failure of ours."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from relwalk.experiment import train
from relwalk.serve.app import create_app
from relwalk.serve.opened import Shelf, open_folder
from tests.conftest import TEST, TRAIN, VALID, make_graph

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed: the API was not fuzzed")
EACH = 20  # requests of an operation


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("fuzzed") / "run"
    train(make_graph(TRAIN, VALID, TEST), dim=4, epochs=1, threads=1, out=folder)
    app = create_app(Shelf([open_folder(folder, "run")]), local=False)
    yield schemathesis.openapi.from_asgi("/openapi.json", app)
    asyncio.run(app.state.service.close())


def check(case: Any) -> None:
    answer = case.call(timeout=600)
    assert answer.status_code < 500, answer.text
    assert "Traceback" not in answer.text
    if answer.status_code >= 400:
        assert answer.headers["content-type"] == ["application/problem+json"]
        assert answer.json()["detail"]


def test_no_request_makes_it_fail(described: Any) -> None:
    asked = []
    for found in described.get_all_operations():
        operation = found.ok()
        name = f"{operation.method.upper()} {operation.path}"
        if name == "POST /api/v1/map":
            continue  # starts a process, whatever is asked
        asked.append(name)
        how = settings(
            max_examples=EACH,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        how(given(case=operation.as_strategy())(check))()
    assert len(asked) >= 18 and "GET /api/v1/predict" in asked and "POST /api/v1/judgements" in asked
