"""The processes that torchrun started, and what they send each other: numbers, and JSON as numbers."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from relwalk.checks import check_number
from relwalk.errors import OtherRankFailed, RelWalkError
from relwalk.together import Together

TIMEOUT = "RELWALK_TIMEOUT"  # seconds that a process waits for the others
PATIENCE = 600.0  # unless that says otherwise
_ERROR, _TOLD = "error", "told"  # of the store: what went wrong first, and that rank 0 has said it
SOON = 3.0  # seconds for one process to leave word of its end
HEARD = timedelta(seconds=10)  # for rank 0 to hear of it, and to say it


class World(Together):
    """This process among all: `rank` of `size`. Every call is one that all processes make, in the same order.

    `sent` counts the bytes that this process sends.
    """

    def __init__(self) -> None:
        """Join the others, by what torchrun says in the environment."""
        said = os.environ.get(TIMEOUT)
        try:
            seconds = PATIENCE if said is None else float(said)
        except ValueError:
            raise RelWalkError(f"{TIMEOUT} is {said!r}; expected seconds. Unset it to wait {PATIENCE:g}.") from None
        self.seconds = check_number(TIMEOUT, seconds, 0, 1e6, above=True)
        self.rank, self.size, self.sent = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), 0
        limit = timedelta(seconds=self.seconds)
        with self._others():
            store = _new_store(self.rank, limit)
            dist.init_process_group("gloo", store=store, rank=self.rank, world_size=self.size, timeout=limit)

    def sum(self, x: Tensor) -> Tensor:
        return self._reduced(x, dist.ReduceOp.SUM)

    def largest(self, x: Tensor) -> Tensor:
        return self._reduced(x, dist.ReduceOp.MAX)

    def any(self, flag: bool) -> bool:
        return bool(self.largest(torch.tensor([float(flag)])) > 0)

    def add_up(self, gradients: Sequence[Tensor]) -> None:
        if gradients:
            sums = self.sum(torch.cat([gradient.flatten() for gradient in gradients]))
            for gradient, part in zip(gradients, torch.split(sums, [g.numel() for g in gradients]), strict=True):
                gradient.copy_(part.view_as(gradient))

    def gather(self, x: Tensor) -> Tensor:
        rows = x.new_empty(self.size, *x.shape)
        with self._others():
            dist.all_gather(list(rows), x.contiguous())
        self.sent += (self.size - 1) * _bytes(x)
        return rows.flatten(0, 1)

    def scatter_sum(self, x: Tensor) -> Tensor:
        """Of rows for every process, Σ over the processes of those for this one, in the order of their ranks."""
        count = len(x) // self.size
        rows = self.exchange(x, [count] * self.size, [count] * self.size)
        return rows.view(self.size, count, *x.shape[1:]).sum(0)

    def exchange(self, x: Tensor, to: list[int], back: list[int]) -> Tensor:
        """The first `to[0]` rows go to rank 0, and so on; `back[0]` rows come from it, and so on."""
        rows = x.new_empty(sum(back), *x.shape[1:])
        with self._others():
            dist.all_to_all_single(rows, x.contiguous(), back, to)
        self.sent += (len(x) - to[self.rank]) * _bytes(x) // max(len(x), 1)
        return rows

    def tell(self, content: Any) -> list[Any]:
        """What each process says, as JSON."""
        words = torch.frombuffer(bytearray(json.dumps(content).encode()), dtype=torch.uint8)
        sizes = self.gather(torch.tensor([len(words)])).tolist()
        room = torch.zeros(max(sizes), dtype=torch.uint8)
        room[: len(words)] = words
        said = self.gather(room).view(self.size, -1)
        return [json.loads(bytes(row[:size].tolist())) for row, size in zip(said, sizes, strict=True)]

    def from_first(self, content: Any) -> Any:
        """What rank 0 says, as JSON."""
        return self.tell(content if self.rank == 0 else None)[0]

    def first_does(self, act: Callable[[], Any]) -> Any:
        """What an act of rank 0 alone comes to, as JSON; the others wait for it."""
        return self.from_first(act() if self.rank == 0 else None)

    def check_same(self, what: dict[str, Any]) -> None:
        """Refuse to go on when processes have different values of something, each by its name."""
        said = self.tell(what)
        for name in what:
            for rank, other in enumerate(said):
                if other[name] != said[0][name]:
                    raise RelWalkError(
                        f"rank {rank} has another {name} than rank 0: {str(other[name])[:200]}; expected "
                        f"{str(said[0][name])[:200]}. Start all ranks with the same files, command and versions."
                    )

    def _reduced(self, x: Tensor, how: Any) -> Tensor:
        total = x.detach().clone(memory_format=torch.contiguous_format)
        with self._others():
            dist.all_reduce(total, how)
        self.sent += 2 * (self.size - 1) * _bytes(x) // self.size
        return total

    @contextmanager
    def _others(self) -> Iterator[None]:
        """A failure within is one of another process: what that one said of itself, if it did."""
        try:
            yield
        except RuntimeError as error:
            late = any(words in str(error) for words in ("Timed out waiting", "wait timeout"))
            raise OtherRankFailed(self.failure() or _lost(late, self.seconds)) from error

    def failure(self) -> str | None:
        """What the first process that failed said of it; None if none said anything."""
        store, until = _store(), time.monotonic() + SOON
        try:
            while store is not None and time.monotonic() < until:
                if store.check([_ERROR]):
                    return str(store.get(_ERROR).decode())
                time.sleep(0.05)
        except RuntimeError:
            pass  # the store is gone as well
        return None


def tell_failure(words: str, *, own: bool) -> None:
    """Leave word, before this process ends, of what went wrong in it (`own`) or in another; rank 0 says it."""
    store = _store()
    if store is None:
        return
    rank = dist.get_rank()
    try:
        if own:
            store.compare_set(_ERROR, "", f"rank {rank}: {words}")
        if rank == 0:
            store.set(_TOLD, "")
        elif own:
            dist.destroy_process_group()  # who waits for this process hears at once
            store.wait([_TOLD], HEARD)
    except RuntimeError:
        pass  # rank 0 or the store is gone: nobody is left to be told


def _new_store(rank: int, limit: timedelta) -> Any:
    """Where the processes find each other: torchrun's, or else that of rank 0. Those that are started in place of
    others have a part of it to themselves, where nothing is left of the ones that failed."""
    theirs = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    store = dist.TCPStore(  # type: ignore[attr-defined]
        os.environ["MASTER_ADDR"],
        int(os.environ["MASTER_PORT"]),
        is_master=rank == 0 and not theirs,
        timeout=limit,
        wait_for_workers=False,
    )
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    return dist.PrefixStore(f"relwalk/{attempt}", store)  # type: ignore[attr-defined]


def _store() -> Any:
    """What all processes can write to and read from, also when one of them is gone."""
    return dist.distributed_c10d._get_default_store() if dist.is_initialized() else None


def _lost(late: bool, seconds: float) -> str:
    if late:
        return f"no word from another rank within {seconds:g} seconds. Look at its machine, or raise {TIMEOUT}."
    return (
        "another rank ended without a word: it was killed, or its machine is gone. Go on with relwalk resume, or let "
        "torchrun do so by itself (--max-restarts 3)."
    )


def _bytes(x: Tensor) -> int:
    return x.numel() * x.element_size()
