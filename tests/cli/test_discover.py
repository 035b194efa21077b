"""`relwalk discover` through the real entry point: every option, every kind of file, and every way to ask wrongly."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import polars as pl
import pytest

from relwalk import discover, doubtful, duplicates, load_run
from tests.entry import answer, relwalk

NASTY = ["tab\tname", "line\nname", 'quote"name', "comma,name", "\x1b[31mred", "cr\rname"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run of a small graph, some of whose names are hard to write, and one without valid triples."""
    import relwalk as library

    folder = tmp_path_factory.mktemp("discover")
    names = [*NASTY, *(f"e{i}" for i in range(14))]
    rows = [(names[i % 20], f"r{i % 3}", names[i * 7 % 19]) for i in range(240)]
    rows = list(dict.fromkeys((h, r, t) for h, r, t in rows if h != t))
    graph = library.read_graph(rows, valid=0.15, test=0.1)
    library.train(graph, dim=4, epochs=3, threads=1, out=folder / "run")
    library.train(library.read_graph(rows, valid=0.0, test=0.1), dim=4, epochs=1, threads=1, out=folder / "plain")
    return folder


def test_links_as_text_and_json(place: Path) -> None:
    found = discover(load_run(place / "run"), k=5)
    done = relwalk("discover", "run", "-k", 5, cwd=place)
    assert done.stdout.startswith("5 new links, the most confident of")
    assert "next: relwalk discover run -k 1000 --out found.tsv" in done.stderr and "relwalk report run" in done.stderr
    told = answer("discover", place / "run", "-k", 5)
    assert [link["head"] for link in told["links"]] == found.frame()["head"].to_list()
    assert told["calibrated"] is True and told["questions"] == found.questions


def test_options_about_links(place: Path) -> None:
    run = place / "run"
    some = answer("discover", run, "-k", 50, "--relation", "r0", "--relation", "r2", "--all-questions")
    assert {link["relation"] for link in some["links"]} <= {"r0", "r2"}
    assert some["questions"] == 2 * 2 * 20
    few = answer("discover", run, "-k", 50, "--missing", 1)
    assert few["missing"] == 1
    bar = few["links"][3]["confidence"] * (1 - 1e-5)  # with a bar fewer are scored together, which rounds otherwise
    above = answer("discover", run, "-k", 50, "--missing", 1, "--min-confidence", bar)
    assert len(above["links"]) >= 4 and all(link["confidence"] >= bar for link in above["links"])


@pytest.mark.parametrize("flag", [(), ("--duplicates",), ("--doubtful",)])
@pytest.mark.parametrize("ending", ["tsv", "csv", "jsonl", "parquet"])
def test_files_hold_what_the_frame_holds(place: Path, tmp_path: Path, flag: tuple[str, ...], ending: str) -> None:
    out = tmp_path / "new" / f"found.{ending}"
    done = relwalk("discover", place / "run", "-k", 30, *flag, "--out", out)
    find = {(): discover, ("--duplicates",): duplicates, ("--doubtful",): doubtful}[flag]
    frame = find(load_run(place / "run"), k=30).frame()
    assert str(out) in done.stdout
    assert read(out) == [[str(value) for value in row] for row in frame.select(frame.columns[:3]).rows()]
    assert [p.name for p in out.parent.iterdir()] == [out.name]
    assert "--force" in relwalk("discover", place / "run", *flag, "--out", out, status=1).stderr
    again = relwalk("discover", place / "run", "-k", 3, *flag, "--out", out, "--force", "--json")
    assert json.loads(again.stdout)["rows"] == 3 == len(read(out))


def read(path: Path) -> list[list[str]]:
    """The first three columns of a file."""
    if path.suffix == ".parquet":
        return [[str(v) for v in row[:3]] for row in pl.read_parquet(path).rows()]
    if path.suffix == ".jsonl":
        return [[str(v) for v in list(json.loads(line).values())[:3]] for line in path.read_text().splitlines()]
    with path.open(newline="") as file:
        rows = list(csv.reader(file, delimiter="\t" if path.suffix == ".tsv" else ","))
    return [row[:3] for row in rows[1:]]


def test_a_terminal_is_safe_from_names(place: Path) -> None:
    for flag in ((), ("--doubtful",), ("--duplicates",)):
        printed = relwalk("discover", place / "run", "-k", 60, *flag).stdout
        assert "\x1b" not in printed and "\r" not in printed
    assert "tab\\tname" in relwalk("discover", place / "run", "-k", 300).stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--relation", "R1"], "Did you mean 'r1'"),
        (["--out", "links.xlsx"], "ending of --out '.xlsx'"),
        (["--out", "run"], "ending of --out ''"),
        (["--out", "/dev/null/x/links.tsv"], "not a folder"),
        (["--duplicates", "--doubtful"], "one at a time"),
        (["--duplicates", "--relation", "r0"], "--relation is about new links"),
        (["--duplicates", "--min-confidence", "0.5"], "--min-confidence is about new links"),
        (["--doubtful", "--missing", "5"], "--missing is about new links"),
        (["--doubtful", "--all-questions"], "--all-questions is about new links"),
        (["-k", "99999999"], "k is 99999999"),
    ],
)
def test_wrong_questions(place: Path, words: list[str], told: str) -> None:
    done = relwalk("discover", "run", *words, cwd=place, status=1)
    assert told in done.stderr and done.stderr.splitlines()[-1].startswith("relwalk: ")


def test_wrong_command_lines(place: Path) -> None:
    for words in (["-k", "0"], ["--min-confidence", "1.5"], ["--missing", "0"]):
        assert words[0] in relwalk("discover", "run", *words, cwd=place, status=2).stderr


def test_a_run_that_is_not_calibrated(place: Path) -> None:
    assert "not calibrated" in relwalk("discover", "plain", "-k", 3, cwd=place).stdout
    done = relwalk("discover", "plain", "--min-confidence", 0.5, cwd=place, status=1)
    assert "train again on a graph with valid triples" in done.stderr


def test_doubtful_of_a_relation(place: Path) -> None:
    found = answer("discover", place / "run", "--doubtful", "--relation", "r1", "-k", 4)
    assert {row["relation"] for row in found["triples"]} == {"r1"} and len(found["triples"]) == 4


def test_training_says_what_to_do_next(place: Path, tmp_path: Path) -> None:
    (tmp_path / "g.tsv").write_text("".join(f"e{i % 9}\tr{i % 2}\te{i * 5 % 11}\n" for i in range(60)))
    done = relwalk("train", "g.tsv", "--dim", 2, "--epochs", 1, "--out", "new run", cwd=tmp_path)
    assert "next: relwalk discover 'new run'; relwalk predict 'new run'" in done.stderr
    assert (
        "next:" not in relwalk("train", "g.tsv", "--dim", 2, "--epochs", 1, "--out", "b", "--json", cwd=tmp_path).stderr
    )
