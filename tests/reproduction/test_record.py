"""A record holds what a run reaches and all that makes it again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import relwalk
from relwalk.checks import MOST
from relwalk.errors import RelWalkError, RunError
from relwalk.reproduction.measure import departures, measure_run
from relwalk.reproduction.record import ResultRecord, as_json, read_result, read_results, result_name, schema
from tests.entry import relwalk as command

RECORDS = Path(__file__).parents[2] / "results" / "records"
SETTINGS = {"dim": 8, "epochs": 2, "threads": 1}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run and its record."""
    folder = tmp_path_factory.mktemp("record")
    words = ["--dim", 8, "--epochs", 2, "--threads", 1, "--seed", 3]
    command("train", "world", *words, "--out", "run", cwd=folder)
    command("record", "run", "--out", "records", cwd=folder)
    return folder


@pytest.fixture(scope="module")
def record(place: Path) -> ResultRecord:
    (found,) = read_results(place / "records")
    return found


def test_the_figures_are_those_of_the_run(place: Path, record: ResultRecord) -> None:
    run = relwalk.load_run(place / "run")
    for rule in ("all", "argument"):
        ranked = relwalk.rank(run, candidates=rule)
        assert record.figure(rule) == pytest.approx(ranked.mrr, rel=1e-4)
        assert record.figure(rule, "mr", side="head", ties="optimistic") == pytest.approx(
            ranked.metrics("head", "optimistic").mr, rel=1e-4
        )
        for name, metrics in ranked.by_relation().items():
            assert record.by_relation[rule][name]["mrr"] == pytest.approx(metrics.mrr, rel=1e-3)
    assert record.metrics.classification is None and record.accuracy is None  # the graph ships no false triples
    assert record.metrics.valid_mrr == run.record.metrics["valid_mrr"]


def test_it_says_how_it_was_made(place: Path, record: ResultRecord) -> None:
    assert (record.dataset, record.model, record.recipe, record.seed) == ("world", "relwalk", "default", 3)
    assert {"dim": 8, "epochs": 2}.items() <= record.asked.items() and "l2" not in record.asked
    assert record.settings is not None and record.settings.training["threads"] == 1
    assert record.cost.epochs == 2 and (record.cost.seconds or 0) > 0 and record.cost.peak_bytes is None
    assert record.machine is not None and record.machine.cores and record.commit is None
    assert "torch" in record.versions and record.graph is not None and record.graph.entities == 2737


def test_its_command_makes_the_same_figures(place: Path, record: ResultRecord) -> None:
    words = record.command.split()
    assert words[:3] == ["relwalk", "train", "world"]
    command(*words[1:], "--out", place / "again", cwd=place / "records")
    again = measure_run(relwalk.load_run(place / "again"), record.command)
    assert again.metrics == record.metrics and again.settings == record.settings


def test_a_record_is_not_replaced_unasked(place: Path) -> None:
    (path,) = (place / "records").glob("*.json")
    before = path.read_bytes()
    assert "exists already" in command("record", "run", "--out", "records", cwd=place, status=1).stderr
    assert path.read_bytes() == before
    said = command("record", "run", "--out", "records", "--recipe", "mine", "--note", "short", "--json", cwd=place)
    named = json.loads(said.stdout)
    assert (named["recipe"], named["note"], named["asked"]) == ("mine", "short", {})
    assert (place / "records" / "world-relwalk-mine-3.json").is_file()


def test_a_name_for_a_recipe_can_name_a_file(place: Path) -> None:
    for wrong in ("", "a/b", "x" * 41, "two words"):
        assert (
            "recipe is" in command("record", "run", "--out", "records", f"--recipe={wrong}", cwd=place, status=1).stderr
        )


def test_a_run_that_goes_by_its_recipe_departs_in_nothing() -> None:
    run = relwalk.train(relwalk.read_graph("world"), epochs=1, dim=4, threads=1)
    usual = {"dim": 4, "epochs": 1}
    assert {name: value for name, value in departures(run).items() if name in usual} == usual
    assert not {"seed", "objective", "lr", "threads", "l2"} & set(departures(run))


def test_what_is_no_record_is_refused_by_name(tmp_path: Path, place: Path) -> None:
    path = tmp_path / "r.json"
    for text, told in (("{", "holds no record"), ('{"format": "other"}', "was not written by this relwalk")):
        path.write_text(text)
        with pytest.raises(RunError, match=told):
            read_result(path)
    path.write_text((next((place / "records").glob("*.json"))).read_text().replace('"seed": 3', '"seed": "x"'))
    with pytest.raises(RunError, match="seed"):
        read_result(path)
    failed = ResultRecord(dataset="d", model="m", recipe="r", seed=0, command="c", status="failed", reason="it burned")
    path.write_text(as_json(failed.as_dict()))
    with pytest.raises(RelWalkError, match="it burned"):
        relwalk.train(relwalk.read_graph("world"), config=path)


def test_an_unfinished_run_has_no_record(tmp_path: Path) -> None:
    with pytest.raises(RelWalkError):
        relwalk.train(relwalk.read_graph("world"), **SETTINGS, out=tmp_path / "run", stop=lambda: True)
    with pytest.raises(RunError, match="Finish it: relwalk resume"):
        measure_run(relwalk.load_run(tmp_path / "run"))


def test_what_time_limits_is_said_as_a_time() -> None:
    asked = {"dim": 64, "epochs": MOST, "patience": MOST, "budget": 840.0, "lr": 0.1 / 2**0.5}
    record = ResultRecord(dataset="d", model="m", recipe="default", seed=0, command="c", asked=asked)
    assert record.recipe_words == "default, dim 64, budget 14 min, lr 0.07071"


def test_names_tell_requests_apart() -> None:
    plain = result_name("wn18rr", "relwalk", "best", 0, {})
    assert plain == "wn18rr-relwalk-best-0"
    assert result_name("wn18rr", "relwalk", "best", 0, {"epochs": 3}) == "wn18rr-relwalk-best-epochs-3-0"
    odd = [result_name("g", "m", "r", 0, {"path": f"a/{'b' * n}"}) for n in (1, 2)]
    assert len({plain, *odd}) == 3 and all("/" not in name for name in odd)
    assert "/" not in result_name("../a b", "m", "r", 0, {})


@pytest.mark.parametrize("value", [{}, [], {"a": {}, "b": [1, "x"], "c": {"d": {"e": None}}}, [[1], {"a": [2.5]}]])
def test_json_of_few_lines_is_the_same_json(value: object) -> None:
    assert json.loads(as_json(value)) == value


@pytest.mark.parametrize("path", sorted(RECORDS.glob("*.json")), ids=lambda path: path.stem)
def test_every_published_record_is_whole(path: Path) -> None:
    record = read_result(path)
    assert path.stem == record.name and record.command.startswith("relwalk ")
    assert path.read_text() == as_json(record.as_dict()) + "\n"
    assert record.status == "finished" or record.reason


def test_the_schema_names_what_the_tables_read() -> None:
    found = schema()
    assert {"dataset", "model", "recipe", "metrics", "command"} <= set(found["properties"])
    assert {"all", "argument", "classification"} <= set(found["$defs"]["Metrics"]["properties"])
