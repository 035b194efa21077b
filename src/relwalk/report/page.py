"""One page from one run: sections, style and script in a single file that asks the network for nothing."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

from markupsafe import Markup

from relwalk import __version__
from relwalk.evaluation.estimate import Absent
from relwalk.report.facts import Loop, Tell, gather
from relwalk.report.html import PAGES
from relwalk.report.sections import SECTIONS
from relwalk.runs.run import Run
from relwalk.theory.analyse import Analysis

# Nothing but what the file itself holds: should a name ever slip through unescaped, it could not call out.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


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
    style, script = (Markup(files("relwalk.report").joinpath(n).read_text("utf-8")) for n in ("style.css", "script.js"))
    return PAGES.get_template("page.html").render(
        facts=found,
        sections=SECTIONS,
        bodies=bodies,
        orthogonality=getattr(found.model, "orthogonality", None),
        policy=POLICY,
        style=style,
        script=script,
        version=__version__,
    )
