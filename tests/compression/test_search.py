"""The search for the smallest that keeps: it keeps what it says, and obeys what is asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import relwalk
from relwalk.compression.compress import compress
from relwalk.compression.search import Fixed, cautious_loss, entity_steps, relation_steps
from relwalk.errors import GraphError, RelWalkError
from relwalk.evaluation.result import RankingResult, SideRanks
from relwalk.experiment import train
from relwalk.graph.answers import Side
from relwalk.graph.graph import Graph
from relwalk.models import build_model
from relwalk.models.compressed import Compression, held_bytes
from relwalk.models.compressor import Compressor
from relwalk.runs.run import Run
from tests.conftest import TEST, TRAIN, make_graph, part_of


@pytest.fixture(scope="module")
def run(world: Graph) -> Run:
    return train(part_of(world, 1500), dim=16, epochs=4, hidden=False, threads=1, progress=False)


@pytest.mark.parametrize("keep", [0.0005, 0.02])
def test_it_loses_at_most_what_it_may(run: Run, keep: float) -> None:
    heard: list[str] = []
    found = compress(run, keep=keep, progress=lambda done, total, what: heard.append(what))
    before, after = relwalk.rank(run, split="valid"), relwalk.rank(found.run, split="valid")
    assert after.mrr >= before.mrr - keep
    assert cautious_loss(before, after) <= keep
    assert found.run.record.metrics["valid_mrr"] == pytest.approx(after.mrr)
    assert found.memory.ratio > 1
    assert any(what.startswith("trying ") for what in heard)


def test_the_cautious_loss_covers_the_true_one_of_most_samples(run: Run) -> None:
    """Of two models whose loss over all test triples is known, halves of them say more than that 19 times of 20."""
    small = Compressor(run.model)(Compression(entities="pq", code_bytes=4))
    triples, rng = run.graph.test, np.random.default_rng(0)
    before, after = (relwalk.rank(model, run.graph, "test") for model in (run.model, small))
    lost, covered, plain = before.mrr - after.mrr, 0, 0
    assert cautious_loss(before, before) == 0
    for _ in range(60):
        some = rng.choice(len(triples), len(triples))
        parts = [replace(ranking, triples=triples[some], ranks=_some(ranking, some)) for ranking in (before, after)]
        covered += cautious_loss(*parts) >= lost
        plain += parts[0].mrr - parts[1].mrr >= lost
    assert covered >= 52 and 15 < plain < 45


def _some(ranking: RankingResult, rows: Any) -> dict[Side, SideRanks]:
    return {
        side: SideRanks(ranks.optimistic[rows], ranks.pessimistic[rows], ranks.candidates[rows])
        for side, ranks in ranking.ranks.items()
    }


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


def test_steps_ascend_in_size(world: Graph) -> None:
    model = build_model("relwalk", len(world.entities), len(world.relations), 16, seed=0, options={})
    compressor = Compressor(model)
    for steps in (relation_steps(model, Fixed()), entity_steps(model, Fixed())):
        sizes = [held_bytes(compressor(Compression(**step)) if step else model) for step in steps]
        assert sizes == sorted(sizes)
        assert steps[-1] == {}


def test_matrices_that_are_not_orthogonal_are_cut_by_svd(small_world: Graph) -> None:
    soft = train(small_world, dim=4, epochs=1, orthogonality="soft", candidates_per_step=50, threads=1, progress=False)
    assert {step.get("method") for step in relation_steps(soft.model, Fixed())} == {"svd", None}


def test_nothing_that_keeps_is_said(run: Run) -> None:
    with pytest.raises(RelWalkError, match="nothing smaller loses at most 0 of the MRR"):
        compress(run, keep=0, rank=1, entities="pq", code_bytes=1)


def test_a_graph_without_valid_cannot_be_searched(world: Graph) -> None:
    graph = make_graph(TRAIN, [], TEST)
    with pytest.raises(GraphError, match="no valid triples to choose by"):
        compress(train(graph, dim=4, epochs=1, threads=1, progress=False), keep=0.1)
