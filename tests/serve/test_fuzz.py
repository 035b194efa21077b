"""Every endpoint asked at random, from its own description: no answer is a failure of ours."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from relwalk.serve.app import create_app
from relwalk.serve.opened import Shelf, open_folder

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed: the API was not fuzzed")
EACH = 10  # requests of an operation


@pytest.fixture(scope="module")
def described(learned: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("fuzzed") / "world"
    shutil.copytree(learned, folder)
    app = create_app(Shelf([open_folder(folder, "world")]), local=False)
    yield schemathesis.openapi.from_asgi("/openapi.json", app)
    asyncio.run(app.state.service.close())


def check(case: Any) -> None:
    answer = case.call()
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
