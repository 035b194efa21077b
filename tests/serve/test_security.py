"""Who may ask, how much, and that names stay names."""

from __future__ import annotations

import asyncio
import logging
import socket
from pathlib import Path

import httpx
import pytest

from relwalk.errors import RelWalkError
from relwalk.experiment import train
from relwalk.graph.graph import Graph
from relwalk.graph.vocabulary import Vocabulary
from relwalk.serve import batching, guard, limits
from relwalk.serve.app import create_app
from relwalk.serve.batching import Batcher, Crowded, How
from relwalk.serve.opened import Shelf, open_folder
from relwalk.serve.server import bound, check_token, is_loopback
from tests.conftest import TEST, TRAIN, VALID, make_graph
from tests.serve.conftest import API, Client

SECRET = "a-secret-of-some-length"
SCRIPTS = ("<script>alert(1)</script>", "a & b", '"><img src=x onerror=alert(1)>', "../../etc/passwd", "e")


@pytest.fixture(scope="module")
def guarded(learned: Path) -> Client:
    return Client(create_app(Shelf([open_folder(learned, "world")]), token=SECRET, local=False))


def test_what_is_of_a_run_needs_the_token(guarded: Client) -> None:
    for headers in (
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": SECRET},
        {"Authorization": f"Basic {SECRET}"},
    ):
        for path in (f"{API}/runs", f"{API}/judgements", "/metrics", f"{API}/nowhere"):
            found = guarded.get(path, headers=headers)
            assert found.status_code == 401 and found.headers["www-authenticate"] == "Bearer", path
            assert SECRET not in found.text
    assert guarded.get(f"{API}/runs", headers={"Authorization": f"Bearer {SECRET}"}).status_code == 200
    assert guarded.get("/").status_code == guarded.get("/healthz").status_code == 200


def test_the_token_is_compared_whole_and_never_logged(
    guarded: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    compared = []

    def compare(a: bytes, b: bytes) -> bool:
        compared.append((a, b))
        return a == b

    monkeypatch.setattr(guard.hmac, "compare_digest", compare)
    with caplog.at_level(logging.DEBUG):
        guarded.get(f"{API}/runs", headers={"Authorization": f"Bearer {SECRET}"})
        guarded.get(f"{API}/runs", headers={"Authorization": "Bearer guess"})
    assert compared == [(SECRET.encode(), SECRET.encode()), (b"guess", SECRET.encode())]
    assert SECRET not in caplog.text
    assert SECRET not in guarded.get("/metrics", headers={"Authorization": f"Bearer {SECRET}"}).text


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.4", "::", "example.org"])
def test_a_public_host_needs_a_token(host: str) -> None:
    assert not is_loopback(host)
    with pytest.raises(RelWalkError, match="--token"):
        check_token(host, False, None)
    check_token(host, False, SECRET)
    with pytest.raises(RelWalkError, match="expected 8 to 1000"):
        check_token(host, False, "short")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.9.9.9"])
def test_loopback_needs_none(host: str) -> None:
    assert is_loopback(host)
    check_token(host, True, None)


def test_every_answer_carries_the_headers(served: Client) -> None:
    for path in ("/", "/docs", "/page/style.css", f"{API}/runs", f"{API}/nowhere", "/metrics"):
        found = served.get(path)
        policy = found.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "script-src 'self'" in policy and "unsafe" not in policy, path
        assert found.headers["x-content-type-options"] == "nosniff" and found.headers["x-frame-options"] == "DENY"
        assert found.headers["referrer-policy"] == "no-referrer" and "access-control-allow-origin" not in found.headers


def test_other_sites_cannot_ask(served: Client) -> None:
    allowed = served.together(
        lambda c: c.options(
            f"{API}/judgements", headers={"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
        )
    )[0]
    assert allowed.status_code >= 400 and "access-control-allow-origin" not in allowed.headers
    said = {"head": "Kyoto", "relation": "near", "tail": "Osaka", "verdict": "accept"}
    cross = served.post(f"{API}/judgements", said, headers={"Sec-Fetch-Site": "cross-site"})
    assert cross.status_code == 403
    plain = served.together(
        lambda c: c.post(f"{API}/judgements", content=str(said), headers={"Content-Type": "text/plain"})
    )[0]
    assert plain.status_code == 415
    rebound = served.get(f"{API}/runs", headers={"Host": "evil.example:8765"})
    assert rebound.status_code == 421 and "localhost" in rebound.json()["detail"]
    for name in ("localhost:1", "127.0.0.1", "[::1]:8765"):
        assert served.get(f"{API}/runs", headers={"Host": name}).status_code == 200
    assert served.ask("/judgements")["judgements"] == []


@pytest.mark.parametrize(
    "path",
    [
        "/page/../app.py",
        "/page/%2e%2e/app.py",
        "/page/..%2fapp.py",
        "/page//etc/passwd",
        "/page/__init__.py",
        "/../run.json",
    ],
)
def test_no_path_leads_to_the_file_system(path: str, served: Client) -> None:
    raw = httpx.URL("http://127.0.0.1:8765").copy_with(raw_path=path.encode())
    assert served.together(lambda c: c.get(raw))[0].status_code == 404


def test_a_body_that_is_too_long_or_no_json_is_refused(served: Client) -> None:
    many = {"queries": [{"head": "x" * 900, "relation": "near"}] * 1000, "k": 1, "raw": True}
    assert served.post(f"{API}/predict", {**many, "queries": many["queries"] * 2}).status_code == 413
    wrong = {"Content-Type": "application/json"}
    assert served.together(lambda c: c.post(f"{API}/predict", content=b"{", headers=wrong))[0].status_code == 422
    assert served.post(f"{API}/predict", {"queries": []}).status_code == 422
    assert served.post(f"{API}/predict", {"queries": [{}] * 1001}).status_code == 422
    assert served.post(f"{API}/predict", {"queries": [{"head": "x", "other": 1}]}).status_code == 422
    asked = {"queries": [{"head": "Kyoto", "relation": "near"}] * 200, "k": 1000}
    assert "Ask in parts" in served.post(f"{API}/predict", asked).json()["detail"]


def test_an_answer_that_takes_too_long_is_given_up(learned: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "SECONDS", 0.05)
    app = create_app(Shelf([open_folder(learned, "world")]))

    @app.get("/api/v1/slow")
    async def slow() -> None:
        await asyncio.sleep(5)

    @app.get("/api/v1/broken")
    async def broken() -> None:
        raise ZeroDivisionError("a secret detail")

    client = Client(app)
    late = client.get("/api/v1/slow")
    assert late.status_code == 503 and late.headers["retry-after"] == "1"
    fault = client.get("/api/v1/broken")
    assert fault.status_code == 500 and fault.headers["content-type"] == "application/problem+json"
    assert "secret detail" not in fault.text and "Traceback" not in fault.text


def test_when_too_many_wait_one_more_is_told(learned: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "WAITING", 3)
    opened = open_folder(learned, "world")

    async def ask() -> list:
        batcher = Batcher()
        try:
            asked = (batcher.ask(opened, [("Kyoto", "near", None)], How(1)) for _ in range(8))
            return await asyncio.gather(*asked, return_exceptions=True)
        finally:
            batcher.close()

    found = asyncio.run(ask())
    refused = [one for one in found if isinstance(one, Crowded)]
    assert refused and len(refused) < 8 and all(isinstance(one, list | Crowded) for one in found)


@pytest.fixture(scope="module")
def nasty(tmp_path_factory: pytest.TempPathFactory) -> Client:
    plain = make_graph(TRAIN, VALID, TEST)
    names = {"entities": Vocabulary("entity", SCRIPTS), "relations": Vocabulary("relation", SCRIPTS[:2])}
    graph = Graph(name="<i>graph", train=plain.train, valid=plain.valid, test=plain.test, **names)
    folder = tmp_path_factory.mktemp("nasty") / "run"
    train(graph, dim=4, epochs=1, threads=1, out=folder)
    return Client(create_app(Shelf([open_folder(folder, "<b>run")])))


def test_names_are_data_and_never_markup(nasty: Client) -> None:
    for name in SCRIPTS:
        found = nasty.get(f"{API}/entity", name=name)
        assert found.status_code == 200 and found.headers["content-type"] == "application/json"
        assert found.json()["name"] == name
    missing = nasty.get(f"{API}/entity", name="<script>alert(2)</script>")
    assert missing.status_code in (404,) and missing.headers["content-type"] == "application/problem+json"
    said = {"head": SCRIPTS[0], "relation": SCRIPTS[0], "tail": SCRIPTS[3], "verdict": "later"}
    assert nasty.post(f"{API}/judgements", said).status_code == 200
    assert nasty.ask("/judgements")["judgements"][0]["tail"] == SCRIPTS[3]


def test_limits_are_those_that_are_told(served: Client) -> None:
    taken = served.get("/openapi.json").json()["paths"][f"{API}/predict"]["get"]["parameters"]
    (k,) = [p["schema"] for p in taken if p["name"] == "k"]
    assert limits.ANSWERS in [one.get("maximum") for one in k["anyOf"]]
    assert served.get(f"{API}/predict", head="Kyoto", relation="near", k=limits.ANSWERS).status_code == 200
    assert served.get(f"{API}/predict", head="Kyoto", relation="near", k=limits.ANSWERS + 1).status_code == 422


def test_answers_are_sent_at_once() -> None:
    """Small packets that wait for others would make a second answer over one connection 40 ms late."""

    async def asked() -> list[int]:
        found: list[int] = []

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            found.append(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        with bound("127.0.0.1", 0) as sock:
            port = sock.getsockname()[1]
            async with await asyncio.start_server(answer, sock=sock):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                await reader.read()
                writer.close()
        return found

    assert asyncio.run(asked()) == [1]
