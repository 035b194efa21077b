"""One page from one run: sections, style and script in a single file that asks the network for nothing."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from relwalk import __version__
from relwalk.report.facts import Facts, Tell, gather
from relwalk.report.html import count, text
from relwalk.report.sections import SECTIONS
from relwalk.run import Run
from relwalk.theory.analyse import Analysis

# Nothing but what the file itself holds: should a name ever slip through unescaped, it could not call out.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def make_report(
    run: Run,
    *,
    analysis: Analysis | None = None,
    relations: Sequence[str] = (),
    truth: Path | None = None,
    directions: int = 1000,
    seed: int = 0,
    progress: Tell | None = None,
) -> str:
    """The page of a run, as text. `relations` are drawn in detail: the telling ones when none are named.

    `truth` is the folder of `relwalk generate` that the run learned, if it did: the closed loop is then its own.
    An `analysis` made before is used as it is; else one is made with `directions` knowledge vectors. The same seed
    gives the same page. `progress` hears what is being done.
    """
    tell = progress if progress is not None else lambda _: None
    found = gather(run, analysis, relations, truth, directions, seed, tell)
    parts = []
    for number, section in enumerate(SECTIONS, start=1):
        tell(f"writing {number} of {len(SECTIONS)}: {section.title}")
        parts.append(
            f'<section id="{section.key}"><header><h2>{section.title}</h2></header>{section.write(found)}</section>'
        )
    return _page(found, "".join(parts))


def _page(f: Facts, body: str) -> str:
    asset = files("relwalk.report")
    style, script = (asset.joinpath(name).read_text("utf-8") for name in ("style.css", "script.js"))
    links = "".join(f'<a href="#{s.key}">{s.short}</a>' for s in SECTIONS)
    title = f"{f.graph.name} · {f.model.title} · relwalk report"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}"><link rel="icon" href="data:,">'
        f"<title>{text(title)}</title><style>{style}</style></head><body>"
        f'<nav><div><div>{links}</div><button type="button" id="theme" '
        f'aria-label="Light or dark">◐</button></div></nav>'
        f"<main>{_masthead(f)}{body}{_footer(f)}</main><script>{script}</script></body></html>\n"
    )


def _masthead(f: Facts) -> str:
    kind = getattr(f.model, "orthogonality", None)
    how = f", {kind} orthogonality" if kind else ""
    about = (
        f"{text(f.model.title)} with {f.model.dim} dimensions{how}, trained on {count(len(f.graph.train))} "
        f"triples of {count(len(f.graph.entities))} entities and {count(len(f.graph.relations))} relations."
    )
    return f'<header class="top"><p>relwalk report</p><h1>{text(f.graph.name)}</h1><p>{about}</p></header>'


def _footer(f: Facts) -> str:
    applies = "".join(f"<li><b>{s.title}</b> {text(s.applies)}</li>" for s in SECTIONS)
    how = ", ".join(f"{name} {value}" for name, value in f.analysis.settings.items())
    return (
        f"<footer><details><summary>Which parts apply to which model</summary><ul>{applies}</ul></details>"
        f"<p>Made by relwalk {text(__version__)} with seed {f.seed}; analysis: {text(how)}. Intervals are 95%, by "
        f"bootstrap. This file holds everything it shows.</p></footer>"
    )
