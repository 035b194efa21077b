"""`relwalk tune`: the best settings on valid, whatever becomes of single trials and of the processes at work."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import relwalk
from relwalk.children import Child
from relwalk.errors import GraphError, Interrupted, RefusedOverwrite, RelWalkError, TrainingDiverged
from relwalk.evaluation.comparison import Moment
from relwalk.evaluation.tuning import Trial, Tuning, read_trial
from relwalk.planning import plan
from relwalk.report.tuning import write_tuning
from relwalk.training.stopping import StopRequest
from relwalk.tuning import child, tune
from relwalk.tuning.folder import StudyFolder
from tests.conftest import TEST, TRAIN, VALID, make_graph
from tests.entry import answer, started
from tests.entry import relwalk as command
from tests.report.test_page import NASTY
from tests.test_compare import check_page

FIVE = make_graph(TRAIN, VALID, TEST)
SMALL: dict[str, Any] = {"dim": 4, "epochs": 3, "threads": 1}
QUICK = ["--dim", 4, "--epochs", 4, "--threads", 1, "--batch-size", 4096, "--budget", "10m", "--seed", 3]
FACTS = "".join(f"e{i % 30}\tr{i % 4}\te{i * 11 % 37}\n" for i in range(300))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A search of four trials."""
    place = tmp_path_factory.mktemp("tune")
    (place / "facts.tsv").write_text(FACTS)
    done = command("tune", "facts.tsv", *QUICK, "--trials", 4, "--out", "out", cwd=place)
    (place / "said").write_text(done.stdout)
    (place / "noted").write_text(done.stderr)
    return place


def trials_of(place: Path) -> list[Trial]:
    return [read_trial(file) for file in sorted(place.glob("trials/*/trial.json"))]


def test_the_best_on_valid_is_chosen_and_alone_ranks_test(folder: Path) -> None:
    found = json.loads((folder / "out" / "tune.json").read_text())
    finished = [trial for trial in found["trials"] if trial["status"] == "finished"]
    assert len(found["trials"]) == 4 and found["best"]["valid_mrr"] == max(t["valid_mrr"] for t in finished)
    number = found["best"]["number"]
    kept = [p.parent.name for p in (folder / "out" / "trials").glob("*/run")]
    assert kept == [f"{number:04}"]
    run = relwalk.load_run(folder / "out" / "trials" / kept[0] / "run")
    assert relwalk.rank(run, split="valid").mrr == found["best"]["valid_mrr"]
    for rule in ("all", "argument"):
        assert found["test"][rule] == relwalk.rank(run, candidates=rule).metrics().as_dict()
    assert found["elsewhere"] == 0 and found["seed"] == 3 and found["fixed"]["dim"] == 4


def test_the_first_trial_is_the_default_recipe(folder: Path) -> None:
    first = trials_of(folder / "out")[0]
    words = ["--dim", 4, "--epochs", 4, "--threads", 1, "--batch-size", 4096, "--seed", 3, "--validate-every", 1]
    command("train", "facts.tsv", *words, "--out", "default", cwd=folder)
    run = relwalk.load_run(folder / "default")
    assert first.valid_mrr == relwalk.rank(run, split="valid").mrr
    assert first.settings == {**first.settings, **run.record.training.flat()}
    assert json.loads((folder / "out" / "tune.json").read_text())["best"]["valid_mrr"] >= first.valid_mrr


def test_the_file_of_settings_repeats_the_best_exactly(folder: Path) -> None:
    best = json.loads((folder / "out" / "tune.json").read_text())["best"]
    command("train", "facts.tsv", "--config", "out/best.toml", "--out", "again", cwd=folder)
    run = relwalk.load_run(folder / "again")
    kept = relwalk.load_run(folder / "out" / "trials" / f"{best['number']:04}" / "run")
    assert relwalk.rank(run, split="valid").mrr == best["valid_mrr"]
    assert (run.record.training, run.record.model, run.record.metrics) == (
        kept.record.training,
        kept.record.model,
        kept.record.metrics,
    )
    assert run.record.files["weights.safetensors"] == kept.record.files["weights.safetensors"]


def test_what_it_says(folder: Path) -> None:
    said, noted = (folder / "said").read_text(), (folder / "noted").read_text()
    assert said.startswith("facts, relwalk: 4 trials (")
    assert "chosen: trial " in said and "(the default recipe: 0." in said
    assert "test, filtered, candidates all entities: MRR 0." in said
    assert "searching dura, " in noted and "trial 4: valid MRR 0." in noted and "(best 0." in noted
    assert "train it again with: relwalk train facts.tsv --config out/best.toml" in noted


def test_the_same_again_adds_nothing_and_more_trials_go_on(folder: Path) -> None:
    before = {p: p.read_bytes() for p in (folder / "out").glob("trials/*/trial.json")}
    found = answer("tune", folder / "facts.tsv", *QUICK, "--trials", 4, "--out", folder / "out")
    assert {p: p.read_bytes() for p in (folder / "out").glob("trials/*/trial.json")} == before
    assert found == json.loads((folder / "out" / "tune.json").read_text())
    more = answer("tune", folder / "facts.tsv", *QUICK, "--trials", 5, "--out", folder / "out")
    assert {p: p.read_bytes() for p in before} == before and len(more["trials"]) == 5


def test_the_page_shows_it_all_and_asks_for_nothing(folder: Path) -> None:
    words = (folder / "out" / "tune.html").read_text()
    page = check_page(words)
    for text in (
        "What was chosen",
        "valid MRR over dura",
        "% of its epochs",
        "The chosen one on test",
        "label smoothing",
    ):
        assert text in page.words
    assert page.tags.count("polyline") >= 4 and "prefers-color-scheme: dark" in words


@pytest.mark.parametrize(
    ("change", "told"),
    [(["--l2", 0.1], "its given settings is"), (["--model", "transe"], "its model is relwalk, now transe")],
)
def test_another_search_is_not_mixed_with_it(folder: Path, change: list, told: str) -> None:
    wrong = command("tune", "facts.tsv", *QUICK, *change, "--trials", 4, "--out", "out", cwd=folder, status=1)
    assert told in wrong.stderr and "--force" in wrong.stderr and "--out" in wrong.stderr


COMMAND = ["tune", "facts.tsv", *map(str, QUICK), "--out", "out", "--trials"]


def wait_for(what: Callable[[], Any], seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def interrupted(place: Path, words: list[str], trial: str, how: signal.Signals) -> tuple[list[float], str]:
    """Begin a search, end it within a trial, and give the losses of that so far and what was said."""
    said = place / "said"
    process = started(*words, said=said, cwd=place)
    there = place / "out" / "trials" / trial
    history = there / "run" / "history.jsonl"
    try:
        wait_for(lambda: process.exitcode is not None or (history.exists() and history.read_text()))
        os.kill(process.pid, how)
        process.join(300)
    finally:
        process.kill()
    assert process.exitcode == (-how if how == signal.SIGKILL else 128 + how)
    wait_for(lambda: not (there / ".lock").exists())  # left alone, its process saves and ends
    assert read_trial(there / "trial.json").status == "running"
    return [json.loads(line)["loss"] for line in history.read_text().splitlines()], said.read_text()


def test_interrupted_it_goes_on(tmp_path: Path) -> None:
    (tmp_path / "facts.tsv").write_text(FACTS)
    slow = ["--epochs", "100", "--validate-every", "5", "--patience", "1000", "--checkpoint-seconds", "0"]
    words = [*COMMAND, "2", *slow, "--schedule", "constant"]
    done, said = interrupted(tmp_path, words, "0001", signal.SIGINT)
    assert "interrupted, and all is saved; go on with: relwalk tune facts.tsv" in said
    first, said = interrupted(tmp_path, words, "0002", signal.SIGKILL)
    kept = (tmp_path / "out" / "trials" / "0001" / "trial.json").read_bytes()
    trials = trials_of(tmp_path / "out")
    assert trials[0].status == "finished" and [m.loss for m in trials[0].curve][: len(done) // 5] == done[4::5]

    again = command(*words, cwd=tmp_path)
    assert "1 trials are there already" in again.stderr
    assert (tmp_path / "out" / "trials" / "0001" / "trial.json").read_bytes() == kept
    trials = trials_of(tmp_path / "out")
    assert [(t.number, t.status) for t in trials] == [(1, "finished"), (2, "finished")]
    assert [m.loss for m in trials[1].curve][: len(first) // 5] == first[4::5]  # gone on with, not begun again
    assert len(list((tmp_path / "out" / "sessions").iterdir())) == 3  # and nothing that the kill left half-written
    assert json.loads((tmp_path / "out" / "tune.json").read_text())["test"]


def test_several_processes_share_a_search(tmp_path: Path) -> None:
    (tmp_path / "facts.tsv").write_text(FACTS)
    words = [[*COMMAND, "6", "--jobs", jobs] for jobs in ("1", "2")]
    searches = [started(*w, said=tmp_path / f"said{i}", cwd=tmp_path) for i, w in enumerate(words)]
    for search in searches:
        search.join(300)
    assert [search.exitcode for search in searches] == [0, 0]
    trials = trials_of(tmp_path / "out")
    assert [t.number for t in trials] == [1, 2, 3, 4, 5, 6]
    assert all(t.status in ("finished", "pruned") for t in trials) and len({t.process for t in trials}) > 1
    found = json.loads((tmp_path / "out" / "tune.json").read_text())
    assert len(found["trials"]) == 6 and found["test"] and found["elsewhere"] == 0
    assert len({json.dumps(t.tried, sort_keys=True) for t in trials}) == 6  # nothing was tried twice


def begun(place: Path, **fixed: Any) -> StudyFolder:
    """A search in this process, with nothing tried yet."""
    place.mkdir(exist_ok=True)
    made = StudyFolder(place)
    tune._begun(made, tune._study(FIVE, "five", {**SMALL, **fixed}), FIVE, force=False)
    return made


def work(folder: StudyFolder, trials: int | None, budget: float = 600.0) -> list[Trial]:
    child.work(folder, StopRequest(), budget=budget, trials=trials, processes=1, threads=1)
    return folder.trials()


def put_finished(folder: StudyFolder, count: int, mrr: float) -> None:
    usual = folder.read_study().usual
    for number in range(1, count + 1):
        curve = tuple(Moment(float(i), i, 1.0, mrr) for i in (1, 2, 3))
        folder.place(number).mkdir(exist_ok=True)
        folder.write(Trial(number, usual, "finished", planned={"epochs": 3}, valid_mrr=mrr, curve=curve, seconds=1.0))


def test_a_trial_that_is_behind_is_pruned(tmp_path: Path) -> None:
    folder = begun(tmp_path / "a", schedule="constant")
    put_finished(folder, 3, 2.0)  # as no training can
    trial = work(folder, 4)[-1]
    assert trial.status == "pruned" and len(trial.curve) == 1
    assert trial.reason.startswith("after 33% of its epochs valid MRR 0.") and "half of 3 had 2.0000" in trial.reason
    assert not folder.run(4).exists()
    easy = begun(tmp_path / "b", schedule="constant")
    put_finished(easy, 3, 0.0)
    assert work(easy, 4)[-1].status == "finished"


def test_a_trial_that_fails_is_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trained = child.train_or_go_on

    def failing(path: Path, *rest: Any, **more: Any) -> Any:
        if path.parent.name == "0001":
            raise TrainingDiverged("the loss has no end. Lower --lr.")
        if path.parent.name == "0002":
            raise MemoryError("no room")
        return trained(path, *rest, **more)

    monkeypatch.setattr(child, "train_or_go_on", failing)
    folder = begun(tmp_path)
    first, second, third = work(folder, 3)
    assert (first.status, first.reason) == ("failed", "the loss has no end. Lower --lr.")
    assert (second.status, second.reason) == ("failed", "MemoryError: no room")
    assert third.status == "finished"
    found = tune._result(folder, folder.read_study(), {"budget": 600.0}, str(tmp_path))
    assert "trial 2 failed: MemoryError: no room" in str(found) and found.best == third and found.default is None
    assert "trial 1 failed" in check_page(write_tuning(found)).words.lower()


def test_a_process_that_is_killed_is_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed = []

    class Killed(tune.Child):
        def ended(self, wait: float = 0.1) -> int | None:
            file = tmp_path / "out" / "trials" / "0001" / "trial.json"
            if not killed and file.exists():
                killed.append(self)
                self.process.kill()
            return super().ended(wait)

    monkeypatch.setattr(tune, "Child", Killed)
    found = relwalk.tune(FIVE, trials=2, out=tmp_path / "out", **{**SMALL, "epochs": 100, "validate_every": 1})
    assert sorted(trial.status for trial in found.trials) == ["failed", "finished"]
    (reason,) = [trial.reason for trial in found.trials if trial.status == "failed"]
    assert "SIGKILL, as the system does when memory runs out" in reason


def test_processes_that_cannot_begin_end_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tune, "Child", lambda module, request: Child("relwalk.nothing", request))
    with pytest.raises(RelWalkError, match="no trial could begin: its process ended with status 1"):
        relwalk.tune(FIVE, trials=2, out=tmp_path / "out", **SMALL)


def test_the_time_ends_it_but_not_before_something_is_found(tmp_path: Path) -> None:
    folder = begun(tmp_path / "a")
    session = tune.Session(folder)
    session.began -= 100.0
    session.beat(now=True)
    assert [t.status for t in work(folder, None, budget=50.0)] == ["finished"]  # the default recipe, and no other
    other = begun(tmp_path / "b", epochs=100_000, validate_every=50_000, patience=1000)
    put_finished(other, 1, 0.0)
    last = work(other, 2, budget=1.0)[-1]
    assert (last.status, last.reason) == ("pruned", "the time was over") and 0.5 < last.seconds < 60


def test_epochs_are_as_many_as_the_time_allows(tmp_path: Path) -> None:
    folder = begun(tmp_path)
    study = folder.read_study()
    folder.write_study(replace(study, fixed={"dim": 4, "threads": 1}))
    for trial in work(folder, 2, budget=60.0):
        assert trial.status == "finished" and 1 <= trial.epochs <= plan(FIVE).training.epochs
        assert trial.settings["epochs"] == trial.epochs and trial.seconds < 30


def test_in_python_without_a_folder() -> None:
    found = relwalk.tune(FIVE, trials=2, model="transe", config={"objective": "margin", "negatives": 3}, **SMALL)
    assert isinstance(found, Tuning) and found.path is found.run is found.settings_file is None
    assert found.model == "transe" and "eta" in found.space and "negatives" not in found.space
    assert all(t.settings["negatives"] == 3 for t in found.trials if t.settings)
    assert repr(found).startswith("<Tuning hand, transe, 2 trials in ") and "<table>" in found._repr_html_()
    assert found.best is not None and found.as_dict()["best"]["number"] == found.best.number
    assert found.test["all"].queries == 4


@pytest.mark.parametrize("name", NASTY)
def test_names_are_escaped(tmp_path: Path, name: str) -> None:
    made = begun(tmp_path)
    put_finished(made, 2, 0.5)
    study, trials = made.read_study(), made.trials()
    found = Tuning(study.graph, "relwalk", 1.0, 1.0, 0, {}, study.searched, {}, tuple(trials))
    failed = Trial(3, {"schedule": name}, "failed", name)
    nasty = replace(found, graph=replace(study.graph, name=name), trials=(*trials, failed), left_out={"l2": name})
    page = check_page(write_tuning(nasty))
    assert name in page.words
    assert page.tags.count("script") == check_page(write_tuning(found)).tags.count("script")


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"budget": "soon"}, "budget is 'soon'"),
        ({"budget": 0}, "budget is 0"),
        ({"trials": 0}, "trials is 0"),
        ({"jobs": 0}, "jobs is 0"),
        ({"jobs": 1000}, "jobs is 1000"),
        ({"model": "complx"}, "unknown model 'complx'. Did you mean 'complex'?"),
        ({"model": relwalk.RelWalk}, "unknown model"),
        ({"lr": -1}, r"lr \(--lr\) is -1"),
        ({"epoch": 3}, "Did you mean 'epochs'"),
        ({"margin": 1.0}, "margin means nothing to the objective likelihood"),
        ({"seed": -1}, "seed is -1"),
        ({"config": {"budget": 3}}, "budget is that of the whole search"),
        ({"config": {"epoch": 3}}, "Did you mean 'epochs'"),
        ({"config": "nowhere.toml"}, "nowhere.toml"),
        ({"recipe": "papre"}, "Did you mean 'paper'"),
    ],
)
def test_a_wrong_question_leaves_no_folder(tmp_path: Path, wrong: dict, told: str) -> None:
    with pytest.raises((RelWalkError, FileNotFoundError), match=told):
        relwalk.tune(FIVE, **{**SMALL, "trials": 1, "out": tmp_path / "out", **wrong})
    assert not (tmp_path / "out").exists()


def test_nothing_to_search_and_nothing_to_choose_by_are_told(tmp_path: Path) -> None:
    space = tune.search_space(FIVE, {})
    fixed = {name: value for name, value in space.usual.items() if value is not None}
    with pytest.raises(RelWalkError, match="every setting that could be searched was given by hand"):
        relwalk.tune(FIVE, **{**fixed, "relation_lr": 0.3}, out=tmp_path / "out")
    with pytest.raises(GraphError, match="no valid triples to choose settings by"):
        relwalk.tune(make_graph(TRAIN), trials=1)
    run = relwalk.train(FIVE, dim=4, epochs=1, out=tmp_path / "run")
    with pytest.raises(RelWalkError, match="is a run, whose settings are all decided"):
        relwalk.tune(FIVE, config=run.path, trials=1)


def test_what_is_in_the_way_stays(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(RefusedOverwrite, match=r"'mine\.txt' is no part of a search"):
        relwalk.tune(FIVE, trials=1, out=tmp_path, force=True, **SMALL)
    with pytest.raises(RefusedOverwrite, match="it is a file, and a search is a folder"):
        relwalk.tune(FIVE, trials=1, out=tmp_path / "mine.txt", **SMALL)


def test_asked_to_stop_it_stops_and_force_begins_again(tmp_path: Path) -> None:
    with pytest.raises(Interrupted):
        relwalk.tune(FIVE, out=tmp_path / "out", stop=lambda: True, **SMALL)
    made = StudyFolder(tmp_path / "out")
    put_finished(made, 2, 0.9)
    (tmp_path / "out" / "mine.txt").write_text("mine")
    (tmp_path / "out" / "study.json").write_text("{")
    with pytest.raises(RelWalkError, match="holds no search that can be read"):
        relwalk.tune(FIVE, out=tmp_path / "out", trials=1, **SMALL)
    with pytest.raises(RefusedOverwrite, match=r"mine\.txt"):
        relwalk.tune(FIVE, out=tmp_path / "out", trials=1, force=True, **SMALL)
    (tmp_path / "out" / "mine.txt").unlink()
    found = relwalk.tune(FIVE, out=tmp_path / "out", trials=1, force=True, **SMALL)
    assert [trial.status for trial in found.trials] == ["finished"]


def test_a_missing_extra_is_said_with_the_cure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(RelWalkError, match=r"Install it: pip install 'relwalk\[tune\]'"):
        relwalk.tune(FIVE, out=tmp_path / "out", trials=1)
    assert not (tmp_path / "out").exists()


def test_every_setting_is_a_flag_but_the_budget_is_one() -> None:
    words = command("tune", "--help").stdout
    assert words.count("--budget") == 1 and "--label-smoothing" in words and "--trials" in words
    assert "Time of the whole search" in " ".join(words.split())
    wrong = command("tune", "facts.tsv", "--trials", 0, status=2)
    assert "--trials" in wrong.stderr
