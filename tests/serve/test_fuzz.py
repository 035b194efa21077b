"""Every endpoint asked at random, from its own description: no answer is a failure of ours."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

from relwalk.serve.app import create_app
from relwalk.serve.opened import Shelf, open_folder

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed: the API was not fuzzed")
EACH = 12  # requests of an operation


@pytest.fixture(scope="module")
def api(learned: Path, tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    folder = tmp_path_factory.mktemp("fuzzed") / "world"
    shutil.copytree(learned, folder)
    app = create_app(Shelf([open_folder(folder, "world")]))
    yield schemathesis.openapi.from_asgi("/openapi.json", app)
    asyncio.run(app.state.service.close())


schema = schemathesis.pytest.from_fixture("api")


@schema.parametrize()
@settings(
    max_examples=EACH,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_no_request_makes_it_fail(case) -> None:  # type: ignore[no-untyped-def]
    if case.method == "POST" and case.path.endswith("/map"):
        return  # starts a process, whatever is asked
    answer = case.call(headers={"Host": "127.0.0.1"})
    assert answer.status_code < 500, answer.text
    assert "Traceback" not in answer.text
    if answer.status_code >= 400:
        assert answer.headers["content-type"] == ["application/problem+json"]
        assert answer.json()["detail"]
