"""Results as JSON files, read back and checked: a file that is not as it should be is an error that names it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from relwalk.errors import RelWalkError, RunError
from relwalk.files import parse_json

LARGEST = 1 << 28  # bytes of a file; a result has some kilobytes


def read_json(path: Path, what: str, cure: str) -> dict[str, Any]:
    """The object in a file."""
    size = path.stat().st_size
    try:
        content = parse_json(path.read_bytes()) if size <= LARGEST else None
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise RunError(f"{path} holds no {what} that can be read. {cure}")
    return content


@contextmanager
def told(path: Path, what: str, cure: str) -> Iterator[None]:
    """Within, a value that is not as it should be is an error that names the file and the value."""
    try:
        yield
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(map(str, fault["loc"]))
        raise RunError(f"{path} holds no {what} that can be read ({where}: {fault['msg']}). {cure}") from error
    except RelWalkError as error:
        raise RunError(f"{path} holds no {what} that can be read ({error}). {cure}") from error


def with_metrics(content: Any) -> Any:
    """An object whose `test` has figures, those by the names of `RankMetrics`."""
    if not isinstance(content, Mapping) or not isinstance(content.get("test"), Mapping):
        return content
    test = {
        rule: {name.replace("hits@", "hits_at_"): value for name, value in metrics.items()}
        for rule, metrics in content["test"].items()
        if isinstance(metrics, Mapping)
    }
    return {**content, "test": test}
