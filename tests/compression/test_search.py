"""The search for the smallest that keeps: it keeps what it says, and obeys what is asked for."""

from __future__ import annotations

from typing import Any

import pytest

import relwalk
from relwalk.compression.compress import compress
from relwalk.compression.search import Fixed, entity_steps, relation_steps
from relwalk.errors import GraphError, RelWalkError
from relwalk.experiment import train
from relwalk.graph.graph import Graph
from relwalk.models.compressed import Compression, held_bytes
from relwalk.models.compressor import Compressor
from relwalk.runs.run import Run
from tests.conftest import TEST, TRAIN, make_graph


@pytest.fixture(scope="module")
def run(world: Graph) -> Run:
    return train(world, dim=16, epochs=4, threads=1, progress=False)


@pytest.mark.parametrize("keep", [0.0005, 0.02])
def test_it_loses_at_most_what_it_may(run: Run, keep: float) -> None:
    heard: list[str] = []
    found = compress(run, keep=keep, progress=lambda done, total, what: heard.append(what))
    valid = relwalk.rank(run, split="valid").mrr
    assert relwalk.rank(found.run, split="valid").mrr >= valid - keep
    assert found.run.record.metrics["valid_mrr"] == pytest.approx(relwalk.rank(found.run, split="valid").mrr)
    assert found.memory.ratio > 1
    assert any(what.startswith("trying ") for what in heard)


def test_it_is_smaller_the_more_may_be_lost(run: Run) -> None:
    sizes = [compress(run, keep=keep).memory.after for keep in (0.001, 0.01, 0.1)]
    assert sizes == sorted(sizes, reverse=True) and sizes[0] > sizes[-1]


@pytest.mark.parametrize(
    "asked",
    [{"method": "svd"}, {"entities": "int8"}, {"rank": 7}, {"around": "identity"}, {"method": "lossless"}],
    ids=str,
)
def test_what_is_asked_for_is_kept_to(run: Run, asked: dict[str, Any]) -> None:
    how = compress(run, keep=0.3, **asked).how
    assert {name: getattr(how, name) for name in asked} == asked


def test_steps_ascend_in_size(run: Run) -> None:
    compressor = Compressor(run.model)
    for steps in (relation_steps(run.model, Fixed()), entity_steps(run.model, Fixed())):
        sizes = [held_bytes(compressor(Compression(**step)) if step else run.model) for step in steps]
        assert sizes == sorted(sizes)
        assert steps[-1] == {}


def test_matrices_that_are_not_orthogonal_are_cut_by_svd(world: Graph) -> None:
    soft = train(world, dim=4, epochs=1, orthogonality="soft", candidates_per_step=50, threads=1, progress=False)
    assert {step.get("method") for step in relation_steps(soft.model, Fixed())} == {"svd", None}


def test_nothing_that_keeps_is_said(run: Run) -> None:
    with pytest.raises(RelWalkError, match="nothing smaller loses at most 0 of the MRR"):
        compress(run, keep=0, rank=1, entities="pq", code_bytes=1)


def test_a_graph_without_valid_cannot_be_searched(world: Graph) -> None:
    graph = make_graph(TRAIN, [], TEST)
    with pytest.raises(GraphError, match="no valid triples to choose by"):
        compress(train(graph, dim=4, epochs=1, threads=1, progress=False), keep=0.1)
