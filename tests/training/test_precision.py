"""The choice between float32 and bfloat16: what the processor can do, on every machine the same way."""

from __future__ import annotations

import time

import pytest
import torch

from relwalk.errors import RelWalkError
from relwalk.experiment import train
from relwalk.graph.graph import Graph
from relwalk.training import precision
from relwalk.training.precision import OVERRIDE, add_product, choose_precision, multiply

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def no_override(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(OVERRIDE, raising=False)


def processor(monkeypatch: pytest.MonkeyPatch, *, avx512_bf16: bool, amx: bool, intel: bool = False) -> None:
    monkeypatch.setattr(precision, "is_intel", lambda: intel)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: avx512_bf16)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: amx)


def test_a_name_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for capable in (True, False):
        processor(monkeypatch, avx512_bf16=capable, amx=capable)
        assert choose_precision("float32", CPU) == torch.float32
        assert choose_precision("bfloat16", CPU) == torch.bfloat16


@pytest.mark.parametrize(
    ("avx512_bf16", "amx", "intel", "chosen"),
    [
        (False, False, False, torch.float32),
        (True, False, False, torch.bfloat16),
        (False, True, False, torch.bfloat16),
        (True, True, False, torch.bfloat16),
        (False, False, True, torch.float32),
        (True, False, True, torch.float32),  # its AVX-512 makes float32 faster
        (True, True, True, torch.bfloat16),
    ],
)
def test_the_processor_decides(
    avx512_bf16: bool, amx: bool, intel: bool, chosen: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    processor(monkeypatch, avx512_bf16=avx512_bf16, amx=amx, intel=intel)
    assert choose_precision("auto", CPU) == chosen


def test_no_clock_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped() -> float:
        raise AssertionError("the choice of precision looked at a clock")

    for clock in ("perf_counter", "monotonic", "time", "process_time"):
        monkeypatch.setattr(time, clock, stopped)
    choose_precision("auto", CPU)
    assert not hasattr(precision, "time")


@pytest.mark.parametrize(("said", "chosen"), [("1", torch.bfloat16), ("0", torch.float32)])
def test_the_environment_overrides_the_processor(
    said: str, chosen: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    processor(monkeypatch, avx512_bf16=said == "0", amx=False)
    monkeypatch.setenv(OVERRIDE, said)
    assert choose_precision("auto", CPU) == chosen
    monkeypatch.setenv(OVERRIDE, "yes")
    with pytest.raises(RelWalkError, match=OVERRIDE):
        choose_precision("auto", CPU)


@pytest.mark.parametrize("capable", [True, False])
def test_a_run_keeps_what_was_chosen(five: Graph, capable: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both branches on every machine: what is trained in, and that the run says so for its resumption elsewhere."""
    processor(monkeypatch, avx512_bf16=capable, amx=False)
    run = train(five, dim=4, epochs=2)
    chosen = run.record.training.objective.precision
    assert chosen == ("bfloat16" if capable else "float32")
    for name in ("bfloat16", "float32"):
        asked = train(five, dim=4, epochs=2, precision=name)
        same = [torch.equal(a, b) for a, b in zip(run.model.parameters(), asked.model.parameters(), strict=True)]
        assert all(same) == (name == chosen), name


def test_products_round_alike_with_and_without_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(70, 40, generator=generator).bfloat16() for _ in range(2))
    exact = (a.double() @ b.double().T).bfloat16()
    for capable in (True, False):
        processor(monkeypatch, avx512_bf16=capable, amx=False)
        made, added = torch.empty(70, 70, dtype=torch.bfloat16), torch.zeros(70, 70)
        multiply(a, b.T, out=made)
        add_product(added, a, b.T)
        assert torch.equal(added, made.float()), "a product is rounded before it is added"
        assert float((made != exact).float().mean()) < 0.02  # sums in another order round to a neighbour, seldom
