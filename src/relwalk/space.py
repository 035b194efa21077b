"""What a search may try of a setting. A setting or a model declares it in one line, beside the setting itself."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from relwalk.errors import RelWalkError

DIGITS = 3  # of a number that is tried: more mean nothing, and are a burden to read


@dataclass(frozen=True)
class Between:
    """Numbers from `low` to `high`, on a linear or a logarithmic scale, or the powers of two among them.

    With `times` they are factors of what the setting would be otherwise.
    """

    low: float
    high: float
    scale: Literal["linear", "log", "powers"] = "linear"
    times: bool = False

    def around(self, usual: float) -> Between:
        """The same in numbers of the setting, once it is known what that would be."""
        return Between(rounded(self.low * usual), rounded(self.high * usual), self.scale) if self.times else self

    def ends(self) -> tuple[Any, ...]:
        return (int(self.low), int(self.high)) if self.scale == "powers" else (self.low, self.high)

    def nearest(self, value: Any) -> Any:
        """What can be tried that is nearest to a value."""
        inside = min(max(float(value), self.low), self.high)
        return 2 ** round(math.log2(inside)) if self.scale == "powers" else inside


@dataclass(frozen=True)
class Among:
    """One of some values."""

    choices: tuple[bool | int | float | str, ...]

    def ends(self) -> tuple[Any, ...]:
        return self.choices

    def nearest(self, value: Any) -> Any:
        return value if value in self.choices else self.choices[0]


Search = Between | Among


def rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def search_as_dict(search: Search) -> dict[str, Any]:
    if isinstance(search, Among):
        return {"choices": list(search.choices)}
    return {name: value for name, value in asdict(search).items() if name != "times"}


def search_from_dict(name: str, content: Any) -> Search:
    """What was written by `search_as_dict`, checked."""
    if isinstance(content, Mapping) and isinstance(content.get("choices"), list) and content["choices"]:
        return Among(tuple(content["choices"]))
    parts = content if isinstance(content, Mapping) else {}
    low, high, scale = parts.get("low"), parts.get("high"), parts.get("scale")
    if isinstance(low, int | float) and isinstance(high, int | float) and low < high:
        if scale == "linear":
            return Between(low, high)
        if scale in ("log", "powers") and low > 0:
            return Between(low, high, "log" if scale == "log" else "powers")
    raise RelWalkError(f"{name} is to be searched in {content!r}; expected choices, or low, high and scale.")
