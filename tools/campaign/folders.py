"""Kind `folders`: a run, damaged or forged, given to `load_run` and to `resume`.

What a run vouches for must come back bit for bit, or be refused. A change that was signed anew on purpose, its
checksums made to fit, may be believed, but never crash.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import torch

from relwalk import experiment
from relwalk.errors import RelWalkError
from relwalk.graph.graph import Graph
from relwalk.runs import run
from tools.campaign import forgery
from tools.campaign.fault import Fault, attempt, check_message
from tools.campaign.graphs import random_graph
from tools.campaign.mutations import BYTES, LINES
from tools.campaign.place import Place
from tools.campaign.tree import Odd, Tree, read_tree, write_tree

SETTINGS: dict[str, Any] = {
    "dim": 4,
    "epochs": 4,
    "batch_size": 8,
    "validate_every": 1,
    "patience": 9,
    "threads": 1,
    "checkpoint_seconds": 0,
    "precision": "float32",
}
STATES = ("finished", "stopped")


class _Stopped(Exception):
    pass


class _StopAfter:
    """An observer that ends a training from within, after some epochs."""

    def __init__(self, epochs: int) -> None:
        self.epochs = epochs

    def step(self, epoch: int, step: int, steps: int, loss: float) -> None:
        if epoch > self.epochs:
            raise _Stopped

    def epoch(self, record: object, progress: object) -> None:
        pass


def train_and_stop(graph: Graph, out: Path, after: int, **settings: Any) -> None:
    """A run that is left unfinished after some epochs."""
    try:
        experiment.train(graph, out=out, observer=_StopAfter(after), **settings)
    except _Stopped:
        return
    raise AssertionError("the training was not stopped")


def prepare(base: Path) -> None:
    """A finished run, and the same one stopped in its third epoch."""
    graph = random_graph(0)
    experiment.train(graph, out=base / "finished", **SETTINGS)
    train_and_stop(graph, base / "stopped", 2, **SETTINGS)


@cache
def _prepared(base: Path) -> tuple[dict[str, Tree], dict[str, Any]]:
    """The files of both runs, and the weights that each verb must find in each."""
    trees = {state: read_tree(base / state) for state in STATES}
    last = run.load_run(base / "finished")
    weights = {
        ("load", "finished"): last.model.state_dict(),
        ("load", "stopped"): run.load_run(base / "stopped").model.state_dict(),
        ("resume", "finished"): last.model.state_dict(),
        ("resume", "stopped"): last.model.state_dict(),
    }
    return trees, {"weights": weights, "graph": last.graph}


def check(rng: Random, place: Place) -> None:
    trees, expected = _prepared(place.base)
    state = rng.choice(STATES)
    verb = "resume" if rng.random() < 0.3 else "load"
    place.say(f"{verb} a {state} run")
    tree, signed = dict(trees[state]), False
    for _ in range(rng.choice([1, 1, 1, 2])):
        how = rng.choice(list(DAMAGES))
        change, vouched = DAMAGES[how]
        place.say(how)
        tree = change(rng, tree, place)
        signed = signed or vouched or (verb == "resume" and how == "record")
    folder = place.folder / "run"
    write_tree(tree, folder)
    if verb == "resume" and forgery.asks_for_much(tree):
        place.say("asks for more than a case has time for: loaded instead")
        verb = "load"
    call = {"load": lambda: run.load_run(folder), "resume": lambda: experiment.resume(folder)}[verb]
    outcome = attempt(call)
    if isinstance(outcome, RelWalkError):
        check_message(outcome, [str(folder), *tree])
    elif not signed:
        _check_same(outcome, expected["weights"][verb, state], expected["graph"])


def _check_same(found: run.Run, weights: dict[str, torch.Tensor], graph: Any) -> None:
    have = found.model.state_dict()
    if have.keys() != weights.keys() or not all(torch.equal(have[name], weights[name]) for name in weights):
        raise Fault("a silent difference", "other weights than were saved, and no word of it")
    if found.graph.fingerprint != graph.fingerprint or found.graph.entities != graph.entities:
        raise Fault("a silent difference", "another graph than was saved, and no word of it")


Damage = Callable[[Random, Tree, Place], Tree]


def _some_bytes(rng: Random, tree: Tree, place: Place) -> Tree:
    name = rng.choice([name for name, content in tree.items() if isinstance(content, bytes)])
    kinds = BYTES if name.endswith("safetensors") else BYTES | LINES
    how = rng.choice(list(kinds))
    place.say(f"{how} in {name}")
    content = tree[name]
    return tree | {name: kinds[how](rng, content) if isinstance(content, bytes) else content}


def _odd(rng: Random, tree: Tree, place: Place) -> Tree:
    name, what = rng.choice(list(tree)), rng.choice(list(Odd))
    place.say(f"{what.value} as {name}")
    return tree | {name: what}


def _missing(rng: Random, tree: Tree, place: Place) -> Tree:
    name = rng.choice(list(tree))
    place.say(f"without {name}")
    return {other: content for other, content in tree.items() if other != name}


def _exchanged(rng: Random, tree: Tree, place: Place) -> Tree:
    one, other = rng.choice(list(tree)), rng.choice(list(tree))
    place.say(f"{one} for {other}")
    return tree | {one: tree[other]}


def _history(rng: Random, tree: Tree, place: Place) -> Tree:
    garbage = [b"", b"{", b"null\n", b"[" * 100_000, rng.randbytes(100), b'{"epoch": 1e999}\n', b"\xff\xfe\n"]
    return tree | {forgery.HISTORY: rng.choice(garbage)}


DAMAGES: dict[str, tuple[Damage, bool]] = {  # how, and whether the run then vouches for the change
    "bytes": (_some_bytes, False),
    "no file": (_odd, False),
    "missing": (_missing, False),
    "exchanged": (_exchanged, False),
    "history": (_history, False),
    "record": (forgery.record, False),
    "names": (forgery.names, True),
    "graph": (forgery.graph, True),
    "weights": (forgery.weights, True),
    "checkpoint": (forgery.checkpoint, True),
    "progress": (forgery.progress, True),
}
