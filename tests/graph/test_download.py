"""A download is whole and verified, or it leaves nothing behind. Requests go to 127.0.0.1 only."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from relwalk.errors import DownloadError
from relwalk.graph import download
from relwalk.graph.download import RemoteFile, digest, fetch

CONTENT = b"".join(b"entity%d\tlikes\tentity%d\n" % (i, i + 1) for i in range(20_000))  # several chunks
SHORT = b"a\tlikes\tb\n"


@dataclass
class Server:
    """A web server in a thread that says what a test tells it to."""

    base: str = ""
    requests: list[str] = field(default_factory=list)
    pages: dict[str, bytes] = field(default_factory=dict)
    redirects: dict[str, str] = field(default_factory=dict)
    declared_size: int | None = None  # a Content-Length that is not that of the body
    says_no_size: bool = False

    def file(self, path: str, content: bytes) -> RemoteFile:
        self.pages[path] = content
        return RemoteFile(self.base + path, digest(content), len(content))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    told = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            told.requests.append(self.path)
            if self.path in told.redirects:
                self.send_response(302)
                self.send_header("Location", told.redirects[self.path])
                self.end_headers()
                return
            body = told.pages.get(self.path)
            if body is None:
                self.send_error(404, "Not Found")
                return
            self.send_response(200)
            if not told.says_no_size:
                self.send_header("Content-Length", str(told.declared_size or len(body)))
            self.end_headers()
            with suppress(OSError):  # the reader may go away when it has enough
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    told.base = f"http://127.0.0.1:{http.server_address[1]}"
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield told
    http.shutdown()
    thread.join()
    http.server_close()


def assert_nothing_left(folder: Path) -> None:
    assert not folder.exists() or list(folder.iterdir()) == []


def test_a_good_download(server: Server, tmp_path: Path) -> None:
    files = {"train.txt": server.file("/a", CONTENT), "test.txt": server.file("/b", SHORT)}
    fetch(files, tmp_path / "cache" / "toy")
    assert (tmp_path / "cache" / "toy" / "train.txt").read_bytes() == CONTENT
    assert (tmp_path / "cache" / "toy" / "test.txt").read_bytes() == SHORT
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["toy"]


def test_a_second_call_does_not_download_again(server: Server, tmp_path: Path) -> None:
    files = {"train.txt": server.file("/a", SHORT)}
    fetch(files, tmp_path / "toy")
    fetch(files, tmp_path / "toy")
    assert server.requests == ["/a"]


def test_progress_is_told(server: Server, tmp_path: Path) -> None:
    calls: list[tuple[str, int, int | None]] = []
    fetch({"train.txt": server.file("/a", CONTENT)}, tmp_path / "toy", lambda *call: calls.append(call))
    assert len(calls) > 1
    assert calls[-1] == ("train.txt", len(CONTENT), len(CONTENT))


def test_a_redirect_is_followed(server: Server, tmp_path: Path) -> None:
    file = server.file("/moved", SHORT)
    server.redirects["/a"] = "/moved"
    fetch({"train.txt": replace(file, url=server.base + "/a")}, tmp_path / "toy")
    assert (tmp_path / "toy" / "train.txt").read_bytes() == SHORT


def test_the_same_lines_in_another_order_are_accepted_where_said(server: Server, tmp_path: Path) -> None:
    lines = CONTENT.splitlines(keepends=True)
    backwards = b"".join(reversed(lines))
    file = replace(server.file("/a", backwards), sha256=digest(CONTENT, any_order=True), any_order=True)
    fetch({"train.txt": file}, tmp_path / "toy")
    assert (tmp_path / "toy" / "train.txt").read_bytes() == backwards
    server.pages["/a"] = backwards.replace(b"entity7\t", b"entity8\t", 1)
    with pytest.raises(DownloadError, match="sha256"):
        fetch({"train.txt": file}, tmp_path / "other")


def test_not_found(server: Server, tmp_path: Path) -> None:
    file = RemoteFile(server.base + "/nowhere", digest(SHORT), len(SHORT))
    with pytest.raises(DownloadError, match=r"/nowhere: found HTTP 404 Not Found; expected the file\. Try again"):
        fetch({"train.txt": file}, tmp_path / "cache" / "toy")
    assert_nothing_left(tmp_path / "cache")


def test_one_bad_file_spoils_the_whole(server: Server, tmp_path: Path) -> None:
    files = {"train.txt": server.file("/a", SHORT), "test.txt": RemoteFile(server.base + "/no", "", 1)}
    with pytest.raises(DownloadError):
        fetch(files, tmp_path / "cache" / "toy")
    assert_nothing_left(tmp_path / "cache")


def test_truncated(server: Server, tmp_path: Path) -> None:
    """The server promises the right size, then closes the connection half-way."""
    file = server.file("/a", CONTENT)
    server.pages["/a"], server.declared_size = CONTENT[: len(CONTENT) // 2], len(CONTENT)
    with pytest.raises(DownloadError, match=f"found {len(CONTENT) // 2:,} bytes; expected {len(CONTENT):,} bytes"):
        fetch({"train.txt": file}, tmp_path / "cache" / "toy")
    assert_nothing_left(tmp_path / "cache")


def test_wrong_bytes(server: Server, tmp_path: Path) -> None:
    file = server.file("/a", CONTENT)
    server.pages["/a"] = CONTENT.replace(b"entity1\t", b"entity2\t", 1)
    with pytest.raises(DownloadError, match=r"found sha256 [0-9a-f]{64}; expected sha256 [0-9a-f]{64}"):
        fetch({"train.txt": file}, tmp_path / "cache" / "toy")
    assert_nothing_left(tmp_path / "cache")


def test_too_much_is_not_read(server: Server, tmp_path: Path) -> None:
    file = server.file("/a", SHORT)
    server.pages["/a"], server.says_no_size = CONTENT, True
    done: list[int] = []
    with pytest.raises(DownloadError, match=f"found more than {len(SHORT)} bytes; expected {len(SHORT)} bytes"):
        fetch({"train.txt": file}, tmp_path / "cache" / "toy", lambda _name, bytes_, _all: done.append(bytes_))
    assert max(done) == len(SHORT) + 1
    assert_nothing_left(tmp_path / "cache")


def test_interrupted_half_way(server: Server, tmp_path: Path) -> None:
    def press_ctrl_c(_name: str, done: int, total: int | None) -> None:
        if total is not None and done > total // 2:
            raise KeyboardInterrupt

    files = {"train.txt": server.file("/a", CONTENT)}
    with pytest.raises(KeyboardInterrupt):
        fetch(files, tmp_path / "cache" / "toy", press_ctrl_c)
    assert_nothing_left(tmp_path / "cache")
    fetch(files, tmp_path / "cache" / "toy")  # and nothing is in the way of the next try
    assert (tmp_path / "cache" / "toy" / "train.txt").read_bytes() == CONTENT


def test_no_network_says_what_to_do_instead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with socket.socket() as bound:  # bound and not listening: the port refuses connections
        bound.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{bound.getsockname()[1]}/a"
        files = {"train.txt": RemoteFile(url, "", 1), "test.txt": RemoteFile(url, "", 1)}
        with pytest.raises(DownloadError) as caught:
            fetch(files, tmp_path / "cache" / "toy")
    message = str(caught.value)
    assert url in message and "refused" in message
    assert "put train.txt, test.txt into a folder DATA/toy and say --data-dir DATA" in message
    assert_nothing_left(tmp_path / "cache")


def test_a_silent_server_times_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(download, "TIMEOUT_SECONDS", 0.2)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/a"
        with pytest.raises(DownloadError, match="timed out"):
            fetch({"train.txt": RemoteFile(url, "", 1)}, tmp_path / "cache" / "toy")
    assert_nothing_left(tmp_path / "cache")


@pytest.mark.parametrize("scheme", ["file", "ftp", "data"])
def test_only_web_addresses(scheme: str, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="expected http or https"):
        fetch({"train.txt": RemoteFile(f"{scheme}:///etc/hostname", "", 1)}, tmp_path / "cache" / "toy")
    assert_nothing_left(tmp_path / "cache")


@pytest.mark.parametrize("target", ["ftp://127.0.0.1/a", "file:///etc/hostname"])
def test_a_redirect_cannot_leave_the_web(target: str, server: Server, tmp_path: Path) -> None:
    server.redirects["/a"] = target
    with pytest.raises(DownloadError):
        fetch({"train.txt": RemoteFile(server.base + "/a", "", 1)}, tmp_path / "cache" / "toy")
    assert_nothing_left(tmp_path / "cache")


def test_an_incomplete_folder_is_not_touched(server: Server, tmp_path: Path) -> None:
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "notes.txt").write_text("mine")
    with pytest.raises(DownloadError, match="Remove it and try again"):
        fetch({"train.txt": server.file("/a", SHORT)}, tmp_path / "toy")
    assert (tmp_path / "toy" / "notes.txt").read_text() == "mine"
    assert server.requests == []


def test_a_folder_that_cannot_be_made(server: Server, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where a folder should be")
    with pytest.raises(DownloadError, match="cannot write to"):
        fetch({"train.txt": server.file("/a", SHORT)}, tmp_path / "cache" / "toy")


def test_two_at_once_do_not_disturb_each_other(server: Server, tmp_path: Path) -> None:
    """Both are half-way at the same time; both end with the complete folder."""
    both_started = threading.Barrier(2, timeout=10)
    waited = threading.local()

    def meet(_name: str, _done: int, _total: int | None) -> None:
        if not getattr(waited, "once", False):
            waited.once = True
            both_started.wait()

    files = {"train.txt": server.file("/a", CONTENT)}
    failures: list[BaseException] = []

    def run() -> None:
        try:
            fetch(files, tmp_path / "cache" / "toy", meet)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert (tmp_path / "cache" / "toy" / "train.txt").read_bytes() == CONTENT
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["toy"]
