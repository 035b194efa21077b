"""Every verb through the real entry point."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from relwalk import __version__, load_run, rank
from tests.entry import answer, relwalk, script

FAST = ["--dim", "8", "--epochs", "2", "--batch-size", "2000"]
RULES = ("optimistic", "realistic", "pessimistic")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cli") / "world"
    relwalk("train", "world", "--out", path, *FAST)
    return path


def test_help_and_version_do_not_wait_for_torch() -> None:
    assert "predict" in script("--help")
    assert script("--version").strip() == f"relwalk {__version__}"
    code = "import sys, relwalk.cli.app; assert not {'torch', 'polars', 'pydantic', 'numpy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    "verb",
    [
        *("train", "resume", "evaluate", "classify", "predict", "export", "info", "datasets", "convert"),
        *("analyse", "report", "walk", "generate", "models", "compare", "walk2vec", "tune", "discover"),
    ],
)
def test_every_verb_explains_itself(verb: str) -> None:
    assert f"relwalk {verb}" in relwalk(verb, "--help").stdout


def test_train_says_what_it_did(tmp_path: Path) -> None:
    done = relwalk("train", "world", *FAST, "--validate-every", "1", cwd=tmp_path)
    assert "saved runs/world: 2 epochs, valid MRR" in done.stdout
    assert "epoch 2/2" in done.stderr
    assert "ETA" in done.stderr
    assert "still improving: train again with --epochs 4" in done.stderr
    again = relwalk("train", "world", *FAST, cwd=tmp_path, status=1)
    assert "--force" in again.stderr
    assert answer("train", "world", *FAST, "--out", tmp_path / "runs/world", "--force")["status"] == "finished"


def test_an_early_stop_is_told(tmp_path: Path) -> None:
    still = ["--lr", "1e-12", "--relation-lr", "1e-12", "--validate-every", 1, "--patience", 1]
    done = relwalk("train", "world", "--dim", 4, "--batch-size", 9000, "--epochs", 9, *still, cwd=tmp_path)
    assert "stopped early at epoch 2, best 1" in done.stderr


def test_what_is_short_shows_no_progress(run: Path) -> None:
    for verb in ("evaluate", "classify"):
        assert relwalk(verb, run).stderr == ""


def test_train_on_a_file_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "facts.csv").write_text(
        "subject,predicate,object\n" + "".join(f"e{i % 9},r{i % 3},e{i * 7 % 13}\n" for i in range(90))
    )
    done = relwalk("train", tmp_path / "facts.csv", *FAST, "--out", tmp_path / "run", "--test", "0.2")
    assert "facts: 13 entities, 3 relations" in done.stderr
    assert answer("evaluate", tmp_path / "run")["graph"] == "facts"


def test_the_papers_recipe_is_one_word(tmp_path: Path) -> None:
    relwalk("train", "world", "--recipe", "paper", "--dim", "8", "--epochs", "1", "--out", tmp_path / "run")
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["model"]["options"]["orthogonality"] == "soft"
    assert record["training"]["objective"]["negatives"] == record["training"]["batches"] == 100
    assert record["training"]["optimizer"] == "sgd"


def test_options_of_the_model_and_of_training_reach_the_run(tmp_path: Path) -> None:
    options = [
        "--orthogonality",
        "soft",
        "--lambda1",
        3,
        "--start-from",
        "rotations",
        "--sampler",
        "argument",
        "--avoid-known",
    ]
    more = ["--objective", "margin", "--margin", 4, "--lr", 0.001, "--relation-lr", 0.0001, "--l2", 0, "--seed", 7]
    relwalk("train", "world", *FAST, *options, *more, "--out", tmp_path / "run")
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["model"]["options"] == {"orthogonality": "soft", "lambda1": 3.0, "start_from": "rotations"}
    training = record["training"]
    expected = {"name": "margin", "sampler": "argument", "avoid_known": True, "negatives": 100, "margin": 4.0}
    assert training["objective"] == {**expected, "eta": None}
    assert (training["lr"], training["relation_lr"], training["l2"], training["seed"]) == (0.001, 0.0001, 0, 7)


def test_evaluate(run: Path) -> None:
    for candidates in ("all", "argument", "argument-train"):
        found = answer("evaluate", run, "--candidates", candidates)
        expected = rank(load_run(run), candidates=candidates).as_dict()["metrics"]
        for side in ("head", "tail", "both"):
            mrr = [found["metrics"][side][rule]["mrr"] for rule in RULES]
            assert mrr == pytest.approx([expected[side][rule]["mrr"] for rule in RULES], rel=1e-3)
            assert mrr == sorted(mrr, reverse=True)
        assert found["protocol"]["candidates"] == candidates
    raw = answer("evaluate", run, "--raw", "--split", "valid")
    assert raw["protocol"]["filtered"] is False
    text = relwalk("evaluate", run, "--by-relation").stdout
    assert "all entities" in text
    assert "borders" in text


def test_classify(run: Path) -> None:
    found = answer("classify", run)
    assert 0.4 < found["accuracy"] <= 1
    assert 0.4 < found["baseline_accuracy"] <= 1
    assert "overall" in relwalk("classify", run).stdout


def test_predict(run: Path) -> None:
    found = answer("predict", run, "--head", "France", "--relation", "borders", "-k", 5)
    assert len(found["answers"]) == 5
    assert {"name", "score", "probability", "known"} <= set(found["answers"][0])
    new = answer("predict", run, "--relation", "borders", "--tail", "Germany", "--only-new")
    assert not any(a["known"] for a in new["answers"])
    assert answer("predict", run, "--head", "Paris", "--tail", "France")["answers"][0]["name"]
    assert "France borders ?" in relwalk("predict", run, "--head", "France", "--relation", "borders").stdout


def test_export(run: Path, tmp_path: Path) -> None:
    assert relwalk("export", run, tmp_path / "v.npz").stdout.strip() == str(tmp_path / "v.npz")
    assert "--force" in relwalk("export", run, tmp_path / "v.npz", status=1).stderr
    relwalk("export", run, tmp_path / "v.npz", "--force")
    relwalk("export", run, tmp_path / "projector", "--to", "projector")


def test_graph_verbs(tmp_path: Path) -> None:
    assert answer("info", "world")["entities"] > 1000
    assert "Leakage" in relwalk("info", "world").stdout
    assert "world" in [d["name"] for d in answer("datasets")["datasets"]]
    assert "embedded" in relwalk("datasets").stdout
    relwalk("convert", "world", tmp_path / "openke", "--to", "openke")
    assert (tmp_path / "openke" / "train2id.txt").exists()
    assert answer("info", tmp_path / "openke")["entities"] == answer("info", "world")["entities"]
    assert "left out" in relwalk("convert", tmp_path / "openke", tmp_path / "plain").stderr
    assert "--force" in relwalk("convert", "world", tmp_path / "plain", status=1).stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["train", "no-such-graph"], "world"),
        (["train", "wrld"], "world"),
        (["train", "world", "--recipe", "papr"], "paper"),
        (["train", "world", "--objective", "margn"], "margin"),
        (["train", "world", "--lr", "-1"], "--lr"),
        (["train", "world", "--objective", "margin", "--margin", "1", "--eta", "2"], "give one"),
        (["train", "world", "--negatives", "5"], "Say --objective margin or hardest or mean or softmax"),
        (["train", "world", "--lambda1", "5"], "Say soft"),
        (["train", "world", "--objective", "mean", "--precision", "float32"], "--objective likelihood"),
        (["train", "world", "--model", "relwlak"], "relwalk"),
        (["train", "world", "--on-bad-line", "ignore"], "skip"),
        (["evaluate", "RUN", "--candidates", "types"], "argument-train"),
        (["evaluate", "RUN", "--split", "tests"], "test"),
        (["evaluate", "."], "is not a relwalk run"),
        (["predict", "RUN", "--head", "Frnace", "--relation", "borders"], "France"),
        (["predict", "RUN", "--head", "France"], "give two"),
        (["export", "RUN", "x", "--to", "hdf5"], "npz"),
        (["convert", "world", "x", "--to", "excel"], "plain"),
        (["info", "no/such/folder"], "no/such/folder"),
    ],
)
def test_a_users_error_is_one_line_and_status_1(run: Path, tmp_path: Path, arguments: list[str], words: str) -> None:
    done = relwalk(*[str(run) if word == "RUN" else word for word in arguments], status=1, cwd=tmp_path)
    assert words in done.stderr
    assert len([line for line in done.stderr.splitlines() if line.startswith("relwalk: ")]) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments", [["trian", "world"], ["train"], ["train", "world", "--dim", "0"], ["predict", "x", "-k", "many"]]
)
def test_a_wrong_command_line_is_status_2(arguments: list[str]) -> None:
    assert relwalk(*arguments, status=2).stderr


def test_bad_lines_are_told_or_skipped(tmp_path: Path) -> None:
    lines = [f"e{i}\tr\te{(i + 1) % 9}" for i in range(9)]
    (tmp_path / "g.tsv").write_text("\n".join([*lines[:4], "broken", *lines[4:]]) + "\n")
    done = relwalk("info", tmp_path / "g.tsv", status=1)
    assert "g.tsv, line 5: found" in done.stderr
    assert "expected" in done.stderr
    assert "skipped 1 bad line" in relwalk("info", tmp_path / "g.tsv", "--on-bad-line", "skip").stdout
