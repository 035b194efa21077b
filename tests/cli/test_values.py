"""Wrong values of every option of every verb, taken from its own declaration: refused in words, before any work."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
import typer

from relwalk.cli import training
from relwalk.cli.app import app
from tests.entry import relwalk, relwalk_each

VERBS = {**typer.main.get_command(app).commands, "train": training.command("")}  # type: ignore[attr-defined]
WRONG = {  # no option takes one of these
    int: ("x", "", "2.5", "-7", str(10**30), "1" * 5000),
    float: ("x", "nan", "inf", "-7"),
}
TEXTS = ("", "x" * 10_000, "\x1b[31m\udcff", "/dev/null/x")
# Options that ask for something else to be given first.
WITH = {
    "p": ("--method", "node2vec"),
    "q": ("--method", "node2vec"),
    "lambda1": ("--orthogonality", "soft"),
    "lambda2": ("--orthogonality", "soft"),
    "plateau_factor": ("--schedule", "plateau"),
    "plateau_patience": ("--schedule", "plateau"),
    **dict.fromkeys(("negatives", "eta", "margin", "sampler"), ("--objective", "margin")),
    **dict.fromkeys(
        ("generator_model", "generator_dim", "generator_candidates", "generator_lr"),
        ("--objective", "margin", "--sampler", "kbgan"),
    ),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a graph of a few lines and a run of it."""
    folder = tmp_path_factory.mktemp("values")
    (folder / "g.tsv").write_text("".join(f"e{i % 5}\tr{i % 2}\te{i * 3 % 7}\n" for i in range(30)))
    relwalk("train", "g.tsv", "--dim", 2, "--epochs", 1, "--out", "run", cwd=folder)
    return folder


def arguments(verb: str) -> list[str]:
    """What a verb needs at least."""
    graph = {
        "train": ["g.tsv"],
        "info": ["g.tsv"],
        "convert": ["g.tsv", "out"],
        "walk2vec": ["g.tsv", "out"],
        "datasets": [],
    }
    compare = ["g.tsv", "--models", "transe", "--budget", "0.01s"]
    reproduce = ["table2", "--dataset", "g.tsv", "--models", "transe", "--budget", "0.01s"]
    rest = {
        "serve": ["nowhere"],
        "generate": ["--out", "drawn"],
        "export": ["run", "out"],
        "models": [],
        "compare": compare,
        "reproduce": reproduce,
    }
    return [verb, *(graph | rest).get(verb, ["run"])]


def options(*kinds: type) -> Iterator[tuple[str, str, str, type]]:
    """Verb, name, flag and type of every option of these types."""
    for verb, command in VERBS.items():
        flags = {p.name: max(p.opts, key=len) for p in command.params}
        for name, parameter in inspect.signature(command.callback, eval_str=True).parameters.items():
            kind = next((kind for kind in kinds if kind in types_in(parameter.annotation)), None)
            if kind is not None and flags.get(name, "").startswith("-"):
                yield verb, name, flags[name], kind


def types_in(annotation: object) -> set[object]:
    """int of Annotated[int | None, ...], str of list[str]."""
    parts = get_args(annotation)
    return {annotation} if not parts else {found for part in parts for found in types_in(part)}


def test_every_numeric_option_refuses_what_is_no_number_of_its_kind(place: Path) -> None:
    commands, names = [], []
    for verb, name, flag, kind in options(int, float):
        for value in WRONG[kind]:
            commands.append([*arguments(verb), *WITH.get(name, ()), f"{flag}={value}"])
            names.append((name, flag))
    assert len(commands) > 250
    for command, (name, flag), (status, said) in zip(commands, names, relwalk_each(commands, place), strict=True):
        told = (command[0], command[-1][:60], status, said[-2000:])
        assert status in (1, 2), told
        assert "Traceback" not in said and "pydantic" not in said, told
        assert any(word in said for word in (flag, name, "shares of")), told
    assert sorted(path.name for path in place.iterdir()) == ["g.tsv", "run"]


def test_no_text_is_a_traceback(place: Path) -> None:
    commands = []
    for verb, name, flag, _ in options(str, Path):
        if name in ("out", "data_dir"):  # where to write is tried in test_failures.py; any folder may hold graphs
            continue
        least = [*arguments(verb), *WITH.get(name, ())]
        rest = ["--relation", "r0"] if verb == "predict" and name in ("head", "tail") else []
        commands += [[*least, *rest, f"{flag}={text}"] for text in TEXTS]
    assert len(commands) > 100
    for command, (status, said) in zip(commands, relwalk_each(commands, place), strict=True):
        told = (command[0], command[-1][:60], status, said[-2000:])
        assert status in (0, 1, 2), told
        assert "Traceback" not in said and "pydantic" not in said and "\x1b" not in said, told
        if status == 1:
            assert said.splitlines()[-1].startswith("relwalk: "), told


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["train", "g.tsv", "--threads", "100000"], "--threads"),
        (["train", "g.tsv", "--device", "cuda:99"], "device 'cuda:99' cannot be used here"),
        (["train", "g.tsv", "--device", "foo"], "device is 'foo'; expected cpu, cuda"),
        (["train", "g.tsv", "--device", "meta"], "device 'meta' cannot be used here"),
        (["evaluate", "run", "--device", "foo"], "device is 'foo'"),
        (["resume", "run", "--device", "foo"], "device is 'foo'"),
        (["train", "g.tsv", "--dim", "65536", "--blocks", "1"], "needs at least"),
        (["generate", "--out", "x", "--dim", "65536", "--relations", "40"], "needs at least"),
        (["walk", "run", "--paths", "2147483647"], "needs at least"),
        (["train", "g.tsv", "--lr", "inf"], "--lr"),
        (
            ["train", "g.tsv", "--objective", "margin", "--margin", "1e9"],
            "(--margin) is 1000000000.0; it",
        ),
    ],
)
def test_what_the_machine_cannot_do_is_said_before_it_tries(place: Path, words: list[str], told: str) -> None:
    done = relwalk(*words, *(["--out", "new"] if words[0] == "train" else []), cwd=place, status=1)
    assert told in done.stderr and done.stderr.splitlines()[-1].startswith("relwalk: ")
    assert not (place / "new").exists() and not (place / "x").exists()


@pytest.mark.parametrize("verb", ["classify", "report", "analyse", "walk"])
def test_a_negative_seed_is_a_wrong_command_line(place: Path, verb: str) -> None:
    assert "--seed" in relwalk(verb, "run", "--seed", -1, cwd=place, status=2).stderr
