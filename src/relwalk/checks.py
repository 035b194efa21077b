"""Values from outside, checked where they come in: a wrong one is an error with its name and what was expected."""

from __future__ import annotations

import math
import operator
import re
from numbers import Real

from relwalk.errors import RelWalkError

MOST = 2**31 - 1  # the largest count of anything
SEEDS = 2**63  # seeds are below it
DIM = 1 << 16  # the largest dimension
THREADS = 1024  # more gain nothing on any machine, and tens of thousands end the process
LONGEST = 1e9  # seconds, thirty years
UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}  # of a time, in seconds
DIRECTIONS = 100_000  # the most knowledge vectors: a bootstrap over them is a thousand times as large


def check_whole(name: str, value: object, least: int = 1, most: int = MOST) -> int:
    """A whole number within bounds, of any type that is one."""
    try:
        found = operator.index(value)  # type: ignore[arg-type]  # whether it is one is the question
    except TypeError:
        found = least - 1
    if isinstance(value, bool) or not least <= found <= most:
        raise RelWalkError(f"{name} is {shown(value)}; expected a whole number from {least:,} to {most:,}")
    return found


def check_number(name: str, value: object, least: float, most: float, *, above: bool = False) -> float:
    """A number within bounds, and never NaN; with `above`, more than the least."""
    found = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    if not least <= found <= most or (above and found == least):
        bounds = f"above {least:g} and at most {most:g}" if above else f"from {least:g} to {most:g}"
        raise RelWalkError(f"{name} is {shown(value)}; expected a number {bounds}")
    return found


def check_seconds(name: str, value: object) -> float:
    """A time as a number of seconds, or in words: "90s", "10m", "1.5h", "1d"."""
    words = (
        re.fullmatch(r"([0-9]{1,12}(?:\.[0-9]{1,12})?)\s*([smhd]?)", value.strip()) if isinstance(value, str) else None
    )
    number = float(words[1]) * UNITS[words[2]] if words else value
    found = float(number) if isinstance(number, Real) and not isinstance(number, bool) else math.nan
    if not 0 < found <= LONGEST:
        raise RelWalkError(f"{name} is {shown(value)}; expected a time as 90s, 10m or 1h, or seconds above 0")
    return found


def check_seed(value: object, name: str = "seed") -> int:
    """A seed: the same one gives the same numbers."""
    return check_whole(name, value, 0, SEEDS - 1)


def shown(value: object) -> str:
    """A value in a message, however long it is."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
