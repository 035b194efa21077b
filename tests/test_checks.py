"""Wrong values from Python are errors of ours, wherever they come in."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import relwalk
from relwalk import memory
from relwalk.checks import check_number, check_seed, check_whole
from relwalk.devices import find_device
from relwalk.errors import RelWalkError, choose
from relwalk.models import MODELS, ProductScorer, build_model
from relwalk.models.size import most_numbers
from tests.conftest import TEST, TRAIN, VALID, make_graph

GRAPH = make_graph(TRAIN, VALID, TEST)


@pytest.fixture(scope="module")
def run() -> relwalk.Run:
    return relwalk.train(GRAPH, dim=4, epochs=1, threads=1)


def test_whole_numbers() -> None:
    assert check_whole("k", 3) == check_whole("k", np.int32(3)) == 3
    for wrong in (0, -1, 2.0, "3", True, None, math.nan, 2**31, b"3", [3]):
        with pytest.raises(RelWalkError, match=r"k is .*; expected a whole number from 1 to 2,147,483,647"):
            check_whole("k", wrong)


def test_numbers() -> None:
    assert check_number("x", 1, 0, 2) == check_number("x", np.float32(1), 0, 2) == 1.0
    for wrong in (-0.1, 2.1, math.nan, math.inf, -math.inf, "1", True, None, 1j):
        with pytest.raises(RelWalkError, match=r"x is .*; expected a number from 0 to 2"):
            check_number("x", wrong, 0, 2)
    with pytest.raises(RelWalkError, match="x is 0; expected a number above 0 and at most 2"):
        check_number("x", 0, 0, 2, above=True)
    with pytest.raises(RelWalkError, match=r"x is '1{56}\.\.\.; expected"):
        check_number("x", "1" * 10_000, 0, 2)


def test_seeds() -> None:
    assert check_seed(0) == 0 and check_seed(2**63 - 1) == 2**63 - 1
    for wrong in (-1, 2**63, 1.5, "0", None):
        with pytest.raises(RelWalkError, match="seed is"):
            check_seed(wrong)


def test_devices() -> None:
    assert find_device("cpu") == find_device(torch.device("cpu")) == torch.device("cpu")
    for wrong in ("foo", "", "cuda:-1", None, 3.5, "cpu:x"):
        with pytest.raises(RelWalkError, match=r"device is .*; expected cpu, cuda"):
            find_device(wrong)  # type: ignore[arg-type]
    with pytest.raises(RelWalkError, match=r"device 'meta' cannot be used here .*Say cpu"):
        find_device("meta")


@pytest.mark.parametrize("name", [3, None, ["plain"], b"plain", {}])
def test_a_choice_that_is_no_text_is_an_unknown_one(name: Any) -> None:
    with pytest.raises(RelWalkError, match=r"unknown format .*Known: plain"):
        choose("format", name, {"plain": 1})


WRONG: list[tuple[Callable[[relwalk.Run], object], str]] = [
    (lambda run: relwalk.predict(run, head=3, relation="likes"), "head is 3; expected a name"),  # type: ignore[arg-type]
    (lambda run: relwalk.predict(run, head=b"a", relation="likes"), "head is b'a'"),  # type: ignore[arg-type]
    (lambda run: relwalk.predict(run, relation=["likes"], tail="a"), r"relation is \['likes'\]"),  # type: ignore[arg-type]
    (lambda run: relwalk.predict(run, head="a", tail=0), "tail is 0"),  # type: ignore[arg-type]
    (lambda run: relwalk.predict(run, head="a", relation="likes", k="3"), "k is '3'"),  # type: ignore[arg-type]
    (lambda run: relwalk.predict(run, head="a", relation="likes", k=0), "k is 0"),
    (lambda run: relwalk.predict("run", head="a", relation="likes"), "expected a Run"),  # type: ignore[arg-type]
    (lambda run: list(relwalk.predict_many(run, None)), "queries is None"),  # type: ignore[arg-type]
    (lambda run: list(relwalk.predict_many(run, "abc")), "queries is 'abc'"),  # type: ignore[arg-type]
    (lambda run: list(relwalk.predict_many(run, [5])), "give two of head"),  # type: ignore[list-item]
    (lambda run: list(relwalk.predict_many(run, [("a", "likes", None)], batch=0)), "batch is 0"),
    (lambda run: relwalk.train(GRAPH, dim=0), "dim is 0; expected a whole number from 1 to 65,536"),
    (lambda run: relwalk.train(GRAPH, dim="8"), "dim is '8'"),  # type: ignore[arg-type]
    (lambda run: relwalk.train(GRAPH, model=""), "unknown model ''"),
    (lambda run: relwalk.train(GRAPH, device="foo"), "device is 'foo'"),
    (lambda run: relwalk.train(GRAPH, orthogonality="soft", lambda1=math.nan), "lambda1"),
    (lambda run: relwalk.classify(run.model, run.graph, seed=-1), "seed is -1"),
    (lambda run: relwalk.make_report(run, seed=-1), "seed is -1"),
    (lambda run: relwalk.make_report(run, directions=1), "directions is 1"),
    (lambda run: relwalk.make_report(run, truth=Path("nowhere")), "nowhere is not a relwalk run"),
    (lambda run: relwalk.analyse(run.model, run.graph, seed=-1), "seed is -1"),
    (lambda run: relwalk.analyse(run.model, run.graph, directions=10**9), "directions is 1000000000"),
    (lambda run: relwalk.walk(run.model, run.graph, seed=-1), "seed is -1"),
    (lambda run: relwalk.walk(run.model, run.graph, temperature=math.nan), "temperature is nan"),
    (lambda run: relwalk.walk(run.model, run.graph, step_size=math.inf), "step_size is inf"),
    (lambda run: relwalk.walk(run.model, run.graph, paths=2**31 - 1), "needs at least"),
    (lambda run: relwalk.generate(10, 1, 5, 2, seed=-1), "seed is -1"),
    (lambda run: relwalk.generate(10, 1, 5, 2, entity_scale=math.inf), "entity_scale is inf"),
    (lambda run: relwalk.generate(10, 1, 5, 2, valid=math.nan), "valid is nan"),
    (lambda run: relwalk.generate(10**9, 1, 5, 60_000), "needs at least"),
    (lambda run: relwalk.export(run, "x", 3), "unknown export format 3"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("call", "words"), WRONG, ids=[words for _, words in WRONG])
def test_every_function_says_what_is_wrong(run: relwalk.Run, call: Callable[[relwalk.Run], object], words: str) -> None:
    with pytest.raises(RelWalkError, match=words):
        call(run)


def test_a_device_is_checked_before_a_run_is_read(tmp_path: Path) -> None:
    with pytest.raises(RelWalkError, match="device is 'foo'"):
        relwalk.load_run(tmp_path / "nowhere", device="foo")
    with pytest.raises(RelWalkError, match="device is 'foo'"):
        relwalk.resume(tmp_path / "nowhere", device="foo")


LARGEST: dict[str, dict[str, Any]] = {  # options that make a model larger than it is without them
    "relwalk": {"orthogonality": "soft"},
    "transg": {"max_components": 1000},
}


@pytest.mark.parametrize("reciprocal", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_no_model_is_larger_than_the_quick_estimate_says(name: str, reciprocal: bool) -> None:
    options: dict[str, Any] = LARGEST.get(name, {})
    if reciprocal and not issubclass(MODELS[name], ProductScorer):
        pytest.skip("only product models can be")
    model = build_model(name, 7, 3, 4, seed=0, options={**options, "reciprocal": reciprocal})
    most = most_numbers(7, 6 if reciprocal else 3, 4, options.values())
    assert sum(tensor.numel() for tensor in model.state_dict().values()) <= most


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_refused_by_its_exact_size(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that fits exactly is made, one byte less room refuses it, before it is made: however large it would be."""
    state = build_model(name, 7, 3, 4, seed=0, options={}).state_dict()
    size = sum(tensor.numel() * tensor.element_size() for tensor in state.values())
    for room, copies, fits in ((3 * size, 3, True), (3 * size - 1, 3, False), (3 * size - 1, 2, True)):
        monkeypatch.setattr("relwalk.models.size.available_memory", lambda room=room: room)
        monkeypatch.setattr(memory, "available_memory", lambda room=room: room)
        if fits:
            build_model(name, 7, 3, 4, seed=0, options={}, copies=copies)
        else:
            with pytest.raises(RelWalkError, match=r"of 4 dimensions needs at least .* are free. Take a smaller --dim"):
                build_model(name, 7, 3, 4, seed=0, options={}, copies=copies)
    monkeypatch.undo()
    with pytest.raises(RelWalkError, match="needs at least"):
        build_model(name, 10**9, 10**6, 1 << 16, seed=0, options={})


def test_the_memory_of_a_container_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "max").write_text("max\n")
    (tmp_path / "limit").write_text("12345\n")
    monkeypatch.setattr(memory, "_LIMITS", (str(tmp_path / "max"), str(tmp_path / "none")))
    free = memory.available_memory()
    assert free is not None and free > 2**20
    monkeypatch.setattr(memory, "_LIMITS", (str(tmp_path / "max"), str(tmp_path / "limit")))
    assert memory.available_memory() == 12345
