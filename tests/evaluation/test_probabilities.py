"""Shares, lists and confidences of a small trained run, each beside a control that fails."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from relwalk.compression.compress import compress
from relwalk.errors import RelWalkError, RunError
from relwalk.evaluation.calibration import Calibration, calibration
from relwalk.evaluation.candidate_features import FEATURES, features, sharpened
from relwalk.evaluation.confidence_fit import candidates, draw_questions
from relwalk.evaluation.probabilities import FirstShare, Odds, Probabilities, Quantiles
from relwalk.evaluation.probability_check import check_lists, check_probabilities
from relwalk.evaluation.probability_fit import fit_probabilities
from relwalk.experiment import resume, train
from relwalk.graph.answers import SIDES
from relwalk.graph.graph import Graph
from relwalk.graph.lists import Lists
from relwalk.graph.vocabulary import Vocabulary
from relwalk.models import Scorer
from relwalk.prediction import predict
from relwalk.runs.folder import RECORD
from relwalk.runs.run import Run, load_run
from tests.conftest import TEST, TRAIN, VALID, make_graph


@pytest.fixture(scope="module")
def run(world: Graph, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(world, dim=32, epochs=12, out=tmp_path_factory.mktemp("runs") / "world", threads=1)


@pytest.fixture(scope="module")
def fitted(run: Run) -> Probabilities:
    assert run.probabilities is not None
    return run.probabilities


@pytest.fixture(scope="module")
def shuffled(run: Run) -> Probabilities:
    """Fitted on a valid whose tails belong to other triples: what is learned from it is wrong."""
    valid = run.graph.valid.copy()
    valid[:, 2] = np.random.default_rng(0).permutation(valid[:, 2])
    found = fit_probabilities(run.model, replace(run.graph, valid=valid))
    assert found is not None
    return found


def test_the_first_answer_is_right_as_often_as_its_share_says(
    run: Run, fitted: Probabilities, shuffled: Probabilities
) -> None:
    found = calibration(run.model, run.graph, fitted)
    assert isinstance(found, Calibration)
    raw, own = found.methods
    assert own.ece.value < 0.05 and own.ece.value < 2.5 * own.chance
    assert own.nll is not None and raw.nll is not None and own.nll < raw.nll
    assert raw.ece.value > 0.1  # without fitting
    wrong = calibration(run.model, run.graph, shuffled)
    assert isinstance(wrong, Calibration) and wrong.methods[1].ece.value > 0.1


def test_a_list_holds_the_answer_as_often_as_was_asked(
    run: Run, fitted: Probabilities, shuffled: Probabilities
) -> None:
    lists = check_lists(run.model, run.graph, fitted, run.graph.test)
    wrong = check_lists(run.model, run.graph, shuffled, run.graph.test)
    for own, control in zip(lists, wrong, strict=True):
        assert own.found == pytest.approx(own.coverage, abs=0.04)
        assert abs(control.found - control.coverage) > 0.05
        assert own.median_length < control.median_length
    assert lists[0].mean_length < lists[1].mean_length and lists[0].single > lists[1].single > 0


def test_lists_of_one_answer_that_are_right_too_often_are_told_apart(run: Run, fitted: Probabilities) -> None:
    """Asked for little, most lists are a first answer alone, which is right more often."""
    (own,) = check_lists(run.model, run.graph, fitted, run.graph.test, (0.3,))
    assert own.single > 0.5 and own.found > 0.35
    assert own.found_longer is not None and own.found_longer < own.found


def test_confidences_are_how_often_links_were_facts(run: Run, fitted: Probabilities, shuffled: Probabilities) -> None:
    found = check_probabilities(run.model, run.graph, fitted)
    enough = [c for c in found.confidences if c.facts >= 40]
    assert len(enough) >= 4 and max(c.high for c in enough) > 0.1
    for c in enough:
        assert c.found / 2 < c.said < 2 * c.found, c
    json.dumps(found.as_dict(), allow_nan=False)
    assert "hold the answer" in str(found)
    rng, losses = np.random.default_rng(5), {}
    for side in SIDES:
        questions = draw_questions(run.graph, side, run.graph.test, 500, rng)
        some, _ = candidates(run.model, run.graph, side, questions, fitted.side(side).temperatures, rng)
        base = np.average(some.fact, weights=some.weight)
        for name, p in (
            ("fitted", fitted.confidence_of(side, some.relation, True, some.features)),
            ("shuffled", shuffled.confidence_of(side, some.relation, True, some.features)),
            ("base rate", np.full(len(some.fact), base)),
        ):
            losses[side, name] = -np.average(np.log(np.where(some.fact, p, 1 - p)), weights=some.weight)
        assert losses[side, "fitted"] < 0.95 * min(losses[side, "base rate"], losses[side, "shuffled"]), losses


class Table(Scorer):
    """A model that says of every triple what a table has."""

    def __init__(self, scores: Tensor) -> None:  # (entities, relations, entities)
        super().__init__(scores.shape[0], scores.shape[1], 1)
        self.scores = nn.Parameter(scores, requires_grad=False)

    def score(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        return self.scores[heads, relations, tails]

    def score_candidates(self, side: str, given: Tensor, relations: Tensor, candidates: Tensor | None = None) -> Tensor:
        rows = self.scores[given, relations] if side == "tail" else self.scores[:, relations, given].permute(1, 0)
        assert candidates is None
        return rows


def neighbours() -> tuple[Table, Graph]:
    """Eight neighbours each in a ring of 120; of 30 entities the graph lacks all but two of them, which valid holds."""
    n = 120
    rng = np.random.default_rng(0)
    steps = np.array([-4, -3, -2, -1, 1, 2, 3, 4])
    rows = np.stack([np.repeat(np.arange(n), 8), np.zeros(8 * n, int), (np.arange(n)[:, None] + steps).ravel() % n], 1)
    missing = (rows[:, 0] % 4 == 0) & (rng.random(len(rows)) < 0.8)
    scores = rng.normal(size=(n, 1, n)) * 0.25
    scores[rows[:, 0], 0, rows[:, 2]] += 6.0
    names = Vocabulary("entity", tuple(f"e{i}" for i in range(n))), Vocabulary("relation", ("next",))
    graph = Graph("ring", *names, rows[~missing].astype(np.int32), rows[missing].astype(np.int32))
    return Table(torch.from_numpy(scores).float()), graph


def test_eight_missing_neighbours_have_an_eighth_each_and_may_all_be_sure() -> None:
    model, graph = neighbours()
    found = fit_probabilities(model, graph)
    assert found is not None
    new = replace(graph, valid=np.zeros((0, 3), np.int32))  # what valid held is not known now
    answers = new.known["tail"].lookup(np.array([8]), np.array([0]))
    missing = graph.valid[graph.valid[:, 0] == 8, 2]
    assert len(missing) >= 5
    scores = model.score_tails(torch.tensor([8]), torch.tensor([0])).clone()
    scores[0, 8] = -torch.inf
    columns = np.concatenate([missing, [60, 61]])[None]
    sure = found.confidences("tail", np.array([0]), scores, answers, columns)[0]
    beta = found.question_temperatures("tail", np.array([0]), scores, answers)[0]
    shares = torch.softmax(beta * scores[0], 0)[torch.from_numpy(columns[0].astype(np.int64))]
    assert float(shares.max()) < 0.3
    assert sure[:-2].min() > 0.5 and sure[-2:].max() < 0.05


def made(**changes: Any) -> dict[str, Any]:
    """Probabilities by hand, as they stand in run.json."""
    odds = {"intercept": -1.0, "slopes": [0.5, 0.3, 0.1, 0.2, -0.1], "by_relation": {"0": 0.3}}
    odds |= {"knots": [-3.0, 0.0, 2.0], "values": [-4.0, -1.0, 1.5]}
    side = {
        "temperatures": {"overall": 1.5, "by_relation": {"1": 0.7}},
        "first": {"u": 0.8, "v": 1.1, "w": -0.2},
        "coverage": {"others": {"count": 20, "values": [0.5, 1.0, 2.0, 4.0]}, "by_relation": {}},
        "asked": odds,
        "unasked": {**odds, "intercept": -3.0},
    }
    return {"relations": 2, "facts": 10, "head": side, "tail": side, "of_relations": 1.0} | changes


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.floats(-50, 50, width=32), min_size=4, max_size=12),
    st.floats(-100, 100),
    st.integers(0, 1),
    st.integers(0, 3),
)
def test_confidences_are_probabilities_that_rise_with_the_score(
    values: list[float], shift: float, relation: int, known: int
) -> None:
    p = Probabilities.model_validate(made())
    scores = torch.tensor([values], dtype=torch.float64)
    lists = Lists(np.array([0, known]), np.arange(known, dtype=np.int32))
    columns = np.arange(known, len(values))[None]
    found = p.confidences("tail", np.array([relation]), scores, lists, columns)
    assert ((found >= 0) & (found <= 1)).all()
    order = np.argsort(np.array(values)[known:], kind="stable")
    assert (np.diff(found[0][order]) >= -1e-9).all()
    moved = p.confidences("tail", np.array([relation]), scores + shift, lists, columns)
    assert moved == pytest.approx(found, abs=1e-6)  # what moves all scores alike is not seen
    more = p.confidences("tail", np.array([relation]), scores, lists, columns, missing=20)
    assert more / (1 - more) == pytest.approx(2 * found / (1 - found), rel=1e-6)


@pytest.mark.parametrize("spread", [0.0, 0.5, 3.0, 40.0])
def test_any_share_within_reach_is_met_and_else_the_nearest(spread: float) -> None:
    rng = np.random.default_rng(0)
    scores = torch.from_numpy(spread * rng.normal(size=(200, 300))).float()
    scores[:, 5] = -torch.inf
    betas, none = rng.uniform(0.5, 2.0, 200), Lists(np.zeros(201, np.int64), np.zeros(0, np.int32))
    wanted = rng.uniform(0.001, 0.999, 200)
    found = sharpened(scores, betas, none, lambda share: np.log(wanted / (1 - wanted)))
    least, share, most = (
        torch.softmax(scores.double() * torch.from_numpy(b)[:, None], 1).amax(1).numpy()
        for b in (betas / 16, found, betas * 16)
    )
    assert share == pytest.approx(np.clip(wanted, least, most), rel=0.02, abs=1e-3)


def test_a_question_is_sharpened_to_the_share_that_was_right() -> None:
    rng = np.random.default_rng(0)
    scores = torch.from_numpy(rng.normal(size=(40, 30)) * 3)
    none = Lists(np.zeros(41, np.int64), np.zeros(0, np.int32))
    betas = np.full(40, 0.5)
    first = FirstShare(u=0.7, v=1.2, w=0.3)
    share = torch.softmax(0.5 * scores, 1).amax(1).numpy()
    found = sharpened(scores, betas, none, first.log_odds)
    after = torch.softmax(torch.from_numpy(found)[:, None] * scores, 1).amax(1).numpy()
    assert after == pytest.approx(1 / (1 + np.exp(-first.log_odds(share))), abs=5e-3)
    assert sharpened(scores, betas, none, FirstShare().log_odds) == pytest.approx(betas, rel=5e-3)


def test_features_by_hand() -> None:
    scores = torch.tensor([[3.0, 1.0, 0.0, -torch.inf]])
    x = features(scores, np.array([2.0]), Lists(np.array([0, 1]), np.array([0], np.int32)), np.array([[1, 2, 3]]))
    assert x.shape == (1, 3, len(FEATURES))
    w = 2 * np.array([0.0, -2.0, -3.0])  # times β, less the greatest
    assert x[0, 0] == pytest.approx(
        [-math.log1p(math.exp(-2)), w[1] - w.mean(), w[1] - w[0], math.log(2), w.std()], rel=1e-5
    )
    assert np.isneginf(x[0, 2]).all()


def test_quantiles_are_those_of_split_conformal_prediction() -> None:
    q = Quantiles(count=9, values=tuple(float(i) for i in range(1, 10)))
    assert [q.at(c) for c in (0.1, 0.5, 0.85, 0.9)] == [1.0, 5.0, 9.0, 9.0]  # the ⌈10 c⌉-th of nine
    assert q.at(0.91) == math.inf
    coarse = Quantiles(count=100, values=tuple(float(i) for i in range(10, 101, 10)))
    assert [coarse.at(c) for c in (0.05, 0.1, 0.5)] == [10.0, 20.0, 60.0]  # never less than the exact one


def test_shares_of_a_question_sum_to_one(run: Run) -> None:
    everything = len(run.graph.entities)
    for asked in ({"head": "France", "relation": "borders"}, {"relation": "speaks", "tail": "Arabic"}):
        found = predict(run, k=everything, **asked)
        assert sum(a.share or 0.0 for a in found) == pytest.approx(1, abs=1e-4)
        assert [a.share for a in found] == sorted((a.share for a in found), reverse=True)
        sure = [a.confidence for a in found if not a.known]
        assert sure == sorted(sure, reverse=True) and min(sure) >= 0 and max(sure) <= 1
        assert all(a.confidence is None for a in found if a.known)
    relations = predict(run, head="France", tail="Spain")
    assert sum(a.share or 0.0 for a in relations) == pytest.approx(1)
    assert all(a.confidence is None for a in relations)


def test_raw_is_the_models_own(run: Run) -> None:
    fitted, raw = (predict(run, head="France", relation="borders", raw=raw) for raw in (False, True))
    assert [a.probability for a in fitted] == [a.probability for a in raw]
    assert all(a.share is None and a.confidence is None for a in raw)
    assert "lower bound" in fitted.note and "raw" in raw.note and "lower bound" not in str(raw)


def test_predict_makes_lists_of_a_coverage(run: Run, fitted: Probabilities) -> None:
    short, long = (predict(run, head="Kyoto", relation="near", coverage=c) for c in (0.5, 0.9))
    assert 1 <= len(short) < len(long)
    assert [a.name for a in short] == [a.name for a in long][: len(short)]
    assert not any(a.known for a in long) and long.coverage == 0.9 and "90%" in str(long)
    kyoto, near = np.array([run.graph.entities.id("Kyoto")]), np.array([run.graph.relations.id("near")])
    known = run.graph.known["tail"].lookup(kyoto, near)
    every = predict(run, head="Kyoto", relation="near", coverage=1.0)
    assert len(every) == len(run.graph.entities) - 1 - len(known.values)
    assert fitted.longest("tail", np.array([0]), 1.0)[0] == math.inf


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"coverage": 0.9, "k": 3}, "leave out k"),
        ({"coverage": 0.9, "raw": True}, "raw"),
        ({"coverage": 0.0}, "coverage is 0.0; expected a number above 0"),
        ({"coverage": 1.5}, "coverage is 1.5"),
        ({"coverage": "much"}, "coverage is 'much'"),
    ],
)
def test_wrong_ways_to_ask(run: Run, how: dict[str, Any], words: str) -> None:
    with pytest.raises(RelWalkError, match=words):
        predict(run, head="Kyoto", relation="near", **how)
    with pytest.raises(RelWalkError, match="coverage is for heads and tails"):
        predict(run, head="Kyoto", tail="Osaka", coverage=0.9)


def test_a_graph_without_valid_is_not_calibrated(tmp_path: Path) -> None:
    plain = train(make_graph(TRAIN, [], TEST), dim=4, epochs=1, out=tmp_path / "run", threads=1)
    assert plain.probabilities is None and load_run(tmp_path / "run").probabilities is None
    found = predict(plain, head="a", relation="likes")
    assert found[0].share is None and "not calibrated: the graph has no valid triples" in str(found)
    with pytest.raises(RelWalkError, match="not calibrated: the graph has no valid triples"):
        predict(plain, head="a", relation="likes", coverage=0.9)


def test_a_graph_with_one_valid_triple_is_fitted() -> None:
    found = train(make_graph(TRAIN, VALID, TEST), dim=4, epochs=1, threads=1)
    assert found.probabilities is not None
    answers = predict(found, head="a", relation="likes", k=5)
    assert all(0 <= (a.confidence or 0) <= 0.5 for a in answers)  # one fact says little
    assert len(predict(found, head="b", relation="likes", coverage=0.9)) >= 1


def test_an_old_run_loads_and_says_that_it_is_not_calibrated(run: Run, tmp_path: Path) -> None:
    old = run.save(tmp_path / "old")
    file = tmp_path / "old" / RECORD
    content = json.loads(file.read_text())
    del content["probabilities"]
    file.write_text(json.dumps(content | {"version": 4}))
    loaded = load_run(tmp_path / "old")
    assert old.probabilities == run.probabilities and loaded.probabilities is None
    found = str(predict(loaded, head="France", relation="borders"))
    assert "not calibrated: it was saved by an earlier relwalk" in found


def change(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def damage(content: dict[str, Any]) -> None:
        *parents, last = path.split(".")
        for name in parents:
            content = content[name]
        if value is KeyError:
            del content[last]
        else:
            content[last] = value

    return damage


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (change("relations", 11), "probabilities of 11 relations; the graph has 10"),
        (change("relations", 3), "found the relation 9; expected 0 to 2"),
        (change("relations", 0), "probabilities.relations"),
        (change("facts", "many"), "probabilities.facts"),
        (change("head", KeyError), "probabilities.head"),
        (change("head.more", 1), "probabilities.head.more"),
        (change("of_relations", -1.0), "probabilities.of_relations"),
        (change("tail.temperatures.overall", 0.0), "temperatures.overall"),
        (change("tail.temperatures.overall", float("nan")), "temperatures.overall"),
        (change("tail.temperatures.by_relation", {"-1": 1.0}), "by_relation"),
        (change("tail.temperatures.by_relation", {"10": 1.0}), "found the relation 10; expected 0 to 9"),
        (change("tail.temperatures.by_relation", {"x": 1.0}), "by_relation"),
        (change("tail.first.u", -0.5), "first.u"),
        (change("tail.coverage.others.values", []), "coverage.others.values"),
        (change("tail.coverage.others.values", [2.0, 1.0]), "must ascend"),
        (change("tail.coverage.others.count", 1), "expected at most as many"),
        (change("head.asked.intercept", float("inf")), "asked.intercept"),
        (change("head.asked.slopes", [1.0]), "asked.slopes"),
        (change("head.asked.slopes", [-1.0, 0, 0, 0, 0]), "must not be negative"),
        (change("head.asked.knots", [0.0]), "expected as many"),
        (change("head.unasked", None), "unasked"),
    ],
)
def test_a_damaged_record_is_refused(
    run: Run, damage: Callable[[dict[str, Any]], None], words: str, tmp_path: Path
) -> None:
    assert run.path is not None
    for file in run.path.iterdir():
        (tmp_path / file.name).symlink_to(file) if file.name != RECORD else None
    content = json.loads((run.path / RECORD).read_text())
    damage(content["probabilities"])
    (tmp_path / RECORD).write_text(json.dumps(content))
    with pytest.raises(RunError, match=words):
        load_run(tmp_path)


def test_knots_must_rise() -> None:
    good = made()["tail"]["asked"]
    Odds.model_validate(good)
    for harm in ({"knots": [0.0, 0.0, 1.0]}, {"values": [0.0, -1.0, 1.0]}):
        with pytest.raises(ValueError, match="must rise"):
            Odds.model_validate(good | harm)


def test_a_run_that_goes_on_is_fitted_again_and_a_compressed_one_too(tmp_path: Path) -> None:
    _, graph = neighbours()
    steady = {"dim": 8, "l2": 0.1, "schedule": "constant", "entity_dropout": 0.0, "validate_every": 1, "threads": 1}
    two = train(graph, epochs=2, out=tmp_path / "run", **steady)
    four = resume(tmp_path / "run", epochs=4)
    assert two.probabilities is not None and four.probabilities not in (None, two.probabilities)
    assert load_run(tmp_path / "run").probabilities == four.probabilities
    assert train(graph, epochs=4, **steady).probabilities == four.probabilities  # by the seed
    small = compress(four, out=tmp_path / "small", rank=2).run
    assert small.probabilities is not None and load_run(tmp_path / "small").probabilities == small.probabilities
