"""`relwalk predict --queries` through the real entry point, and every way its file can be wrong."""

from __future__ import annotations

import csv
import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from relwalk.cli.queries import COLUMNS, read_queries
from relwalk.errors import BadLine, GraphError
from relwalk.graph.graph import Graph
from relwalk.prediction import predict
from relwalk.runs.run import load_run
from tests.cli.test_cli import FAST
from tests.entry import answer, relwalk

TEXT = "# the neighbours of France\nFrance\tborders\t?\n\n\tborders\tGermany\nParis\t?\tFrance\r\n"
ASKED = [("France", "borders", None), (None, "borders", "Germany"), ("Paris", None, "France")]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cli") / "world"
    relwalk("train", "world", "--out", path, *FAST)
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "q.tsv"
    path.write_bytes(TEXT.encode())
    return path


def test_answers_as_text(run: Path, file: Path) -> None:
    loaded = load_run(run)
    alone = [predict(loaded, head=h, relation=r, tail=t, k=3) for h, r, t in ASKED]
    notes = dict.fromkeys(a.note for a in alone)  # each once, at the end
    expected = "\n".join([*(a.table() for a in alone), *notes]) + "\n"
    assert relwalk("predict", run, "--queries", file, "-k", 3).stdout == expected


def test_json_is_one_object(run: Path, file: Path) -> None:
    loaded = load_run(run)
    alone = [predict(loaded, head=h, relation=r, tail=t, k=3) for h, r, t in ASKED]
    found = answer("predict", run, "--queries", file, "-k", 3)
    assert found["run"] == str(run)
    assert [(q["query"], q["head"], q["relation"], q["tail"]) for q in found["answers"]] == [
        (n, *query) for n, query in enumerate(ASKED, start=1)
    ]
    assert [[a["name"] for a in q["answers"]] for q in found["answers"]] == [[a.name for a in x] for x in alone]


@pytest.mark.parametrize(("ending", "delimiter"), [("tsv", "\t"), ("csv", ",")])
def test_answers_to_a_table(run: Path, file: Path, ending: str, delimiter: str) -> None:
    out = file.with_name(f"answers.{ending}")
    arguments = ["predict", run, "--queries", file, "-k", 2, "--only-new", "--out", out]
    assert relwalk(*arguments).stdout.strip() == str(out)
    with out.open(newline="") as written:
        rows = list(csv.DictReader(written, delimiter=delimiter))
    assert [(r["query"], r["rank"]) for r in rows] == [(str(q), str(k)) for q in (1, 2, 3) for k in (1, 2)]
    assert [rows[0][name] for name in ("head", "relation", "tail", "known")] == ["France", "borders", "?", "new"]
    expected = predict(load_run(run), head="France", relation="borders", k=2, only_new=True)
    assert [row["answer"] for row in rows[:2]] == [a.name for a in expected]
    assert [float(row["probability"]) for row in rows[:2]] == pytest.approx([a.probability for a in expected], rel=1e-3)
    assert tuple(rows[0]) == COLUMNS
    assert "--force" in relwalk(*arguments, status=1).stderr
    assert json.loads(relwalk(*arguments, "--force", "--json").stdout) == {"out": str(out), "queries": 3}
    assert sorted(p.name for p in file.parent.iterdir()) == sorted(["q.tsv", out.name])


def test_json_lines_from_standard_input(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "answers.jsonl"
    command = [sys.executable, "-m", "relwalk", "predict", str(run), "--queries", "-", "--out", str(out)]
    subprocess.run(command, input=TEXT.encode(), check=True, capture_output=True)
    found = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(q["query"], q["head"], q["relation"], q["tail"]) for q in found] == [
        (n, *query) for n, query in enumerate(ASKED, start=1)
    ]
    bad = subprocess.run([*command, "--force"], input=b"France\n", capture_output=True, text=False)
    assert bad.returncode == 1
    assert b"standard input, line 1: found 1 column" in bad.stderr
    assert len(out.read_text().splitlines()) == 3  # an error leaves what was there


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--queries", "FILE", "--head", "France"], "leave out --head"),
        (["--out", "a.tsv", "--head", "France", "--relation", "borders"], "--queries"),
        (["--queries", "FILE", "--out", "a.xlsx"], ".jsonl"),
        (["--queries", "no-such-file.tsv"], "no-such-file.tsv cannot be read"),
        (["--queries", "."], "found a folder"),
    ],
)
def test_wrong_requests_are_one_line(run: Path, file: Path, arguments: list[str], words: str) -> None:
    words_given = [str(file) if word == "FILE" else word for word in arguments]
    done = relwalk("predict", run, *words_given, status=1, cwd=file.parent)
    assert words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.parametrize(
    ("name", "content", "line", "words"),
    [
        ("q.tsv", b"France\tborders\t?\nFrance\tborders\n", 2, "found 2 columns: .*Separate the three by tabs"),
        ("q.tsv", b"France,borders,?\n", 1, "found 1 column: .*called .csv"),
        ("q.csv", b"France\tborders\t?\n", 1, "found 1 column: .*by commas"),
        ("q.tsv", b"a\tb\tc\td\n", 1, "found 4 columns"),
        ("q.tsv", b"head\trelation\ttail\n", 1, "found nothing asked: .*Write [?] for what is asked"),
        ("q.tsv", b"\n#x\nFrance\t?\t?\n", 3, "found 2 asked"),
        ("q.tsv", b"\t\t\n", None, "no questions"),
        ("q.tsv", b"Frnace\tborders\t?\n", 1, "found the entity 'Frnace'; .*Did you mean 'France'"),
        ("q.tsv", b"France\tborder\t?\n", 1, "found the relation 'border'; .*Did you mean 'borders'"),
        ("q.tsv", b"?\tborders\tzzzzzzzzzzzz\n", 1, "found the entity 'zzzzzzzzzzzz'; .*entities.tsv"),
        ("q.tsv", b"Fran\xe7ois\tborders\t?\n", 1, "not UTF-8: .*Save the file as UTF-8"),
        ("q.csv", b'"France,borders,?\n', 1, "Close the quotes"),
        ("q.tsv", b"", None, "found no questions; .*Write at least one"),
        ("q.tsv", b"# nothing\n\n", None, "found no questions"),
    ],
)
def test_a_bad_file_is_told_with_line_and_cure(
    world: Graph, tmp_path: Path, name: str, content: bytes, line: int | None, words: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(BadLine if line else GraphError, match=words) as told:
        read_queries(str(path), world)
    assert str(told.value).startswith(f"{path}, line {line}: found" if line else f"{path}: ")


def test_quotes_compression_and_byte_order_marks(world: Graph, tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_bytes(b'\xef\xbb\xbf"France","borders",?\n"",borders,"Germany"\n')
    assert read_queries(str(tmp_path / "q.csv"), world) == ASKED[:2]
    (tmp_path / "q.tsv.gz").write_bytes(gzip.compress(TEXT.encode()))
    assert read_queries(str(tmp_path / "q.tsv.gz"), world) == ASKED
