"""Where to compute, by name."""

from __future__ import annotations

import torch

from relwalk.checks import shown
from relwalk.errors import RelWalkError


def find_device(name: str | torch.device) -> torch.device:
    """The device of that name, tried: one that this machine or this torch does not have is refused."""
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError) as error:
        raise RelWalkError(f"device is {shown(name)}; expected cpu, cuda, cuda:1 or another that torch has") from error
    try:
        torch.ones(1, device=device).item()  # "meta" has no numbers, "cuda" may have no card or no driver
    except Exception as error:  # each kind of device fails in its own way
        reason = " ".join(str(error).split())[:120]
        raise RelWalkError(f"device {str(device)!r} cannot be used here ({reason}). Say cpu.") from error
    return device
