"""One page from one run: sections, style and script in a single file that asks the network for nothing."""

from __future__ import annotations

from collections.abc import Sequence

from relwalk.evaluation.estimate import Absent
from relwalk.report.facts import Loop, Tell, gather
from relwalk.report.html import whole_page
from relwalk.report.sections import SECTIONS
from relwalk.runs.run import Run
from relwalk.theory.analyse import Analysis


def write_page(
    run: Run,
    loop: Loop | Absent,
    *,
    analysis: Analysis | None = None,
    relations: Sequence[int] = (),
    directions: int = 1000,
    seed: int = 0,
    tell: Tell = lambda _: None,
) -> str:
    """The page of a run, as text. `loop` is the closed loop to show; for the rest see `relwalk.make_report`."""
    found = gather(run, loop, analysis, relations, directions, seed, tell)
    bodies = []
    for number, section in enumerate(SECTIONS, start=1):
        tell(f"writing {number} of {len(SECTIONS)}: {section.title}")
        bodies.append((section, section.write(found)))
    orthogonality = getattr(found.model, "orthogonality", None)
    return whole_page("page.html", facts=found, sections=SECTIONS, bodies=bodies, orthogonality=orthogonality)
