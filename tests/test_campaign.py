"""A few seconds of the campaign with fixed seeds; and that it can fail: it finds the faults that are planted here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save
from tools.campaign import forgery
from tools.campaign.fault import Fault, attempt, check_message
from tools.campaign.folders import SETTINGS
from tools.campaign.forgery import CHECKPOINT, WEIGHTS
from tools.campaign.graphs import LAYOUTS, random_graph
from tools.campaign.guard import OUTSIDE
from tools.campaign.kinds import KINDS
from tools.campaign.oracle import check_nothing_silent
from tools.campaign.table import Tally, as_markdown, page, write_record
from tools.campaign.tree import read_tree, write_tree
from tools.campaign.values import BASIS, declared
from tools.campaign.workers import Limits, Outcome

from relwalk.errors import RelWalkError
from relwalk.experiment import train
from relwalk.graph.formats import FORMATS
from relwalk.graph.read import read_graph
from relwalk.runs.checkpoint import read_checkpoint
from relwalk.runs.run import load_run
from tests.entry import snippet

ROOT = Path(__file__).parent.parent
PATIENT = "120"  # seconds: whether a call hangs is asked on a quiet machine, by `make campaign`


def python(*words: str, status: int) -> str:
    done = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, env=os.environ)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


COUNTS = {"files": 100, "folders": 30, "kills": 1, "disks": 5, "values": 5}


def test_nothing_fails_in_a_small_campaign() -> None:
    counts = [word for kind, count in COUNTS.items() for word in (f"--{kind}", str(count))]
    told = python("-m", "tools.campaign", *counts, "--start", "0", "--limit", PATIENT, status=0)
    for kind, count in COUNTS.items():
        assert f"{KINDS[kind].description} | {count:,} | 0 |" in told
    assert COUNTS.keys() == KINDS.keys()


PLANTED = """
import mmap, os, sys, time
from pathlib import Path
from tools.campaign.command_line import main, preload, run_kind, workplace
from tools.campaign.workers import Limits
from relwalk.graph import read
from dataclasses import replace

honest, calls, held_up = read.read_graph, [0], mmap.mmap(-1, 1)  # the last is seen by every process

def raises(*words, **options):
    raise KeyError("planted")

def hangs(*words, **options):
    time.sleep(60)

def tarries(*words, **options):  # once, as on a machine that others keep busy
    if not held_up[0]:
        held_up[0] = 1
        time.sleep(60)
    return honest(*words, **options)

def prints(*words, **options):
    os.write(2, b"thread panicked at")
    return honest(*words, **options)

def drops(*words, **options):
    graph = honest(*words, **options)
    return replace(graph, train=graph.train[:-1])

def wavers(*words, **options):
    calls[0] += 1
    return replace(honest(*words, **options), notes=(f"call {calls[0]}",))

def grows(*words, **options):
    return bytearray(os.urandom(1)) * 300_000_000 and honest(*words, **options)

def dies(*words, **options):
    os.kill(os.getpid(), 11)

preload()
plants = {f.__name__: f for f in (raises, hangs, tarries, prints, drops, wavers, grows, dies)}
with workplace() as folder:
    for name, plant in plants.items():
        read.read_graph = plant
        limits = Limits(seconds={"hangs": 0.1, "tarries": 2}.get(name, 60), megabytes=200)
        number = {"drops": 40, "wavers": 40, "hangs": 1, "tarries": 1}.get(name, 2)
        tally = run_kind("files", 0, folder, number=number, seconds=None, jobs=1, limits=limits)
        print("PLANTED", name, "|".join(tally.faults))

read.read_graph = raises
sys.argv = ["campaign", "--kind", "files", "--seed", "0"]
main()
"""
FOUND = {
    "raises": "KeyError in",
    "hangs": "no answer within 0.1 s",
    "prints": "something on standard error",
    "drops": "a harmless change gives another graph",
    "wavers": "two readings of the same files differ",
    "grows": "more than 200 MB",
    "dies": "the process died of SIGSEGV",
}


def test_the_campaign_finds_what_is_planted_and_does_it_again_by_one_command() -> None:
    told = snippet(PLANTED, ROOT, status=1)
    found = dict(line.split(" ", 2)[1:] for line in told.splitlines() if line.startswith("PLANTED"))
    for plant, words in FOUND.items():
        assert words in found[plant], told
    assert found["tarries"] == "", told
    assert "python -m tools.campaign --kind files --seed 0" in told
    assert "files 0: KeyError in" in told.splitlines()[-3]


def test_every_layout_and_every_verb_is_attacked() -> None:
    assert LAYOUTS.keys() == FORMATS.keys()
    assert BASIS.keys() == declared().keys()
    assert all(parameter.type is not None for verb in declared().values() for parameter in verb)


@pytest.mark.parametrize(("layout", "file"), [("plain", ""), ("rotate", ""), ("tsv", "g.tsv")])
def test_a_line_that_goes_missing_in_silence_is_noticed(layout: str, file: str, tmp_path: Path) -> None:
    LAYOUTS[layout].write(random_graph(0), tmp_path)
    graph = read_graph(tmp_path / file)
    check_nothing_silent(graph, tmp_path / file)
    with pytest.raises(Fault, match="silent"):
        check_nothing_silent(replace(graph, train=graph.train[1:]), tmp_path / file)
    told = replace(graph, train=graph.train[1:], notes=(*graph.notes, "left out 1 line"))
    check_nothing_silent(told, tmp_path / file)


class Endless(RelWalkError):
    """An error that does not shorten its message, as RelWalkError does."""

    def __str__(self) -> str:
        return "g.tsv " + "x" * 3000


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (RelWalkError("g.tsv is\nbad"), "control characters"),
        (RelWalkError("g.tsv holds \x1b[31m"), "control characters"),
        (RelWalkError("some file is bad"), "names no file"),
        (Endless(), "without end"),
    ],
    ids=["lines", "escapes", "nameless", "endless"],
)
def test_a_message_must_be_one_short_line_that_names_a_file(error: RelWalkError, fault: str) -> None:
    check_message(RelWalkError("g.tsv is bad. Mend it."), ["g.tsv"])
    check_message(RelWalkError("g.tsv " + "x" * 3000), ["g.tsv"])
    with pytest.raises(Fault, match=fault):
        check_message(error, ["g.tsv"])


def test_only_errors_of_ours_are_answers() -> None:
    def foreign() -> None:
        raise KeyError("x")

    with pytest.raises(Fault, match="KeyError"):
        attempt(foreign)


def test_a_forged_run_passes_its_checksums(tmp_path: Path) -> None:
    """Else the forgeries would never reach what lies behind the checksums."""
    run = train(random_graph(0), out=tmp_path / "run", **SETTINGS)
    tree = read_tree(tmp_path / "run")
    content = tree[CHECKPOINT]
    tensors, metadata = forgery.tensors_of(content), forgery.metadata_of(content)
    (tmp_path / "run" / CHECKPOINT).write_bytes(forgery.sealed(tensors, metadata))
    assert read_checkpoint(tmp_path / "run" / CHECKPOINT)[0].keys() == tensors.keys()
    name = next(iter(run.model.state_dict()))
    weights = {key: tensor + (key == name) for key, tensor in forgery.tensors_of(tree[WEIGHTS]).items()}
    write_tree(forgery.signed(tree | {WEIGHTS: save(weights)}, WEIGHTS), tmp_path / "forged")
    assert torch.equal(load_run(tmp_path / "forged").model.state_dict()[name], run.model.state_dict()[name] + 1)


def test_the_guard_stops_a_process_before_it_writes_elsewhere(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from tools.campaign.guard import stay_within\n"
        "inside, outside = Path(sys.argv[1]) / 'a', Path(sys.argv[1]) / 'b'\n"
        "stay_within(inside, 2)\n"
        "(inside / 'x').write_text('x'); (outside / 'x').write_text('x')"
    )
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    python("-c", code, str(tmp_path), status=OUTSIDE)
    assert (tmp_path / "a" / "x").exists() and not (tmp_path / "b" / "x").exists()


def test_the_table_counts_by_cause_and_says_how_to_repeat() -> None:
    tally = Tally("files", 7)
    assert not tally.add(Outcome("files", 7, 0.1, 3.0))
    assert tally.add(Outcome("files", 8, 2.0, 9.0, "a fault", "detail"))
    assert not tally.add(Outcome("files", 9, 1.0, 5.0, "a fault", "another"))
    assert "| 3 | 2 | 2.0 s | 9 MB | `files` 7 to 9 |" in as_markdown([tally.as_dict()])
    kind = {**tally.as_dict(), "command": "c"}
    found = {"machine": "m", "limits": {"seconds": 10, "megabytes": 2000}, "kinds": [kind]}
    assert "- 2 x a fault: `python -m tools.campaign --kind files --seed 8`" in page(found)


def test_a_record_keeps_the_kinds_that_were_not_tried_again(tmp_path: Path) -> None:
    for kind, start, words in (("folders", 1, "first"), ("files", 2, "first"), ("folders", 3, "again")):
        write_record([Tally(kind, start)], Limits(), words, tmp_path)
    kinds = json.loads((tmp_path / "campaign.json").read_text())["kinds"]
    assert [(k["kind"], k["first_seed"], k["command"]) for k in kinds] == [
        ("files", 2, "first"),
        ("folders", 3, "again"),
    ]
    assert "`first` (files); `again` (folders)" in (tmp_path / "campaign.md").read_text()


def test_the_page_of_the_last_campaign_is_made_from_its_record() -> None:
    record = json.loads((ROOT / "results" / "campaign.json").read_text())
    assert (ROOT / "results" / "campaign.md").read_text() == page(record)
