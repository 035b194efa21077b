"""The parts of a search: what is asked next, who is pruned, how long a trial may take, and its folder."""

from __future__ import annotations

import subprocess
import sys
import time
import tomllib
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from relwalk.errors import RelWalkError, RunError
from relwalk.evaluation.comparison import Moment, graph_facts
from relwalk.evaluation.tuning import Trial, best_of, ranked, read_trial
from relwalk.graph.graph import Graph
from relwalk.planning import plan
from relwalk.space import Among, Between
from relwalk.tuning import folder as folders
from relwalk.tuning import pacing
from relwalk.tuning.folder import Session, Study, StudyFolder
from relwalk.tuning.pacing import Pace, plan_epochs, share_of
from relwalk.tuning.pruning import reached, verdict
from relwalk.tuning.sampler import ask, importance
from relwalk.tuning.toml import settings_as_toml, toml_value

SPACE = {"x": Between(0.0, 1.0), "y": Between(0.0, 1.0), "kind": Among(("good", "bad"))}
USUAL = {"x": 0.5, "y": 0.5, "kind": "bad"}


def curve(*mrrs: float) -> tuple[Moment, ...]:
    return tuple(Moment(float(i), i, 1.0, mrr) for i, mrr in enumerate(mrrs, start=1))


def finished(number: int, mrr: float, **tried: Any) -> Trial:
    return Trial(number, tried, "finished", planned={"epochs": 4}, valid_mrr=mrr, curve=curve(0, 0, 0, mrr))


def searched(count: int, mrr: Any) -> list[Trial]:
    """A search of so many trials, in which a function of what is tried is the figure."""
    trials = [finished(1, mrr(USUAL), **USUAL)]
    while len(trials) < count:
        tried = ask(SPACE, USUAL, trials, seed=3)
        trials.append(finished(len(trials) + 1, mrr(tried), **tried))
    return trials


def peak(tried: Any) -> float:
    return 1 - (tried["x"] - 0.9) ** 2 - (0.3 if tried["kind"] == "bad" else 0.0)


def test_the_search_goes_to_where_it_is_good() -> None:
    trials = searched(40, peak)
    late = trials[-10:]
    assert best_of(trials).valid_mrr > 0.99 > peak(USUAL)
    assert sum(t.tried["kind"] == "good" for t in late) >= 8
    assert sum(peak(t.tried) for t in late) / 10 > 0.8  # at random .57


def test_it_says_what_mattered() -> None:
    trials = searched(40, peak)
    found = importance(SPACE, trials)
    assert set(found) == set(SPACE) and sum(found.values()) == pytest.approx(1)
    assert next(iter(found)) == "x" and found["y"] < 0.2 * found["x"]
    assert importance(SPACE, trials[:4]) == {}
    assert importance(SPACE, [Trial(i, USUAL, "failed") for i in range(20)]) == {}


def test_the_first_trials_stay_near_the_default() -> None:
    wide = {f"s{i}": Between(0.0, 1.0) for i in range(10)}
    usual = dict.fromkeys(wide, 0.5)
    changed = [sum(v != 0.5 for v in ask(wide, usual, [finished(1, 0.1, **usual)], s).values()) for s in range(20)]
    assert min(changed) >= 1 and max(changed) < 10 and 2 < sum(changed) / 20 < 6


def test_failed_trials_are_kept_away_from() -> None:
    space = {"x": Between(0.0, 1.0)}
    trials = [finished(1, 0.5, x=0.2)]
    for number in range(2, 16):
        x = number / 16
        found = finished(number, 0.5 - x / 9, x=x)
        trials.append(found if x <= 0.5 else Trial(number, {"x": x}, "failed", "memory"))
    asked = [ask(space, {"x": 0.2}, trials, seed)["x"] for seed in range(12)]
    assert sum(x > 0.5 for x in asked) <= 3


def test_others_that_run_and_settings_left_to_the_model_are_no_obstacle() -> None:
    trials = [replace(finished(1, 0.5, x=0.5, y=0.5, kind="good"), tried={"x": 0.5, "y": None, "kind": "good"})]
    trials += [finished(n, 0.4, **USUAL) for n in range(2, 12)] + [Trial(12, USUAL), Trial(13, USUAL, "pruned")]
    assert set(ask(SPACE, USUAL, trials, 0)) == set(SPACE)


def test_a_poor_curve_is_pruned_once_there_is_something_to_judge_by() -> None:
    rivals = [replace(finished(n, 0.5), curve=curve(0.2, 0.3, 0.4, 0.5)) for n in range(1, 4)]
    trial = Trial(9, {}, planned={"epochs": 4})
    assert "below" not in verdict(trial, curve(0.1), rivals)
    assert verdict(trial, curve(0.1), rivals).startswith("after 25% of its epochs valid MRR 0.1000")
    assert verdict(trial, curve(0.2), rivals) == ""  # as good as half of them
    assert verdict(trial, curve(0.1), rivals[:2]) == ""
    assert verdict(trial, curve(0.1, 0.1, 0.1, 0.1), rivals) == ""  # at its end
    assert verdict(trial, (), rivals) == ""
    assert verdict(replace(trial, planned={"epochs": 40}), curve(0.1), rivals) == ""  # too early
    assert verdict(replace(trial, tried={"schedule": "cosine"}), curve(0.1), rivals) == ""  # another way to go


def test_a_point_before_the_first_validation_is_a_part_of_it() -> None:
    late = (Moment(1.0, 5, 1.0, 0.4), Moment(2.0, 10, 1.0, 0.3))
    assert reached(late, 10, 0.25) == pytest.approx(0.2)
    assert reached(late, 10, 0.6) == reached(late, 10, 1.0) == 0.4


def test_shares_of_the_time() -> None:
    first = replace(finished(1, 0.5), seconds=10.0)
    assert share_of(100, 100, [], None, 1) == 50
    assert share_of(90, 100, [first], None, 1) == 15  # half as much again as the default took
    assert share_of(90, 100, [replace(first, seconds=0.1)], None, 1) == 3
    assert share_of(10, 100, [first], None, 1) == 10  # what is left
    assert share_of(1, 100, [first], None, 1) is None
    assert share_of(90, 100, [first], 10, 1) == 10
    assert share_of(90, 100, [first], 10, 3) == 30
    assert share_of(90, 100, [first] * 5, 10, 1) == 18  # others were pruned: there is more for each
    assert share_of(90, 100, [first] * 10, 10, 1) is None


def test_the_epochs_of_a_trial_fit_into_its_time(world: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pace, "seconds", property(lambda self: 1.0))
    monkeypatch.setattr(pacing, "LONGEST", 0.05)
    given = {"dim": 4, "threads": 1, "batch_size": 4096}
    usual, planned = plan(world, **given).training, plan_epochs(world, given, 60.0)
    assert 20 <= planned["epochs"] <= 54
    assert planned.get("validate_every", usual.validate_every) <= max(1, planned["epochs"] // 10)
    short = plan_epochs(world, given, 12.0)  # on a path, as many epochs as the whole one waits
    assert short["patience"] * short["validate_every"] >= usual.patience * usual.validate_every
    steady = plan_epochs(world, {**given, "l2": 0.1}, 12.0)
    assert steady["patience"] * steady["validate_every"] >= 5 * usual.validate_every
    assert plan_epochs(world, given, 0.5)["epochs"] == 1
    assert plan_epochs(world, given, 1e6) == {"epochs": usual.epochs}  # no more than it would have
    assert plan_epochs(world, {**given, "epochs": 7, "validate_every": 3}, 1e6) == {"epochs": 7}


def test_a_pace_is_that_of_the_steps() -> None:
    pace = Pace()
    pace.marks = [(10.0, 0.1), (12.0, 0.5)]
    assert pace.seconds == pytest.approx(5.0)
    pace.validation = 5.0
    assert pace.epochs_in(100.0, 1, 50) == 9 and pace.epochs_in(100.0, 5, 50) == 15


def study_of(graph: Graph) -> Study:
    return Study(graph_facts(graph, "here"), "relwalk", {}, {}, {}, 0, space={"x": {"choices": [1, 2]}})


@pytest.fixture
def folder(tmp_path: Path, five: Graph) -> StudyFolder:
    made = StudyFolder(tmp_path)
    made.write_study(study_of(five))
    made.make_places()
    return made


def test_a_study_is_read_back_and_told_from_others(folder: StudyFolder, five: Graph) -> None:
    study = folder.read_study()
    assert study == study_of(five) and study.differs(study_of(five)) is None
    assert study.searched == {"x": Among((1, 2))}
    assert "its given settings is {}, now {'l2': 0.1}" in str(study.differs(replace(study, fixed={"l2": 0.1})))
    (folder.path / "study.json").write_text('{"format": "relwalk-tune", "version": 1, "seed": "x"}')
    with pytest.raises(RunError, match=r"study\.json holds no search that can be read"):
        folder.read_study()
    (folder.path / "study.json").write_text('{"format": "relwalk-tune", "version": 9}')
    with pytest.raises(RunError, match="was not written by this relwalk"):
        folder.read_study()


def test_a_damaged_trial_is_told(folder: StudyFolder) -> None:
    folder.place(1).mkdir()
    for content in ("{", '{"number": "one"}', '{"number": 1, "tried": {}, "status": "lost"}'):
        (folder.place(1) / "trial.json").write_text(content)
        with pytest.raises(RunError, match=r"trial\.json holds no trial that can be read"):
            read_trial(folder.place(1) / "trial.json")


HOLDER = """
import sys
from contextlib import ExitStack
from pathlib import Path
from relwalk.tuning.folder import StudyFolder
with ExitStack() as held:
    print(StudyFolder(Path(sys.argv[1])).hold(2, held), flush=True)
    sys.stdin.read()
"""


def test_a_trial_is_held_by_one_process_until_that_dies(folder: StudyFolder) -> None:
    trials = [finished(1, 0.5), Trial(2, {})]
    for trial in trials:
        folder.place(trial.number).mkdir()
        folder.write(trial)
    command = [sys.executable, "-c", HOLDER, str(folder.path)]
    other = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None and other.stdout.readline() == "True\n"
    with ExitStack() as held:
        assert not folder.hold(2, held) and folder.at_work(folder.trials()) == [trials[1]]
        other.kill()
        other.communicate()
        assert folder.at_work(folder.trials()) == [] and folder.hold(2, held)


def test_the_time_that_counts_is_that_of_all_together(folder: StudyFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    spans = [(100, 110), (105, 107), (108, 120), (200, 201.5)]
    for number, (begin, end) in enumerate(spans):
        (folder.path / "sessions" / f"{number}.json").write_text(f'{{"from": {begin}, "to": {end}}}')
    (folder.path / "sessions" / "broken.json").write_text("{")
    assert folder.spent() == 21.5
    session = Session(folder)
    monkeypatch.setattr(folders, "BEAT", 0.0)
    time.sleep(0.02)
    session.beat()
    assert 21.52 <= folder.spent() < 30


def test_what_a_killed_session_left_half_written_is_removed(folder: StudyFolder) -> None:
    place = folder.path / "sessions"
    (place / ".host-7-100.json.7.tmp").write_text("half")
    (place / "host-7-100.json").write_text('{"from": 1, "to": 2}')
    folder.make_places()
    assert [path.name for path in place.iterdir()] == ["host-7-100.json"] and folder.spent() == 1


def test_of_all_runs_the_best_is_kept(folder: StudyFolder) -> None:
    for number, mrr in enumerate([0.2, 0.4, 0.4, 0.3], start=1):
        folder.run(number).mkdir(parents=True)
        (folder.run(number) / "run.json").write_text("{}")
        folder.end(replace(finished(number, mrr), settings={"dim": number}, tried={"dim": number}))
    kept = [number for number in range(1, 5) if (folder.run(number) / "run.json").exists()]
    assert kept == [2]  # the first of the two
    assert tomllib.loads((folder.path / "best.toml").read_text()) == {"dim": 2}
    assert [trial.number for trial in ranked(folder.trials())] == [2, 3, 4, 1]


def test_settings_are_toml_whatever_they_are() -> None:
    values = {"a": 1e-9, "b": 3.0, "c": 7, "d": True, "e": 'a "quoted" \\ \x7f \x01 name …', "f": 1e22, "g": None}
    trial = Trial(3, {"b": 3.0, "gone": 1}, settings=values)
    found = tomllib.loads(settings_as_toml(trial))
    assert found == {name: value for name, value in values.items() if value is not None}
    assert {name: type(value) for name, value in found.items()}["b"] is float
    assert toml_value(False) == "false"


def test_an_unknown_search_is_refused(folder: StudyFolder) -> None:
    (folder.path / "study.json").write_text((folder.path / "study.json").read_text().replace('"choices"', '"options"'))
    with pytest.raises(RelWalkError, match="expected choices, or low, high and scale"):
        folder.read_study()
