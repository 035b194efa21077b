"""Shares and confidences of a trained model, fitted on valid."""

from __future__ import annotations

import numpy as np

from relwalk.evaluation.confidence_fit import candidates, draw_questions, fit_odds
from relwalk.evaluation.probabilities import Probabilities, SideProbabilities
from relwalk.evaluation.score_blocks import sample
from relwalk.evaluation.share_fit import best_temperature, first_answers, first_relations, fit_shares
from relwalk.graph.answers import SIDES, Side
from relwalk.graph.graph import Graph
from relwalk.models.base import Scorer

SCORES = 1 << 27  # that each part looks at, about: what bounds its time
FEWEST, MOST = 150, 4000  # triples of valid that a side is fitted on
QUESTIONS = 1500  # of each of the three kinds that confidences are fitted on, at most
PAIRS = 500  # triples that the temperature of p(R | h, t) is fitted on


def fit_probabilities(model: Scorer, graph: Graph, *, seed: int = 0) -> Probabilities | None:
    """What valid teaches about a model's scores; None for a graph without valid. Samples are drawn by the seed."""
    if len(graph.valid) == 0:
        return None
    rng = np.random.default_rng([seed, *b"probabilities"])
    sides = {side: _fit_side(model, graph, side, rng) for side in SIDES}
    some = graph.valid[sample(len(graph.valid), PAIRS, rng)]
    return Probabilities(
        relations=len(graph.relations),
        facts=len(graph.valid),
        head=sides["head"],
        tail=sides["tail"],
        of_relations=best_temperature(first_relations(model, graph, some)),
    )


def _fit_side(model: Scorer, graph: Graph, side: Side, rng: np.random.Generator) -> SideProbabilities:
    triples = graph.valid[sample(len(graph.valid), _most(graph, 2), rng)]
    shares = fit_shares(first_answers(model, graph, side, triples), rng)
    questions = draw_questions(graph, side, graph.valid, min(QUESTIONS, _most(graph, 6)), rng)
    asked, unasked = candidates(model, graph, side, questions, shares.temperatures, rng)
    return SideProbabilities(
        temperatures=shares.temperatures,
        first=shares.first,
        coverage=shares.coverage,
        asked=fit_odds(asked, rng),
        unasked=fit_odds(unasked, rng),
    )


def _most(graph: Graph, parts: int) -> int:
    return min(MOST, max(FEWEST, SCORES // (parts * len(graph.entities))))
