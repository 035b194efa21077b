"""`relwalk reproduce`: the paper's values, ours and the difference; it goes on, and a failed row says why."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import relwalk
from relwalk.errors import Interrupted, RelWalkError, RunError, UnknownChoice
from relwalk.graph.graph import Graph
from relwalk.report.anchors import ANCHORS
from relwalk.report.paper import PAPER, PAPER_ACCURACY, PAPER_CONDITIONS, PAPER_TABLE
from relwalk.reproduction.record import Metrics, ResultRecord, read_result, read_results
from relwalk.reproduction.reproduce import reproduce
from relwalk.reproduction.rows import plan, systems
from relwalk.reproduction.table import table2_lines
from tests.conftest import TEST, TRAIN, VALID, make_graph
from tests.entry import relwalk as command
from tests.report.test_page import Page

QUICK = ["--dim", 5, "--epochs", 2, "--seeds", "1"]
NAME = "world-relwalk-default-dim-5-epochs-2-1"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of two systems, one of which cannot be trained so."""
    folder = tmp_path_factory.mktemp("reproduce")
    words = ["reproduce", "table2", "--dataset", "world", "--models", "complex,relwalk", *QUICK, "--out", "out"]
    done = command(*words, cwd=folder)
    (folder / "said").write_text(done.stdout)
    return folder


def test_a_row_that_fails_says_why_and_the_others_are_there(place: Path) -> None:
    records = {record.model: record for record in read_results(place / "out" / "records")}
    assert records["complex"].status == "failed" and "needs an even dim" in records["complex"].reason
    said = (place / "said").read_text()
    assert "needs an even dim" in said and said.count("| RelWalk |") == 2
    ours = records["relwalk"]
    assert ours.name == NAME and ours.asked == {"dim": 5, "epochs": 2} and ours.cost.peak_bytes != 0
    again = "relwalk reproduce table2 --dataset world --models relwalk --recipe default --seeds 1 --dim 5 --epochs 2"
    assert ours.command == again
    run = relwalk.load_run(place / "out" / "runs" / NAME)
    assert ours.figure("all") == pytest.approx(relwalk.rank(run).mrr, rel=1e-4)
    assert not (place / "out" / ".work").exists()


def test_its_files_hold_the_table(place: Path) -> None:
    found = json.loads((place / "out" / "table2.json").read_text())
    lines = {(line["system"], line["candidates"]): line for line in found["lines"]}
    record = read_result(place / "out" / "records" / f"{NAME}.json")
    assert lines["RelWalk", "argument"]["mrr"]["ours"] == record.figure("argument")
    assert lines["RelWalk", "all"]["mrr"]["published"] is None  # the paper does not have that graph
    page = Page((place / "out" / "table2.html").read_text())
    assert "RelWalk" in "".join(page.text)


def test_figures_and_table_3_go_on_from_the_same_run(place: Path) -> None:
    run = place / "out" / "runs" / NAME / "run.json"
    before, words = run.read_bytes(), ["--dataset", "world", *QUICK, "--out", "out"]
    for target in ("table3", "figure1"):
        command("reproduce", target, *words, cwd=place)
    assert "is there already" in command("reproduce", "table3", *words, cwd=place).stderr
    assert run.read_bytes() == before
    record = read_result(place / "out" / "records" / f"{NAME}.json")
    table3, figure1 = record.theory["table3"], record.theory["figure1"]
    assert set(table3["relations"]) == set(record.by_relation["all"]) | set(table3["relations"])
    hits = record.by_relation["argument"]["near"]["hits@10"]
    assert table3["relations"]["near"]["hits@10"] == pytest.approx(hits, abs=1e-3)
    assert figure1["exact"] and all(row["largest_departure"] < 1e-4 for row in figure1["relations"].values())
    drawing = (place / "out" / "figures" / f"{NAME}-figure1.svg").read_text()
    assert drawing.count("<image") == 2 * len(figure1["relations"])
    assert "ν_R" in (place / "out" / "table3.md").read_text()


def test_a_run_is_taken_in_place_of_a_training(place: Path) -> None:
    words = ["reproduce", "figure2", "--run", f"out/runs/{NAME}", "--out", "taken", "--json"]
    found = json.loads(command(*words, cwd=place).stdout)
    (row,) = found["rows"]
    assert row["status"] == "finished" and [p["rank"] for p in row["theory"]["points"]][:5] == [1, 2, 3, 4, 5]
    assert not (place / "taken" / "runs").exists() and len(list((place / "taken" / "figures").glob("*.svg"))) == 1
    (record,) = read_results(place / "taken" / "records")
    assert record.commit is None and record.cost.peak_bytes is None  # of a training that it did not see


def test_interrupted_it_goes_on(tmp_path: Path) -> None:
    graph = make_graph(TRAIN, VALID, TEST)
    first, second = (f"hand-{name}-dim-4-epochs-2-0" for name in ("relwalk-default", "transe-default"))

    def arrived() -> bool:
        return (tmp_path / "out" / "records" / f"{first}.json").exists()

    settings = {"models": ["transe", "relwalk"], "dim": 4, "epochs": 2, "out": tmp_path / "out", "progress": False}
    with pytest.raises(Interrupted):
        reproduce("table2", graph, **settings, stop=arrived)
    made = (tmp_path / "out" / "records" / f"{first}.json").read_bytes()
    found = reproduce("table2", graph, **settings)
    assert [record.name for record in found.records] == [first, second]
    assert (tmp_path / "out" / "records" / f"{first}.json").read_bytes() == made
    other = make_graph(TRAIN[:-1], VALID, TEST)
    changed = reproduce("table2", other, **{**settings, "models": ["relwalk"]})
    assert "another graph of that name" in changed.records[0].reason
    forced = reproduce("table2", other, **{**settings, "models": ["relwalk"]}, force=True)
    assert forced.records[0].status == "finished"


def test_what_cannot_be_made_is_refused_before_anything_is(tmp_path: Path, five: Graph) -> None:
    out = tmp_path / "out"
    for wrong in ({"recipe": "x"}, {"models": ["x"]}, {"config": {"x": 1}}):
        with pytest.raises(UnknownChoice):
            reproduce("table2", five, **wrong, out=out)
    for wrong in ({"seeds": []}, {"seeds": [1, 1]}, {"epochs": 0}, {"budget": "x"}, {"config": {"recipe": "paper"}}):
        with pytest.raises(RelWalkError):
            reproduce("table2", five, **wrong, out=out)
    with pytest.raises(UnknownChoice, match="Did you mean 'figure2'"):
        reproduce("figure", five, out=out)
    assert not out.exists()
    with pytest.raises(RunError):
        reproduce("table2", runs=[tmp_path / "none"], out=out)


def test_rows_are_the_systems_of_the_paper(five: Graph) -> None:
    rows = plan("table2", {"hand": five}, recipe="paper", seeds=[0, 1])
    assert [row.model for row in rows[::2]] == ["relwalk", "transe", "transd", "distmult", "complex", "conve", "cp"]
    assert {row.recipe for row in rows if row.model == "relwalk"} == {"paper"}
    assert {row.recipe for row in rows if row.model != "relwalk"} == {"default"}
    assert next(row for row in rows if row.model == "cp").asked == {"reciprocal": True}
    assert [row.model for row in plan("figure2", {"hand": five})] == ["relwalk"]
    assert systems(five)[-1] == "relwalk" and len({row.name for row in rows}) == len(rows)
    config = {"l2": 0.1, "transe": {"dim": 7}}
    asked = {row.model: row.asked for row in plan("table2", {"hand": five}, models=["transe", "rescal"], config=config)}
    assert asked == {"transe": {"l2": 0.1, "dim": 7}, "rescal": {"l2": 0.1}}


def test_the_papers_values_are_the_papers() -> None:
    assert (PAPER["wn18rr"].mrr, PAPER["fb15k-237"].mr, PAPER_ACCURACY) == (0.451, 105, {"fb13": 0.886})
    assert len(PAPER_TABLE) == 7 + 7 + 6 and len(PAPER_CONDITIONS["wn18rr"]) == 11
    assert all(p.source for p in (*PAPER_TABLE, *ANCHORS))
    for row in PAPER_CONDITIONS["wn18rr"].values():
        assert row[4] == pytest.approx((row[2] ** 2 + row[3] ** 2) ** 0.5, abs=0.35)  # as printed, rounded


def record(model: str, mrr: float, seed: int = 0, **rest: object) -> ResultRecord:
    figures = {"both": {"realistic": {"mrr": mrr, "mr": 100.0, "hits@1": 0.2, "hits@3": 0.3, "hits@10": 0.5}}}
    metrics = Metrics(all=figures, argument=figures)
    return ResultRecord(
        dataset="wn18rr", model=model, recipe="best", seed=seed, command="relwalk ...", metrics=metrics, **rest
    )


def test_published_ours_and_the_difference_stand_side_by_side() -> None:
    records = [record("relwalk", 0.460), record("relwalk", 0.480, seed=1), record("rescal", 0.4)]
    lines = table2_lines(records, ["wn18rr"])
    ours = {(line.system, line.candidates): line for line in lines if line.records}
    paper = ours["RelWalk", "argument"]
    assert paper.ours("mrr") == pytest.approx(0.470) and paper.difference("mrr") == pytest.approx(0.019)
    assert paper.cells()[2] == "0.470 ± 0.014 (0.451, +0.019)" and paper.cells()[3].startswith("100 ± 0 (3232, -3132)")
    assert ours["RESCAL", "all"].cells()[-1] == "LibKGE's README" and ours["RESCAL", "all"].difference("mr") is None
    absent = [line for line in lines if not line.records]
    assert {line.system for line in absent} == {"TransE", "TransD", "DistMult", "ComplEx", "ConvE", "CP-N3"}
    assert all(
        line.recipe == "not trained" and line.cells()[2].startswith("- (") for line in absent if line.theirs("mrr")
    )
