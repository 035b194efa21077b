"""A wrong setting in our words: the one place where pydantic's errors become relwalk's."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from relwalk.errors import RelWalkError, UnknownChoice


@contextmanager
def settings_errors() -> Iterator[None]:
    """Within, a setting that pydantic refuses is a RelWalkError: its name, what was found, what was expected."""
    from pydantic import ValidationError

    try:
        yield
    except ValidationError as error:
        raise in_our_words(error.errors()) from error


def in_our_words(faults: list[Any]) -> RelWalkError:
    """One error for all that was wrong; for a single misspelt word the one that lists the known ones."""
    first = faults[0]
    if len(faults) == 1 and first["type"] == "literal_error":
        known = re.findall(r"'([^']*)'", first["ctx"]["expected"])
        return UnknownChoice(_name(first), str(first["input"]), known)
    return RelWalkError("; ".join(map(_told, faults)) + ".")


def _told(fault: Mapping[str, Any]) -> str:
    expected = fault["msg"].removeprefix("Value error, ").removeprefix("Input ")
    if not fault["loc"] or fault["type"] == "value_error":
        return str(expected)
    if fault["type"] == "extra_forbidden":
        return f"{_name(fault)} is no setting"
    flag = f"--{_name(fault).replace('_', '-')}"
    return f"{_name(fault)} ({flag}) is {fault['input']!r}; it {expected}"


def _name(fault: Mapping[str, Any]) -> str:
    return str(fault["loc"][-1])
