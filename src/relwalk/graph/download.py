"""Files from the web, whole and verified, or not at all."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import IO
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import (
    BaseHandler,
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPHandler,
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    UnknownHandler,
)

from relwalk.errors import DownloadError

OnDownload = Callable[[str, int, int | None], None]  # name of the file, bytes so far, bytes in all

TIMEOUT_SECONDS = 30.0
CHUNK = 1 << 16
SCHEMES = ("http", "https")
HANDLERS: tuple[type[BaseHandler], ...] = (
    ProxyHandler,
    HTTPHandler,
    HTTPSHandler,
    HTTPRedirectHandler,
    HTTPErrorProcessor,
    HTTPDefaultErrorHandler,
    UnknownHandler,
)


@dataclass(frozen=True)
class RemoteFile:
    """One file on the web and what its bytes must be.

    With `any_order`, `sha256` is that of the sorted lines: the same facts in another order are the same file.
    """

    url: str
    sha256: str
    size: int  # bytes
    any_order: bool = False


def fetch(files: Mapping[str, RemoteFile], into: Path, progress: OnDownload | None = None) -> None:
    """Download `files` (name in the folder -> where from) so that the folder `into` holds them all.

    Everything is loaded and verified in a temporary folder beside `into`, which is then renamed: whoever sees
    `into` sees a complete graph. On any failure, Ctrl-C included, the temporary folder goes and `into` is not
    made. Of two processes that fetch the same graph, the first to finish wins, and both find it complete.
    """
    if is_complete(files, into):
        return
    if into.exists():
        raise DownloadError(_in_the_way(into))
    temporary = _temporary_sibling(into, files)
    try:
        for name, file in files.items():
            _fetch_one(name, file, temporary / name, files, into, progress)
        _move_into_place(temporary, into, files)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def is_complete(files: Mapping[str, RemoteFile], folder: Path) -> bool:
    """Every file is there with its size. The bytes were verified before the folder got its name."""
    return all((folder / name).is_file() and (folder / name).stat().st_size == f.size for name, f in files.items())


def _temporary_sibling(into: Path, files: Mapping[str, RemoteFile]) -> Path:
    """A folder on the same file system as `into`, so that a rename is one step."""
    try:
        into.parent.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=f".{into.name}-", dir=into.parent))
    except OSError as error:
        raise DownloadError(f"cannot write to {into.parent}: {error}. {_own_folder(files, into)}") from error


def _move_into_place(temporary: Path, into: Path, files: Mapping[str, RemoteFile]) -> None:
    temporary.chmod(0o755)  # mkdtemp makes a folder that only its owner may read
    try:
        temporary.rename(into)
    except OSError as error:
        if not is_complete(files, into):  # complete: another process was faster
            raise DownloadError(_in_the_way(into)) from error


def _fetch_one(
    name: str,
    file: RemoteFile,
    path: Path,
    files: Mapping[str, RemoteFile],
    into: Path,
    progress: OnDownload | None,
) -> None:
    if urlsplit(file.url).scheme not in SCHEMES:
        raise DownloadError(f"{file.url}: found {urlsplit(file.url).scheme!r} address; expected http or https.")
    try:
        with (
            closing(_opener().open(file.url, timeout=TIMEOUT_SECONDS)) as response,
            path.open("wb") as target,
        ):
            _copy(name, file, response, target, progress)
    except HTTPError as error:
        with error:  # the answer holds an open connection
            found = f"HTTP {error.code} {error.reason}"
        raise DownloadError(_message(file, found, "the file", files, into)) from error
    except (OSError, HTTPException) as error:
        found = f"no usable connection ({getattr(error, 'reason', error) or type(error).__name__})"
        raise DownloadError(_message(file, found, "an answer", files, into)) from error
    _verify(file, path, files, into)


def _opener() -> OpenerDirector:
    """Web addresses only: urllib's own opener would also follow a redirect to ftp."""
    opener = OpenerDirector()
    for handler in HANDLERS:
        opener.add_handler(handler())
    return opener


def _copy(name: str, file: RemoteFile, source: IO[bytes], target: IO[bytes], progress: OnDownload | None) -> None:
    """Copy by chunks, and stop one byte past the expected size: enough for `_verify` to refuse it."""
    done = 0
    while chunk := source.read(min(CHUNK, file.size + 1 - done)):
        target.write(chunk)
        done += len(chunk)
        if progress is not None:
            progress(name, done, file.size)
        if done > file.size:
            return


def _verify(file: RemoteFile, path: Path, files: Mapping[str, RemoteFile], into: Path) -> None:
    content = path.read_bytes()
    if len(content) != file.size:
        found = f"more than {file.size:,} bytes" if len(content) > file.size else f"{len(content):,} bytes"
        raise DownloadError(_message(file, found, f"{file.size:,} bytes", files, into))
    found = digest(content, any_order=file.any_order)
    if found != file.sha256:
        raise DownloadError(_message(file, f"sha256 {found}", f"sha256 {file.sha256}", files, into))


def digest(content: bytes, *, any_order: bool = False) -> str:
    """The sha256 of a file, or of its lines when sorted."""
    if any_order:
        content = b"".join(line + b"\n" for line in sorted(content.splitlines()))
    return hashlib.sha256(content).hexdigest()


def _message(file: RemoteFile, found: str, expected: str, files: Mapping[str, RemoteFile], into: Path) -> str:
    return f"{file.url}: found {found}; expected {expected}. Try again. {_own_folder(files, into)}"


def _in_the_way(into: Path) -> str:
    return f"{into}: found a folder that lacks files; expected a complete one or none. Remove it and try again."


def _own_folder(files: Mapping[str, RemoteFile], into: Path) -> str:
    """What a person without a network can do."""
    return (
        f"Or put {', '.join(files)} into a folder DATA/{into.name} and say --data-dir DATA "
        f"(or set the environment variable RELWALK_DATA to DATA)."
    )
