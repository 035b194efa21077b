"""Kind `values`: every option of every verb with values it was not made for, found by its own declaration."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, get_args, get_type_hints

import typer.main

from relwalk.cli.app import app
from tools.campaign import disks
from tools.campaign.command import command
from tools.campaign.place import Place

# For each verb a command line that works and is quick; its options are then given other values.
BASIS: dict[str, list[str]] = {
    "train": ["facts.tsv", "--dim", "4", "--epochs", "1", "--out", "new/run", "--threads", "1"],
    "tune": ["facts.tsv", "--dim", "4", "--epochs", "1", "--budget", "5s", "--trials", "1", "--out", "new/search"],
    "resume": ["stopped"],
    "evaluate": ["run"],
    "classify": ["run"],
    "predict": ["run", "--head", "e1", "--relation", "r1"],
    "discover": ["run", "-k", "5"],
    "export": ["run", "new/vectors.npz"],
    "analyse": ["run", "--directions", "10", "--sample", "10", "--part", "orthogonality"],
    "walk": ["run", "--start", "e1", "--steps", "2", "--paths", "2"],
    "generate": ["--entities", "30", "--relations", "2", "--triples", "100", "--dim", "4", "--out", "new/drawn"],
    "report": ["run", "--directions", "10", "--out", "new/page.html"],
    "reproduce": [
        *("table2", "--dataset", "facts.tsv", "--models", "transe"),
        *("--dim", "4", "--budget", "0.05s", "--out", "new/reproduced"),
    ],
    "record": ["run", "--out", "new/records"],
    "info": ["facts.tsv"],
    "datasets": [],
    "convert": ["facts.tsv", "new/graph"],
    "models": [],
    "compare": ["facts.tsv", "--models", "transe", "--dim", "4", "--budget", "0.05s", "--out", "new/compared"],
    "compress": ["run", "--out", "new/small", "--entities", "int8"],
    "walk2vec": ["facts.tsv", "new/walks.npz", "--dim", "4", "--walks", "1", "--length", "3"],
}
WHOLE = [
    "-1",
    "0",
    "1",
    "2",
    "3",
    "-9223372036854775809",
    "9223372036854775808",
    "1.5",
    "",
    "abc",
    "1e3",
    "nan",
    " 1",
    "٣",
    "0x10",
]
HUGE = ["100000", "1000000000", "2147483648", "4294967296", "9223372036854775807"]
REAL = [
    "nan",
    "inf",
    "-inf",
    "-1",
    "0",
    "-0.0",
    "1",
    "1.0000001",
    "1e308",
    "1e-320",
    "1e999",
    "",
    "abc",
    "0.5",
    "1,5",
    "2",
]
TEXT = [
    "",
    " ",
    "foo",
    "x" * 5000,
    "new/..",
    "/proc/self/nothing",
    "é",
    "\udcff",
    "\x1b[31mred",
    "a\tb",
    "%s",
    "{}",
    "*",
    "-",
    "--",
]
TEXT += [
    "facts.tsv",
    "run",
    "missing",
    "questions.tsv",
    "run/run.json",
    "cuda",
    "cuda:9",
    "meta",
    "e1",
    "r1",
    "none",
    "None",
]
PATIENCE = {"report": 6, "analyse": 2}  # times as long as another verb may take: they are long without any mistake
ENDLESS = {"serve"}  # goes on until it is told to end
# More of these is more work, not a mistake: nobody is stopped from asking for a year of training.
WORK = {"epochs", "steps", "paths", "directions", "sample", "triples", "negatives", "batches", "warmup", "average_from"}


def prepare(base: Path) -> None:
    disks.prepare(base)


def check(rng: Random, place: Place) -> None:
    shutil.copytree(place.base, place.folder, dirs_exist_ok=True)
    verb, words = _choose(rng)
    place.say(" ".join(repr(word)[:60] for word in (verb, *words)))
    patient = replace(place, seconds=place.seconds * PATIENCE.get(verb, 1))
    done = command([verb, *words], place.folder, patient).check([0, 1, 2])
    if done.code == 1:
        done.check_one_line()


def _choose(rng: Random) -> tuple[str, list[str]]:
    """A verb, and its command line with one or two options given values at random."""
    verbs = declared()
    verb = rng.choices(list(verbs), [1 / PATIENCE.get(verb, 1) ** 2 for verb in verbs])[0]
    words = list(BASIS.get(verb, []))
    for parameter in rng.sample(verbs[verb], min(len(verbs[verb]), rng.choice([1, 1, 2]))):
        words = _with(rng, words, parameter)
    return verb, words


@dataclass(frozen=True)
class Parameter:
    """An argument or option of a verb: its name in Python, its words on the command line, its type."""

    name: str
    words: tuple[str, ...]  # none: an argument, told by its place
    type: object


@cache
def declared() -> dict[str, list[Parameter]]:
    """The parameters of every verb, as the command line declares them."""
    group: Any = typer.main.get_command(app)
    hints = {str(verb.name): get_type_hints(verb.callback) for verb in app.registered_commands}
    return {
        verb: [
            Parameter(
                p.name, () if p.param_type_name == "argument" else (*p.opts, *p.secondary_opts), hints[verb].get(p.name)
            )
            for p in group.commands[verb].params
        ]
        for verb in hints
        if verb not in ENDLESS
    }


def _with(rng: Random, words: list[str], parameter: Parameter) -> list[str]:
    """A command line with another value of a parameter."""
    if not parameter.words:
        place = next((i for i, word in enumerate(words) if not word.startswith("-")), None)
        return [rng.choice(TEXT) if i == place else word for i, word in enumerate(words)]
    name = rng.choice(parameter.words)
    kinds = get_args(parameter.type) or (parameter.type,)
    if bool in kinds:
        return [*words, name]
    return [*_without(words, parameter.words), name, rng.choice(_values(parameter.name, kinds))]


def _without(words: list[str], names: tuple[str, ...]) -> list[str]:
    """The words without an option and its value, so that it is not said twice."""
    for name in names:
        if name in words:
            place = words.index(name)
            words = words[:place] + words[place + 2 :]
    return words


def _values(name: str, kinds: tuple[object, ...]) -> list[str]:
    if int in kinds:
        return WHOLE if name in WORK else WHOLE + HUGE
    if float in kinds:
        return REAL if name in WORK else REAL + HUGE[:2]
    return TEXT
