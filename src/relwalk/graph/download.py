"""Files from the web, whole and verified, or not at all."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from relwalk.errors import DownloadError

OnDownload = Callable[[str, int, int | None], None]  # name of the file, bytes so far, bytes in all

TIMEOUT_SECONDS = 30.0
CHUNK = 1 << 16
SCHEMES = ("http", "https")


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
    import pooch  # only here: most of the time nothing is downloaded
    from requests.exceptions import HTTPError
    from urllib3.exceptions import IncompleteRead

    download = pooch.HTTPDownloader(chunk_size=CHUNK, timeout=TIMEOUT_SECONDS)
    try:
        with path.open("wb") as target:
            download(file.url, _Bounded(name, file.size, target, progress), None)
    except HTTPError as error:
        answer = error.response
        found = f"HTTP {answer.status_code} {answer.reason}" if answer is not None else "no answer"
        raise DownloadError(_message(file, found, "the file", files, into)) from error
    except _TooLong:
        pass  # `_verify` says so
    except OSError as error:
        cause = _first_cause(error)
        if isinstance(cause, IncompleteRead):
            found, expected = f"{cause.partial:,} bytes", f"{file.size:,} bytes"
        else:
            found, expected = f"no usable connection ({cause or type(cause).__name__})", "an answer"
        raise DownloadError(_message(file, found, expected, files, into)) from error
    _verify(file, path, files, into)


class _TooLong(Exception):
    """More bytes came than the file may have."""


@dataclass
class _Bounded:
    """A file to write to that stops the download one byte past the expected size, and tells how far it is."""

    name: str
    size: int
    target: IO[bytes]
    progress: OnDownload | None
    done: int = 0

    def write(self, chunk: bytes) -> None:
        kept = chunk[: self.size + 1 - self.done]
        self.target.write(kept)
        self.done += len(kept)
        if self.progress is not None:
            self.progress(self.name, self.done, self.size)
        if self.done > self.size:
            raise _TooLong

    def flush(self) -> None:
        """pooch asks for it after every chunk; closing the target is enough."""


def _first_cause(error: BaseException) -> BaseException:
    """What an error of the connection began with, behind all that was wrapped around it."""
    while error.__context__ is not None:
        error = error.__context__
    return error


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
