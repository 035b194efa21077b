"""The kinds of attack, one line each: how to prepare, how to try one seed, and the share of the time it gets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tools.campaign import disks, files, folders, graphs, kills, values
from tools.campaign.place import Place


@dataclass(frozen=True)
class Kind:
    """`prepare` makes, once, what `check` starts from; `check` raises Fault when relwalk fails."""

    description: str
    prepare: Callable[[Path], None]
    check: Callable[[Random, Place], None]
    share: int  # of the minutes, in percent
    commands: int = 1  # at most so many calls that may each take as long as one may take


KINDS: dict[str, Kind] = {
    "files": Kind("graph files of every layout, changed", graphs.prepare, files.check, 40),
    "folders": Kind("run folders, damaged or forged", folders.prepare, folders.check, 20),
    "kills": Kind("trainings killed, then resumed", kills.prepare, kills.check, 20, commands=10),
    "disks": Kind("full, closed and forbidden places to write to", disks.prepare, disks.check, 10, commands=4),
    "values": Kind("wrong values of every option of every verb", values.prepare, values.check, 10, commands=6),
}
