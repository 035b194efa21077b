"""The sections of a page, in order, and the models they apply to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from markupsafe import Markup

from relwalk.report import components, geometry, probability, results, theorem
from relwalk.report.facts import Facts

EVERY, MATRICES, WALK = "every model", "RelWalk and RESCAL, which have relation matrices", "RelWalk"


@dataclass(frozen=True)
class Section:
    """`write` makes the HTML between the title and the next section, or a card that says why there is nothing."""

    key: str
    short: str  # in the bar at the top
    title: str
    applies: str
    write: Callable[[Facts], Markup]


SECTIONS = (
    Section("figures", "Figures", "How good is it?", EVERY, results.headline),
    Section("run", "Run", "What graph, what run", EVERY, results.subject),
    Section("relations", "Relations", "Relation by relation", EVERY, results.relations),
    Section("predictions", "Predictions", "What it answers", EVERY, results.predictions),
    Section("map", "Map", "The entities in the plane", EVERY, geometry.entities),
    Section("calibration", "Calibration", "Are its probabilities right?", EVERY, probability.calibration),
    Section("matrices", "Matrices", "What its relations are", MATRICES, geometry.matrices),
    Section("components", "Figure 2", "How many components does it need?", MATRICES, components.components),
    Section("conditions", "Table 3", "Orthogonality, concentration and accuracy", WALK, geometry.conditions),
    Section("concentration", "Partition", "Is the partition function constant?", WALK, probability.concentration),
    Section("theorem", "Theorem", "Does the theorem hold?", WALK, theorem.theorem),
    Section("loop", "Closed loop", "Does learning find a known model again?", WALK, theorem.loop),
)
