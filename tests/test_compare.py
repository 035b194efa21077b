"""`relwalk compare`: the same time for every model, each in a process of its own, whatever becomes of the others."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import relwalk
from relwalk import comparing
from relwalk.errors import GraphError, Interrupted, RefusedOverwrite, RelWalkError, RunError
from relwalk.evaluation.comparison import Compared, Comparison, read_comparison
from relwalk.graph.graph import Graph
from relwalk.report.comparison import write_comparison
from tests.conftest import TEST, TRAIN, VALID, make_graph
from tests.entry import relwalk as command
from tests.entry import started
from tests.report.test_page import NASTY, Page

FIVE = make_graph(TRAIN, VALID, TEST)
QUICK = ["--dim", 4, "--budget", "0.3s"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models that train, and one that cannot."""
    place = tmp_path_factory.mktemp("compare")
    (place / "settings.toml").write_text(
        'batch_size = 2000\n[complex]\ndim = 5\n[soft]\nmodel = "relwalk"\northogonality = "soft"\n'
    )
    words = ["compare", "world", "--models", "transe,complex,soft", *QUICK, "--config", "settings.toml", "--out", "out"]
    done = command(*words, "--seed", 3, cwd=place)
    (place / "said").write_text(done.stdout)
    return place


def test_one_table_and_a_row_with_the_reason_for_what_failed(folder: Path) -> None:
    said = (folder / "said").read_text()
    lines = [line.split() for line in said.splitlines()]
    assert ["model", "candidates", "MRR", "MR", "H@1", "H@3", "H@10", "epochs", "time", "memory"] in [
        line[:10] for line in lines
    ]
    assert [line[:2] for line in lines if line[:1] in (["transe"], ["soft"])] == [["transe", "all"], ["soft", "all"]]
    assert sum(line[0] == "argument" for line in lines) == 2
    assert "complex  failed: ComplEx needs an even dim (real and imaginary parts); found 5" in said
    assert not (folder / "out" / "complex").exists() and not (folder / "out" / ".work").exists()


def test_the_file_has_everything(folder: Path) -> None:
    found = json.loads((folder / "out" / "compare.json").read_text())
    assert (found["graph"]["name"], found["budget"], found["seed"]) == ("world", 0.3, 3)
    assert found["machine"]["cores"] == os.cpu_count() and "torch" in found["versions"]
    rows = {row["name"]: row for row in found["models"]}
    assert list(rows) == ["transe", "complex", "soft"]
    for name in ("transe", "soft"):
        row, run = rows[name], relwalk.load_run(folder / "out" / name)
        assert row["status"] == "finished" and row["dim"] == 4
        assert row["settings"]["batch_size"] == 2000 and row["settings"]["seed"] == 3
        for rule in ("all", "argument"):
            expected = relwalk.rank(run, candidates=rule).metrics().as_dict()
            assert row["test"][rule] == pytest.approx(expected, rel=1e-3)
        history = [json.loads(line) for line in (folder / "out" / name / "history.jsonl").read_text().splitlines()]
        assert row["seconds"] == pytest.approx(sum(epoch["seconds"] for epoch in history))
        assert row["seconds"] >= 0.3 > row["seconds"] - max(epoch["seconds"] for epoch in history)
        assert row["numbers"] == sum(w.numel() for w in run.model.parameters()) and row["bytes"] == 4 * row["numbers"]
        assert row["peak_bytes"] is None or row["peak_bytes"] > 50e6
        assert row["curve"][-1]["seconds"] == pytest.approx(row["seconds"]) and row["curve"][-1]["valid_mrr"] >= 0
        assert max(moment["valid_mrr"] for moment in row["curve"]) == row["valid_mrr"]
    assert rows["soft"]["settings"]["orthogonality"] == "soft"
    assert rows["complex"]["status"] == "failed" and rows["complex"]["test"] == {}


def test_what_is_finished_is_kept_and_a_model_may_be_added(folder: Path) -> None:
    before = {name: (folder / "out" / name / "run.json").read_bytes() for name in ("transe", "soft")}
    words = ["compare", "world", *QUICK, "--config", "settings.toml", "--out", "out", "--seed", 3]
    done = command(*words, "--models", "transe,complex,soft,distmult", cwd=folder)
    assert "transe is there already" in done.stderr and "soft is there already" in done.stderr
    assert {name: (folder / "out" / name / "run.json").read_bytes() for name in before} == before
    assert (folder / "out" / "distmult" / "run.json").is_file()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (["--seed", 4], "its seed is 3, now 4"),
        (["--budget", "0.4s"], "its budget is 0.3, now 0.4"),
        (["--dim", 6], "its model transe is"),
        (["--models", "transe"], "its model complex is"),
    ],
)
def test_another_comparison_is_not_mixed_with_it(folder: Path, change: list, told: str) -> None:
    before = (folder / "out" / "compare.json").read_bytes()
    models = ["--models", "transe,complex,soft,distmult"]
    words = ["compare", "world", *models, *QUICK, "--config", "settings.toml", "--out", "out", "--seed", 3, *change]
    wrong = command(*words, cwd=folder, status=1)
    assert told in wrong.stderr and "--force" in wrong.stderr and "--out" in wrong.stderr
    assert (folder / "out" / "compare.json").read_bytes() == before


def test_force_begins_again(tmp_path: Path) -> None:
    first = relwalk.compare(FIVE, models=["transe", "rescal"], budget=0.01, dim=4, out=tmp_path / "out")
    made = (tmp_path / "out" / "transe" / "run.json").read_bytes()
    again = relwalk.compare(FIVE, models=["transe"], budget=0.01, dim=2, out=tmp_path / "out", force=True)
    assert [row.dim for row in (*first.models, *again.models)] == [4, 4, 2]
    assert (tmp_path / "out" / "transe" / "run.json").read_bytes() != made
    assert not (tmp_path / "out" / "rescal").exists()
    (tmp_path / "out" / "compare.json").write_text("{")
    with pytest.raises(RunError, match="holds no comparison that can be read"):
        relwalk.compare(FIVE, models=["transe"], budget=0.01, dim=2, out=tmp_path / "out")
    relwalk.compare(FIVE, models=["transe"], budget=0.01, dim=2, out=tmp_path / "out", force=True)


FACTS = "".join(f"e{i % 30}\tr{i % 4}\te{i * 11 % 37}\n" for i in range(300))
COMMAND = ["compare", "facts.tsv", "--models", "transe,distmult", "--dim", "4", "--budget", "1s"]
SLOW = "batch_size = 50\ncheckpoint_seconds = 0\n"


def wait_for_second(place: Path, ended: Callable[[], bool]) -> Path:
    """The history of the second model, once it has begun."""
    second = place / "out" / "distmult" / "history.jsonl"
    deadline = time.monotonic() + 600  # starts of three processes, on a busy machine
    while time.monotonic() < deadline and not ended() and not (second.exists() and second.read_text()):
        time.sleep(0.01)
    return second


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_interrupted_it_goes_on_with_the_time_that_is_left(tmp_path: Path, how: signal.Signals) -> None:
    """Killed, it is a command as a shell starts it; asked to end, a fork."""
    (tmp_path / "facts.tsv").write_text(FACTS)
    (tmp_path / "settings.toml").write_text(SLOW)
    words = [*COMMAND, "--config", "settings.toml", "--out", "out"]
    if how == signal.SIGKILL:
        shell = subprocess.Popen(
            [sys.executable, "-m", "relwalk", *words],
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        second = wait_for_second(tmp_path, lambda: shell.poll() is not None)
        shell.kill()
        assert shell.wait(600) == -how
    else:
        process = started(*words, said=tmp_path / "said", cwd=tmp_path)
        second = wait_for_second(tmp_path, lambda: process.exitcode is not None)
        os.kill(process.pid, how)
        process.join(600)
        assert process.exitcode == 128 + how
        told = (tmp_path / "said").read_text()
        assert "go on with: relwalk compare facts.tsv --models transe,distmult" in told
    spent = [json.loads(line)["seconds"] for line in second.read_text().splitlines()]
    found = read_comparison(tmp_path / "out" / "compare.json")
    assert [row.status for row in found.models] == ["finished", "waiting"]
    finished = [tmp_path / "out" / "transe" / name for name in ("history.jsonl", "run.json")]
    first = [file.read_bytes() for file in finished]

    done = command(*words, cwd=tmp_path)
    assert "transe is there already" in done.stderr
    assert [file.read_bytes() for file in finished] == first
    row = read_comparison(tmp_path / "out" / "compare.json").models[1]
    after = [json.loads(line)["seconds"] for line in second.read_text().splitlines()]
    assert after[: len(spent)] == spent  # gone on with, not begun again
    assert row.status == "finished" and row.seconds == pytest.approx(sum(after))
    assert 1 <= row.seconds < 1 + max(after)
    assert not (tmp_path / "out" / ".work").exists()


def test_a_process_that_is_killed_is_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = comparing._run

    def killed(request: Path, stop: object) -> int:
        return -signal.SIGKILL if request.name == "transe.json" else run(request, stop)  # type: ignore[arg-type]

    monkeypatch.setattr(comparing, "_run", killed)
    found = relwalk.compare(FIVE, models=["transe", "rescal"], budget=0.01, dim=4, out=tmp_path / "out")
    assert [row.status for row in found.models] == ["failed", "finished"]
    assert "SIGKILL, as the system does when memory runs out" in found.models[0].reason
    monkeypatch.undo()
    again = relwalk.compare(FIVE, models=["transe", "rescal"], budget=0.01, dim=4, out=tmp_path / "out")
    assert [row.status for row in again.models] == ["finished", "finished"]


def test_asked_to_stop_it_stops(tmp_path: Path) -> None:
    with pytest.raises(Interrupted):
        relwalk.compare(FIVE, models=["transe"], budget="1h", dim=4, out=tmp_path / "out", stop=lambda: True)
    assert read_comparison(tmp_path / "out" / "compare.json").models[0].status == "waiting"


def test_in_python_without_a_folder() -> None:
    found = relwalk.compare(FIVE, models=["transe"], budget=0.01, dim=4, config={"transe": {"l2": 0.0}})
    assert isinstance(found, Comparison) and found.complete and found.path is None
    assert found.models[0].settings["l2"] == 0.0
    assert repr(found).startswith("<Comparison hand, 1 models") and "<table>" in found._repr_html_()
    assert found.as_dict()["models"][0]["test"]["all"].keys() >= {"mrr", "mr", "hits@1", "hits@3", "hits@10"}


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"models": ["complx"]}, "unknown model 'complx'. Did you mean 'complex'?"),
        ({"models": []}, "models is \\[\\]; expected names"),
        ({"models": "transe"}, "models is 'transe'; expected names"),
        ({"models": ["transe", "transe"]}, "each once"),
        ({"budget": "soon"}, "budget is 'soon'"),
        ({"config": {"transe": {"epoch": 3}}}, "Did you mean 'epochs'"),
        ({"config": {"seed": 3}}, "seed is the same for all models"),
        ({"config": {"transe": {"budget": 3}}}, "budget is the same for all models"),
        ({"config": {"tranze": {"dim": 3}}}, "unknown table of settings 'tranze'"),
        ({"config": {"model": "rescal"}}, "unknown setting of a comparison 'model'"),
        ({"models": ["../x"], "config": {"../x": {"model": "transe"}}}, "cannot name a folder"),
        ({"seed": -1}, "seed is -1"),
        ({"dim": 0}, "dim is 0"),
    ],
)
def test_a_wrong_question_leaves_no_folder(tmp_path: Path, wrong: dict, told: str) -> None:
    with pytest.raises(RelWalkError, match=told):
        relwalk.compare(FIVE, **{"models": ["transe"], "out": tmp_path / "out", **wrong})
    assert not (tmp_path / "out").exists()


def test_what_is_in_the_way_stays(tmp_path: Path) -> None:
    (tmp_path / "transe").mkdir()
    with pytest.raises(RefusedOverwrite, match="no part of a comparison"):
        relwalk.compare(FIVE, models=["transe"], budget=0.01, out=tmp_path)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(RefusedOverwrite, match="it is a file"):
        relwalk.compare(FIVE, models=["transe"], budget=0.01, out=tmp_path / "file")
    with pytest.raises(GraphError, match="no test triples"):
        relwalk.compare(make_graph(TRAIN), models=["transe"], budget=0.01)


def check_page(words: str) -> Page:
    """Well-formed, and nothing is asked of the outside."""
    page = Page(words)
    for tag, name, value in page.attributes:
        if name in ("src", "href"):
            assert value.startswith(("data:", "#")), f"<{tag} {name}={value[:60]}> asks the outside"
    assert "@import" not in words and "url(" not in words and "fetch(" not in words
    assert not re.search(r"\b(nan|inf|None)\b", page.words)
    return page


def test_the_page_shows_it_all_and_asks_for_nothing(folder: Path) -> None:
    words = (folder / "out" / "compare.html").read_text()
    page = check_page(words)
    for text in ("transe", "soft", "ComplEx needs an even dim", "valid MRR", "seconds of training", "peak MB"):
        assert text in page.words
    assert page.tags.count("polyline") >= 2 and "prefers-color-scheme: dark" in words


@pytest.mark.parametrize("name", NASTY)
def test_names_are_escaped(folder: Path, name: str) -> None:
    found = read_comparison(folder / "out" / "compare.json")
    rows = (replace(found.models[0], name=name), Compared(name + "2", {}, "failed", name))
    graph = replace(found.graph, name=name)
    plain = check_page(write_comparison(replace(found, models=found.models[:2])))
    nasty = check_page(write_comparison(replace(found, graph=graph, models=rows)))
    assert name in nasty.words and nasty.tags.count("script") == plain.tags.count("script")


def test_json_is_one_object(tmp_path: Path, world: Graph) -> None:
    done = command("compare", "world", "--models", "transe", *QUICK, "--out", tmp_path / "out", "--json")
    found = json.loads(done.stdout)
    assert found["graph"]["fingerprint"] == world.fingerprint
    assert found == json.loads((tmp_path / "out" / "compare.json").read_text())
