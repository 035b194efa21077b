"""The options of every verb that reads a graph."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from threading import Thread

import pytest

from tests.entry import answer, relwalk, script

ROWS = [f"e{n % 9}\tr{n % 2}\te{n * 7 % 13}\t{n / 8}\n" for n in range(60)]
OPTIONS = ["--columns", "--header", "--on-bad-line", "--max-unpacked", "--valid", "--test", "--split-seed", "--format"]
FAST = ["--dim", "4", "--epochs", "1"]


@pytest.fixture
def weighted(tmp_path: Path) -> Path:
    path = tmp_path / "weighted.tsv"
    path.write_text("".join(ROWS))
    return path


@pytest.mark.parametrize("verb", ["train", "info", "convert"])
def test_every_verb_that_reads_a_graph_has_the_same_options(verb: str) -> None:
    text = script(verb, "--help")
    assert all(option in text for option in OPTIONS)


def test_columns_reach_every_verb(weighted: Path, tmp_path: Path) -> None:
    columns = ["--columns", "object,predicate,subject,_"]
    found = answer("info", weighted, *columns)
    assert found["entities"] == 13 and not any("left out" in note for note in found["notes"])
    assert any("looks like weights" in note for note in answer("info", weighted)["notes"])
    done = relwalk("train", weighted, *columns, *FAST, "--out", tmp_path / "run", "--seed", "1")
    assert "13 entities, 2 relations" in done.stderr
    relwalk("convert", weighted, tmp_path / "out", *columns, "--valid", "0", "--test", "0")
    first = ROWS[0].split("\t")
    assert f"{first[2]}\t{first[1]}\t{first[0]}\n" in (tmp_path / "out" / "train.txt").read_text()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["world", "--valid", "2"], "sum to less than 1"),
        (["world", "--valid", "0.2"], "--valid would do nothing"),
        (["world", "--test", "0.1", "--split-seed", "3"], "--test and --split-seed would do nothing"),
        (["weighted.tsv", "--valid", "nan"], "sum to less than 1"),
        (["weighted.tsv", "--split-seed", "-1"], "--split-seed"),
        (["weighted.tsv", "--columns", "a,b"], "head, relation, tail"),
        (["weighted.tsv", "--columns", "head,relation,tail"], "head,relation,tail,_"),
        (["weighted.tsv", "--max-unpacked", "much"], "16GB"),
    ],
)
@pytest.mark.parametrize("verb", ["info", "train"])
def test_wrong_values_are_one_line(verb: str, options: list[str], words: str, weighted: Path) -> None:
    done = relwalk(verb, *options, status=1, cwd=weighted.parent)
    assert words in done.stderr and len(done.stderr.splitlines()) == 1
    assert sorted(path.name for path in weighted.parent.iterdir()) == ["weighted.tsv"]


def test_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    Thread(target=pipe.write_text, args=("".join(ROWS),), daemon=True).start()
    assert answer("info", pipe, "--format", "tsv")["entities"] == 13


def test_the_limit(weighted: Path) -> None:
    packed = weighted.with_name("weighted.tsv.gz")
    packed.write_bytes(gzip.compress(weighted.read_bytes()))
    assert "--max-unpacked" in relwalk("info", packed, "--max-unpacked", "100", status=1).stderr
    assert answer("info", packed, "--max-unpacked", "1MB")["entities"] == 13


def test_warnings_of_the_split_are_said_with_their_cure(tmp_path: Path) -> None:
    (tmp_path / "g.tsv").write_text("".join(f"a{n}\tr\tb{n}\n" for n in range(20)))
    done = relwalk("convert", tmp_path / "g.tsv", tmp_path / "out")
    assert done.stderr.count("warning: ") == 2 and "bring a folder with" in done.stderr


def test_a_relation_by_the_last_part_of_its_name(tmp_path: Path) -> None:
    lines = [f"<http://x.org/e{n % 9}> <http://x.org/works_for> <http://x.org/e{n * 7 % 13}> ." for n in range(60)]
    (tmp_path / "g.nt").write_text("\n".join(lines))
    relwalk("train", tmp_path / "g.nt", *FAST, "--out", tmp_path / "run")
    found = answer("predict", tmp_path / "run", "--head", "e1", "--relation", "works_for")
    assert found["relation"] == "http://x.org/works_for"
    near = relwalk("predict", tmp_path / "run", "--head", "e1", "--relation", "work_for", status=1)
    assert "Did you mean 'http://x.org/works_for'?" in near.stderr
    assert "works_for" in relwalk("walk", tmp_path / "run", "--start", "e1", "--steps", 1, "--paths", 1).stdout
