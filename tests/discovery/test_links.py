"""`discover` against a computation that holds everything at once, and what it promises."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import torch
from tools.discoveries import among, hide

from relwalk.compression.compress import compress
from relwalk.discovery import links as links_module
from relwalk.discovery.best import Best, Links
from relwalk.discovery.judged import Judge
from relwalk.discovery.links import discover, mean_odds
from relwalk.discovery.questions import whole_graph
from relwalk.discovery.sweep import Sweep, offer_block
from relwalk.errors import RelWalkError, UnknownName
from relwalk.experiment import train
from relwalk.graph.answers import SIDES
from relwalk.graph.graph import Graph
from relwalk.prediction import predict
from relwalk.runs.run import Run
from tests.discovery.graphs import families

KINDS = {
    "product": {"model": "relwalk"},
    "keys of each relation": {"model": "transr"},
    "no product": {"model": "transe", "distance": "l1"},
    "reciprocal": {"model": "distmult", "reciprocal": True},
}


def small() -> Graph:
    """70 entities, three relations, 43 triples in valid."""
    return families(10, 6, loops=8)


@pytest.fixture(scope="module", params=[*KINDS, "codes"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    graph = small()
    if request.param != "codes":
        return train(graph, dim=6, epochs=3, threads=1, **KINDS[request.param])
    whole = train(graph, dim=6, epochs=3, threads=1, out=tmp_path_factory.mktemp("run") / "whole")
    coded = compress(whole, out=tmp_path_factory.mktemp("run") / "small", entities="int8").run
    return replace(coded, record=coded.record.model_copy(update={"probabilities": whole.probabilities}))


@torch.inference_mode()
def by_hand(run: Run, *, every: bool = False, relations: tuple[int, ...] = (0, 1, 2)) -> dict[tuple[int, ...], float]:
    """The confidence of every new link that a question proposes, from whole matrices of scores."""
    graph, fitted = run.graph, run.probabilities
    n = len(graph.entities)
    known = {tuple(t) for t in graph.triples.tolist()}
    found = {}
    for r in relations:
        said = {}
        for side in SIDES:
            given, relation = np.arange(n), np.full(n, r)
            scores = run.model.scale * run.model.score_all(side, torch.arange(n), torch.full((n,), r))
            if not graph.has_loops[r]:
                scores.fill_diagonal_(-torch.inf)
            lists, columns = graph.known[side].lookup(given, relation), np.broadcast_to(given, (n, n))
            said[side] = fitted.confidences(side, relation, scores, lists, columns)
        both = mean_odds(said["tail"], said["head"].T)  # (heads, tails)
        seen = {side: set(graph.argument_lists[side][r].tolist()) for side in SIDES}
        for h in range(n):
            for t in range(n):
                asked = {"tail": every or h in seen["head"], "head": every or t in seen["tail"]}
                if any(asked.values()) and (h, r, t) not in known and (h != t or graph.has_loops[r]):
                    own = [float(said[side][x, y]) for side, x, y in (("tail", h, t), ("head", t, h)) if asked[side]]
                    found[h, r, t] = min(float(both[h, t]), max(own))
    return found


@pytest.mark.parametrize(("every", "block"), [(False, None), (True, None), (False, 64), (True, 300)])
def test_the_best_of_all_links(run: Run, block: int | None, every: bool) -> None:
    expected = by_hand(run, every=every)
    found = discover(run, k=40, all_questions=every, block=block)
    rows = [(h, r, t) for h, r, t in zip(found.links.head, found.links.relation, found.links.tail, strict=True)]
    assert len(set(rows)) == 40
    np.testing.assert_allclose(found.confidence, [expected[row] for row in rows], rtol=1e-3)
    assert len(set(found.confidence)) > 5
    np.testing.assert_allclose(found.confidence, sorted(expected.values(), reverse=True)[:40], rtol=1e-3)


def test_all_links_come_when_as_many_are_asked_for(run: Run) -> None:
    expected = by_hand(run, relations=(1,))
    found = discover(run, k=10_000, relations="r1", block=512)
    assert {(h, 1, t) for h, t in zip(found.links.head, found.links.tail, strict=True)} == set(expected)
    assert set(found.links.relation) == {1}


def test_little_room_for_proposals_gives_the_same(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    plenty = discover(run, k=20)
    monkeypatch.setattr(links_module, "FEWEST", 20)
    monkeypatch.setattr(links_module, "PROPOSED", 2)
    np.testing.assert_allclose(discover(run, k=20).confidence, plenty.confidence, rtol=1e-5)


@pytest.fixture(scope="module")
def plain() -> Run:
    return train(small(), dim=6, epochs=3, threads=1)


def test_shares_and_ranks_are_those_of_the_question(plain: Run) -> None:
    for link in list(discover(plain, k=15)):
        asked = {"head": link.head} if link.asked == "tail" else {"tail": link.tail}
        answers = predict(plain, relation=link.relation, **asked, k=100, only_new=True)
        (own,) = [a for a in answers if a.name == (link.tail if link.asked == "tail" else link.head)]
        assert link.share == pytest.approx(own.share, rel=1e-3)
        assert link.rank == 1 + sum(a.score > own.score for a in answers)


def test_equal_links_come_in_the_order_of_the_graph(plain: Run) -> None:
    level = replace(plain, model=train(plain.graph, dim=6, epochs=1, threads=1).model)
    with torch.no_grad():
        level.model.entity.weight.zero_()
    found = discover(level, k=5, relations="r1").links
    order = list(zip((-discover(level, k=5, relations="r1").confidence).round(9), found.head, found.tail, strict=True))
    assert order == sorted(order)


def test_least_confidence(plain: Run) -> None:
    every = discover(plain, k=1000)
    levels = np.unique(every.confidence)[::-1]
    bar = float(levels[20:22].mean())  # between two: with other blocks, a score is another one in its last bit
    above = discover(plain, k=1000, min_confidence=bar)
    assert len(above) == int((every.confidence >= bar).sum()) > 20
    assert len(discover(plain, k=5, min_confidence=bar)) == 5
    assert "no new links" in str(discover(plain, min_confidence=1.0))


def test_fewer_missing_facts_are_less_confidence(plain: Run) -> None:
    assert (discover(plain, k=20, missing=1).confidence < discover(plain, k=20).confidence).all()


def test_without_valid_links_come_by_share() -> None:
    graph = small()
    run = train(replace(graph, valid=graph.valid[:0]), dim=6, epochs=2, threads=1)
    found = discover(run, k=10)
    assert found.confidence is None and found.frame()["confidence"].null_count() == 10
    assert "not calibrated" in str(found) and found.as_dict()["calibrated"] is False
    for wrong in ({"min_confidence": 0.5}, {"missing": 3}):
        with pytest.raises(RelWalkError, match=r"no confidences.*valid triples"):
            discover(run, **wrong)


def test_results_show_themselves(plain: Run) -> None:
    found = discover(plain, k=120)
    assert found.frame().columns[:3] == ["head", "relation", "tail"] and found.frame().height == len(found) == 120
    assert "120 new links" in str(found) and "and 20 more" in str(found) and "<table>" in found._repr_html_()
    assert len(repr(found)) < 125 and isinstance(found.frame(), pl.DataFrame)
    assert next(iter(found)).head == found.frame()["head"][0] == found.as_dict()["links"][0]["head"]


def test_wrong_arguments(plain: Run) -> None:
    for wrong, told in (
        ({"k": 0}, "k is 0"),
        ({"k": 10**9}, "k is 1000000000"),
        ({"min_confidence": 1.5}, "min_confidence is 1.5"),
        ({"missing": 0}, "missing is 0"),
        ({"relations": []}, "relations is empty"),
    ):
        with pytest.raises(RelWalkError, match=told):
            discover(plain, **wrong)
    with pytest.raises(UnknownName, match="Did you mean 'r1'"):
        discover(plain, relations=["r0", "R1"])
    with pytest.raises(RelWalkError, match="expected a Run"):
        discover("runs/world")


@pytest.mark.parametrize("count", [6, 24])
@torch.inference_mode()
def test_what_is_kept_does_not_grow_with_the_questions(count: int) -> None:
    """Beside the room for links, a block and its working space are all that is held."""
    with torch.inference_mode(False):
        run = train(families(count, 5), dim=4, epochs=1, threads=1)
    sweep, best, held = Sweep(run.model, run.graph, Judge(run.probabilities, None), run.keys, 1000), Best(50), []
    for questions in whole_graph(run.graph, np.arange(3), every=True).values():
        for _, block in sweep.blocks(questions):
            offer_block(block, best)
            held.append((best._rows, sum(map(len, best._kept)), block.table.numel(), sweep.space.numel()))
    assert len(held) > 6
    assert (np.array(held).max(0) <= [100, 100, 1000, 1000]).all()


def test_the_best_keeps_the_best() -> None:
    rng = np.random.default_rng(0)
    best = Best(20)
    worth = {}
    for _ in range(30):
        ids = rng.integers(0, 12, (3, 40)).astype(np.int32)
        values = rng.random(40).round(2) + 0.01
        best.offer(Links(*ids, values, values, ids[0], ids[0] % 2 == 0))
        for key, value in zip(map(tuple, ids.T.tolist()), values.tolist(), strict=True):
            worth[key] = max(value, worth.get(key, 0.0))
    expected = sorted(((-v, r, h, t) for (h, r, t), v in worth.items()))[:20]
    found = best.found()
    assert list(zip(-found.worth, found.relation, found.head, found.tail, strict=True)) == expected


def triples(links: Links) -> np.ndarray:
    return np.stack([links.head, links.relation, links.tail], 1)


def promise_kept(confidence: np.ndarray, true: np.ndarray) -> dict[float, bool]:
    """Of each level with links enough to say: whether as many are true, three standard deviations aside."""
    kept = {}
    for level in (0.05, 0.1, 0.2, 0.3, 0.5, 0.7):
        count = int((confidence >= level).sum())
        if count >= 20:
            noise = 3 * (count * level * (1 - level)) ** 0.5
            kept[level] = bool(true[confidence >= level].sum() >= count * level - noise)
    return kept


def test_as_many_links_are_hidden_facts_as_was_promised() -> None:
    graph, hidden = hide(families(), 1 / 3, seed=0)
    run = train(graph, dim=16, epochs=60, threads=1)
    found = discover(run, k=2000)
    true = among(triples(found.links), hidden)
    kept = promise_kept(found.confidence, true)
    assert len(kept) >= 3 and all(kept.values()), kept
    assert true.sum() > 0.5 * len(hidden)
    # Where another graph's facts are hidden, or far fewer than was said, the same check fails.
    shuffled = hidden.copy()
    shuffled[:, 2] = np.roll(shuffled[:, 2], 1)
    assert not all(promise_kept(found.confidence, among(triples(found.links), shuffled)).values())
    bold = discover(run, k=2000, missing=10**7)
    assert not all(promise_kept(bold.confidence, among(triples(bold.links), hidden)).values())
