"""The choice between float32 and bfloat16."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
import torch

from relwalk.training import precision
from relwalk.training.precision import choose_precision, speed_gain

CPU = torch.device("cpu")


class Clock:
    """Time that passes only where a test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(time, "perf_counter", lambda: self.now)

    def work(self, *seconds: float) -> Callable[[], None]:
        """Work that takes so long at its first calls, the last figure from then on."""
        left = list(seconds)

        def call() -> None:
            self.now += left.pop(0) if len(left) > 1 else left[0]

        return call


def test_a_name_is_taken_as_it_is() -> None:
    assert choose_precision("float32", CPU) == torch.float32
    assert choose_precision("bfloat16", CPU) == torch.bfloat16


def test_a_slow_first_call_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    assert speed_gain(clock.work(9.0, 0.001), clock.work(0.1)) == pytest.approx(0.01)
    assert speed_gain(clock.work(0.004), clock.work(9.0, 0.001)) == pytest.approx(4.0)


def test_a_single_slow_call_later_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    assert speed_gain(clock.work(1.0, 5.0, 0.001), clock.work(0.002)) == pytest.approx(0.5)


@pytest.mark.parametrize(("gain", "chosen"), [(1.2, torch.float32), (1.4, torch.bfloat16)])
def test_bfloat16_has_to_be_clearly_faster(gain: float, chosen: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "speed_gain", lambda *_: gain)
    assert choose_precision("auto", CPU) == chosen


def test_measured_here_the_choice_is_one_of_the_two() -> None:
    assert choose_precision("auto", CPU) in (torch.float32, torch.bfloat16)
