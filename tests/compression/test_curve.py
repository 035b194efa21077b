"""Accuracy over K: it ends at that of the whole matrices, prints, draws, and stands on the page."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree

import pytest

import relwalk
from relwalk.compression.compress import compress
from relwalk.compression.curve import curve
from relwalk.errors import GraphError, RelWalkError
from relwalk.experiment import train
from relwalk.graph.graph import Graph
from relwalk.report.components import curve_svg
from relwalk.reporting import make_report
from relwalk.runs.run import Run
from tests.conftest import TRAIN, make_graph


@pytest.fixture(scope="module")
def run(small_world: Graph) -> Run:
    return train(small_world, dim=12, epochs=4, threads=1, progress=False)


def test_it_ends_at_the_whole_matrices(run: Run) -> None:
    found = curve(run, ranks=[1, 6, 12])
    assert found.mrr == pytest.approx(relwalk.rank(run).mrr)
    assert list(found.series) == ["eig", "svd", "eig around signs"]
    for points in found.series.values():
        assert [p.rank for p in points] == [1, 6, 12]
        assert points[-1].mrr == pytest.approx(found.mrr, abs=1e-4)
        assert points[0].mrr < points[-1].mrr
    assert json.loads(json.dumps(found.as_dict()))["points"][0]["rank"] == 1
    assert "paper" in str(found) and "MRR over K" in str(found)


def test_a_sample_of_the_triples(run: Run) -> None:
    assert curve(run, ranks=[3], triples=10).queries == 20
    assert curve(run, ranks=[3], triples=10) == curve(run, ranks=[3], triples=10)


def test_it_is_drawn(run: Run) -> None:
    found = curve(run, ranks=[3, 12], triples=20)
    drawing = ElementTree.fromstring(curve_svg(found))
    assert drawing.tag.endswith("svg") and "eig around signs" in "".join(drawing.itertext())


def test_it_stands_on_the_page(run: Run) -> None:
    page = make_report(run, directions=20)
    assert "How many components does it need?" in page and "MRR over K on world" in page


def test_what_has_no_curve_says_why(run: Run, five: Graph) -> None:
    with pytest.raises(RelWalkError, match="DistMult has no relation matrices"):
        curve(train(five, model="distmult", dim=4, epochs=1, threads=1, progress=False))
    with pytest.raises(GraphError, match="no valid triples"):
        curve(train(make_graph(TRAIN), dim=4, epochs=1, threads=1, progress=False))
    with pytest.raises(RelWalkError, match="rank is 13"):
        curve(run, ranks=[13])
    with pytest.raises(RelWalkError, match="compressed already"):
        curve(compress(run, rank=4).run)
