"""Parquet, read by another process first: damaged pages make polars panic or abort, which no exception can catch.

What a damaged file does there, and what it prints, stays there; one that is read to its end there is safe to read here.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from relwalk.errors import GraphError
from relwalk.graph.formats.limits import RAISE_IT, default_limit, show_size
from relwalk.graph.formats.source import Source

CHILD = Path(__file__).with_name("trial_child.py")
ROW = 48  # bytes that a triple takes in memory at least: three strings of 16
MARK = b"PAR1"


def try_out(sources: Sequence[Source]) -> None:
    """Refuse the first file that is no Parquet, announces too many rows, or cannot be read to its end."""
    with ExitStack() as stack:
        plain = [_on_disk(source, stack) for source in sources]
        limits = [(source.limit or default_limit(path)) // ROW for source, path in zip(sources, plain, strict=True)]
        results = _run(plain, limits)
        for source, path, limit, result in zip(sources, plain, limits, results, strict=True):
            _check(source, path, limit, result)


def _on_disk(source: Source, stack: ExitStack) -> Path:
    """The path of a file with the plain bytes, checked for what begins and ends every Parquet file."""
    path = source.path
    if path.suffix.lower() == ".zst":
        raise GraphError(f"{path}: parquet inside zstd cannot be unpacked here. Run `unzstd {path.name}` first.")
    if source.data is not None:
        path = Path(stack.enter_context(TemporaryDirectory())) / "plain.parquet"
        path.write_bytes(source.data)
    with path.open("rb") as opened:
        start = opened.read(len(MARK))
        opened.seek(max(path.stat().st_size - len(MARK), 0))
        end = opened.read()
    if (start, end) != (MARK, MARK):
        raise _damaged(source, f"found {start!r} at its start and {end!r} at its end; expected {MARK!r} at both")
    return path


def _run(paths: Sequence[Path], limits: Sequence[int]) -> list[dict[str, Any]]:
    """What became of each file; nothing of those from which the process did not come back."""
    words = [word for path, limit in zip(paths, limits, strict=True) for word in (str(path.absolute()), str(limit))]
    done = subprocess.run([sys.executable, "-P", str(CHILD), *words], capture_output=True, stdin=subprocess.DEVNULL)
    results: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    return results + [{}] * (len(paths) - len(results))


def _check(source: Source, path: Path, limit: int, result: dict[str, Any]) -> None:
    if result.get("rows", 0) > limit:
        raise GraphError(
            f"{source.path}: found {result['rows']:,} rows in {show_size(path.stat().st_size)}; expected at most "
            f"{limit:,} in so small a file. {RAISE_IT}"
        )
    if "rows" not in result or "error" in result:
        raise _damaged(source, result.get("error", "its pages are damaged"))


def _damaged(source: Source, reason: str) -> GraphError:
    short = " ".join(reason.split())[:200]
    return GraphError(
        f"{source.path} cannot be read: {short}. Expected a complete Parquet file; fetch or write it again."
    )
