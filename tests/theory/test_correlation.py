"""Correlations: by hand, degenerate, and on the table that the paper printed."""

from __future__ import annotations

import json

import numpy as np
import pytest

from relwalk.errors import RelWalkError
from relwalk.graph.graph import Graph
from relwalk.graph.vocabulary import Vocabulary
from relwalk.models import build_model
from relwalk.theory.analyse import analyse
from relwalk.theory.correlation import correlate

# Table 3 of the paper: H@10, nu_R, sigma_c, sigma_c', combined, for the eleven relations of WN18RR.
PAPER = np.array(
    [
        (0.188, 3.249, 68.89, 64.41, 94.31),
        (0.955, 1.690, 63.44, 65.33, 91.07),
        (0.541, 0.362, 63.11, 64.56, 90.28),
        (0.670, 0.234, 70.76, 61.51, 93.76),
        (0.281, 4.389, 63.78, 66.09, 91.84),
        (0.513, 0.727, 65.66, 65.48, 92.73),
        (0.247, 0.548, 66.21, 66.50, 93.84),
        (0.688, 0.045, 65.24, 63.16, 90.81),
        (0.442, 0.065, 67.53, 66.31, 94.64),
        (0.974, 0.038, 64.22, 63.19, 90.09),
        (1.000, 0.111, 63.67, 63.96, 90.25),
    ]
)


def test_a_line_and_its_reverse() -> None:
    up = correlate("x", [1, 2, 3, 4, 5], [2, 4, 6, 8, 10])
    assert up.pearson is not None and up.spearman is not None
    assert up.pearson.value == pytest.approx(1) == up.spearman.value
    assert up.pearson_p == pytest.approx(2 / 120, abs=0.01)  # two of 5! orders are as extreme
    down = correlate("x", [1, 2, 3, 4, 5], [0, -1, -4, -9, -16])
    assert down.spearman is not None and down.spearman.value == pytest.approx(-1)
    assert down.pearson is not None and -1 < down.pearson.value < -0.9


def test_missing_constant_and_few_values_have_a_message_and_no_figure() -> None:
    for x, y, text in (
        ([1, 2, None, 4], [1, 2, 3, None], "needs 4"),
        ([7.0] * 5, [1, 2, 3, 4, 5], "the same for every relation"),
        ([1, 2, 3, 4, 5], [0.5] * 5, "the accuracy is the same"),
    ):
        found = correlate("x", x, y)
        assert found.pearson is None and found.message is not None and text in found.message
        assert text in str(found)
        json.dumps(found.as_dict(), allow_nan=False)
    with pytest.raises(RelWalkError, match="pairs"):
        correlate("x", [1], [1, 2])


def test_the_papers_coefficients_and_how_little_eleven_relations_say() -> None:
    hits = PAPER[:, 0].tolist()
    found = [correlate("column", PAPER[:, k].tolist(), hits) for k in range(1, 5)]
    values = [c.pearson.value for c in found if c.pearson is not None]
    assert values == pytest.approx([-0.51, -0.39, -0.49, -0.70], abs=0.01)
    nu, sigma, sigma_prime, combined = found
    assert all(c.pearson_p is not None and c.pearson_p > 0.05 for c in (nu, sigma, sigma_prime))
    assert combined.pearson_p is not None and 0.0125 < combined.pearson_p < 0.05  # not after four tries


def test_an_untrained_model_is_no_better_than_chance_whatever_the_size_of_its_arguments() -> None:
    rng = np.random.default_rng(0)  # relation r has 4 (r + 1) tails: its H@10 falls with r although nothing was learned
    rows = [(int(rng.integers(0, 200)), r, i) for r in range(20) for i in range(4 * (r + 1)) for _ in range(3)]
    triples = np.unique(np.array(rows, np.int32), axis=0)
    rng.shuffle(triples)
    names = (Vocabulary("entity", tuple(map(str, range(200)))), Vocabulary("relation", tuple(map(str, range(20)))))
    graph = Graph("sizes", *names, train=triples[:400], test=triples[400:])
    found = analyse(build_model("relwalk", 200, 20, 8, seed=0, options={}), graph, parts=["correlation"])
    columns = {c.name: c for c in found["correlation"].columns}
    by_size, above = columns["log size of tail argument"], columns["σ / mean, tail: above chance"]
    assert by_size.pearson is not None and by_size.pearson.high < -0.5
    assert above.pearson is not None and above.pearson_p > 0.05 / 16


def test_independent_columns_are_seldom_significant() -> None:
    rng = np.random.default_rng(0)
    ps = [correlate("x", rng.normal(size=11).tolist(), rng.normal(size=11).tolist()).pearson_p for _ in range(40)]
    assert sum(p < 0.05 for p in ps if p is not None) <= 6
