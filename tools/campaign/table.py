"""What was tried and what failed, in figures: to print, and to keep in results/."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from relwalk.machine import machine_in_words
from tools.campaign.kinds import KINDS
from tools.campaign.workers import Limits, Outcome

SHOWN = 5  # seeds of each cause


def command(kind: str, seed: int) -> str:
    """The command that does a case again."""
    return f"python -m tools.campaign --kind {kind} --seed {seed}"


@dataclass
class Tally:
    """The cases of one kind, counted."""

    kind: str
    start: int
    cases: int = 0
    seconds: float = 0.0  # of all workers together
    slowest: float = 0.0
    megabytes: float = 0.0
    faults: dict[str, list[int]] = field(default_factory=dict)  # the seeds of each cause

    def add(self, outcome: Outcome) -> bool:
        """Count a case; whether it failed in a way that is new."""
        self.cases += 1
        self.seconds += outcome.seconds
        self.slowest = max(self.slowest, outcome.seconds)
        self.megabytes = max(self.megabytes, outcome.megabytes)
        if not outcome.what:
            return False
        self.faults.setdefault(outcome.what, []).append(outcome.seed)
        return len(self.faults[outcome.what]) == 1

    @property
    def failures(self) -> int:
        return sum(len(seeds) for seeds in self.faults.values())

    @property
    def seeds(self) -> str:
        return f"{self.start} to {self.start + max(self.cases - 1, 0)}"

    def as_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "what": KINDS[self.kind].description,
            "cases": self.cases,
            "failures": self.failures,
            "faults": {what: {"cases": len(s), "seeds": sorted(s)[:SHOWN]} for what, s in self.faults.items()},
            "slowest_seconds": round(self.slowest, 2),
            "peak_megabytes": round(self.megabytes),
            "first_seed": self.start,
            "last_seed": self.start + max(self.cases - 1, 0),
            "seconds": round(self.seconds, 1),
        }

    def causes(self) -> str:
        """One line for each cause, the commonest first."""
        ordered = sorted(self.faults.items(), key=lambda item: -len(item[1]))
        return "\n".join(f"  {len(s):,} x {what}: {command(self.kind, min(s))}" for what, s in ordered)


def as_markdown(tallies: list[dict[str, Any]]) -> str:
    """The table of a campaign."""
    rows = ["| what | cases | failures | slowest | peak memory | seeds |", "|---|---:|---:|---:|---:|---|"]
    for t in tallies:
        figures = f"{t['cases']:,} | {t['failures']:,} | {t['slowest_seconds']:.1f} s | {t['peak_megabytes']:,} MB"
        rows.append(f"| {t['what']} | {figures} | `{t['kind']}` {t['first_seed']} to {t['last_seed']} |")
    return "\n".join(rows)


def write_record(tallies: list[Tally], limits: Limits, words: str, folder: Path) -> None:
    """campaign.json, and campaign.md made from it. Kinds that were not tried now keep what was found of them before."""
    file = folder / "campaign.json"
    earlier = json.loads(file.read_text())["kinds"] if file.is_file() else []
    kinds = {kind["kind"]: kind for kind in earlier}
    kinds |= {tally.kind: {**tally.as_dict(), "command": words} for tally in tallies}
    found = {
        "machine": machine_in_words(),
        "limits": {"seconds": limits.seconds, "megabytes": limits.megabytes},
        "kinds": [kinds[name] for name in KINDS if name in kinds],
    }
    file.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    (folder / "campaign.md").write_text(page(found))


def page(found: dict[str, Any]) -> str:
    """campaign.md: the table, what counts as a failure, and the commands that repeat one."""
    limits = found["limits"]
    failed = [
        f"- {fault['cases']:,} x {what}: `{command(kind['kind'], fault['seeds'][0])}`"
        for kind in found["kinds"]
        for what, fault in kind["faults"].items()
    ]
    commands: dict[str, list[str]] = {}
    for kind in found["kinds"]:
        commands.setdefault(kind["command"], []).append(kind["kind"])
    made = "; ".join(f"`{words}` ({', '.join(names)})" for words, names in commands.items())
    parts = [
        "# What the campaign tried",
        f"{made}, on {found['machine']}. A failure is anything but a good result or one clear error: a "
        f"traceback, a crash, more than {limits['seconds']:g} s for one call, more than {limits['megabytes']:,.0f} MB "
        "above the start, output that nobody asked for, a silent difference.",
        as_markdown(found["kinds"]),
        "\n".join(failed) or "No case failed.",
        "One case again: `python -m tools.campaign --kind files --seed 123`.",
    ]
    return "\n\n".join(parts) + "\n"
