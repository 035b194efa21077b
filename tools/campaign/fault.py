"""What counts as a failure: everything but a good result or one clear error of ours."""

from __future__ import annotations

import traceback
import unicodedata
from collections.abc import Callable, Iterable
from typing import TypeVar

from relwalk.errors import RelWalkError

Result = TypeVar("Result")
LONGEST_MESSAGE = 2000
LATE = "no answer within"  # of every fault that is one of time


class Fault(Exception):
    """`what` is the same for all cases with the same cause, so that they can be counted; `detail` is of this one."""

    def __init__(self, what: str, detail: str = "") -> None:
        self.what, self.detail = what, detail
        super().__init__(f"{what}: {detail}" if detail else what)


def attempt(call: Callable[[], Result]) -> Result | RelWalkError:
    """The result of a call, or the error that relwalk raised on purpose; anything else is a fault."""
    try:
        return call()
    except RelWalkError as error:
        return error
    except BaseException as error:  # a panic of polars is no Exception
        raise Fault(f"{type(error).__name__} in {where(error)}", shorten(str(error))) from error


def where(error: BaseException) -> str:
    """The innermost line of relwalk that an error went through."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "/relwalk/" in f.filename.replace("\\", "/")]
    return f"{frames[-1].filename.rpartition('/relwalk/')[2]}:{frames[-1].lineno}" if frames else "no line of relwalk"


def check_message(error: RelWalkError, names: Iterable[str]) -> None:
    """A message is one line of bounded length, safe to print, and names one of the given files."""
    message = str(error)
    if len(message) > LONGEST_MESSAGE:
        raise Fault("a message without end", f"{len(message):,} characters: {shorten(message)}")
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in message):
        raise Fault("a message with control characters", repr(shorten(message)))
    if not any(name in message for name in names):
        raise Fault("a message that names no file", shorten(message))


def shorten(text: str, limit: int = 300) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
