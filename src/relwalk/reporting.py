"""`make_report`: everything that a page about a run shows, and the page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from relwalk.checks import DIRECTIONS, check_seed, check_whole
from relwalk.generation import load_truth_of
from relwalk.report.facts import Tell
from relwalk.report.page import write_page
from relwalk.runs.run import Run
from relwalk.synthetic import loop_of
from relwalk.theory.analyse import Analysis


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
    check_whole("directions", directions, 10, DIRECTIONS)
    check_seed(seed)
    if truth is not None:
        load_truth_of(run, truth)  # refused now, and not after all the rest
    shown = [run.graph.relations.id(name) for name in dict.fromkeys(relations)]
    tell = progress if progress is not None else lambda _: None
    tell("closed loop: learning a known model")
    loop = loop_of(run, truth, seed)
    return write_page(run, loop, analysis=analysis, relations=shown, directions=directions, seed=seed, tell=tell)
