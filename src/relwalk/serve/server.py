"""A service that runs: its socket, its signals, its first words."""

from __future__ import annotations

import errno
import ipaddress
import signal
import socket
import threading
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
import uvicorn

from relwalk.errors import RelWalkError
from relwalk.key_index import find_faiss
from relwalk.serve.app import create_app
from relwalk.serve.limits import SECONDS
from relwalk.serve.opened import Shelf, distinct_names, open_folder

SHORTEST, LONGEST = 8, 1000  # characters of a token
WATCH = 1.0  # seconds between two looks at a folder
SMALL = 1 << 25  # numbers of entities that one thread looks through in milliseconds: others would wait for it in vain
GRACE = int(SECONDS) + 5  # seconds for what is under way when it is told to end: more than any answer takes


class Server(uvicorn.Server):
    """Ends well by SIGINT and SIGTERM, when what is under way is answered; by a second one at once."""

    on_start: Callable[[], None] = staticmethod(lambda: None)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self.on_start()


def serve(
    folders: Sequence[Path],
    *,
    host: str = "127.0.0.1",
    port: int = 8765,
    token: str | None = None,
    watch: bool = False,
    open_page: bool = False,
    device: str = "cpu",
    anyway: bool = False,
    index: bool = False,
    tell: Callable[[str], None] = lambda words: None,
) -> None:
    """Serve runs until told to end, with an `index` over their keys if wanted. `tell` hears where, once it answers."""
    if index:
        find_faiss()
    local = is_loopback(host)
    check_token(host, local, token)
    with bound(host, port) as sock:
        names = distinct_names(folders)
        pairs = zip(folders, names, strict=True)
        runs = [open_folder(folder, name, device=device, anyway=anyway, index=index) for folder, name in pairs]
        if all(one.run.model.entities * one.run.model.dim <= SMALL for one in runs):
            torch.set_num_threads(1)
        app = create_app(Shelf(runs), token=token, local=local, watch=WATCH if watch else None)
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=GRACE,
        )
        server, where = Server(config), address(host, sock.getsockname()[1])

        def started() -> None:
            asks = "; the page asks for the token" if token is not None else ""
            tell(f"serving {', '.join(names)} at {where}{asks} (Ctrl-C ends it)")
            if open_page:
                threading.Thread(target=webbrowser.open, args=(where,), daemon=True).start()

        server.on_start = started
        server.run(sockets=[sock])


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it."""
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check_token(host: str, local: bool, token: str | None) -> None:
    """What other machines can reach has a token, and one that is not guessed at once."""
    if token is None and not local:
        raise RelWalkError(
            f"--host {host} can be reached from other machines. Say --token SECRET (or RELWALK_TOKEN) that they must "
            "know, or leave out --host."
        )
    plain = token is None or (token.isascii() and token.isprintable() and " " not in token)
    if token is not None and not (plain and SHORTEST <= len(token) <= LONGEST):
        raise RelWalkError(
            f"the --token has {len(token):,} characters; expected {SHORTEST} to {LONGEST}, letters, digits and signs "
            "without spaces. A good one: python -c 'import secrets; print(secrets.token_urlsafe())'"
        )


@contextmanager
def bound(host: str, port: int) -> Iterator[socket.socket]:
    """A socket there, or why there can be none."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # said, asyncio sends what it has at once
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host.strip("[]"), port))
        sock.listen(512)
    except (OSError, UnicodeError) as error:
        sock.close()
        raise RelWalkError(_cannot(host, port, error)) from error
    try:
        yield sock
    finally:
        sock.close()


def _cannot(host: str, port: int, error: Exception) -> str:
    number = getattr(error, "errno", None)
    if number == errno.EADDRINUSE:
        return f"port {port} of {host} is in use. Choose another (--port {port + 1}), or any that is free: --port 0"
    if number in (errno.EACCES, errno.EPERM):
        return f"port {port} is not permitted to you. Choose one from 1024 on: --port 8765"
    return f"--host {host} is no address of this machine ({error}). Leave it out, or say --host 0.0.0.0 for all."


def address(host: str, port: int) -> str:
    shown = "127.0.0.1" if host in ("0.0.0.0", "localhost") else f"[{host.strip('[]')}]" if ":" in host else host
    return f"http://{shown}:{port}/"
