"""What can go wrong in one process of several ends all of them, with one sentence from the first."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import torch
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from relwalk.runs.run import load_run
from tests.entry import _verb, brief_calibration
from tests.sharded.ranks import random_graph, ranks, relwalk_ranks

BRIEF = ("--dim", 8, "--epochs", 2, "--batch-size", 64, "--seed", 3, "--threads", 1, "--model", "relwalk")


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return random_graph(tmp_path_factory.mktemp("sharded") / "graph")


def only_line(err: str) -> str:
    """What is said of a failure: the last line, and no other that begins like it."""
    lines = [line for line in err.splitlines() if line.startswith("relwalk: ")]
    assert len(lines) == 1 and "Traceback" not in err, err
    return lines[0]


REFUSED = {
    "soft": (("--model", "relwalk", "--orthogonality", "soft"), "other keys of its entities for every relation"),
    "no product": (("--model", "rotate", "--objective", "likelihood"), "scores that are no products"),
    "batch norm": (("--model", "tucker", "--objective", "likelihood"), "keeps more of a batch than its gradient"),
    "objective": (("--model", "relwalk", "--objective", "margin"), "the objective margin cannot be trained by several"),
    "clip": (("--model", "distmult", "--clip", "1"), "clip cannot be followed by several"),
    "relation weight": (("--relation-weight", "0.1"), "relation_weight cannot be trained by several"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_does_not_fit_is_refused_before_anything_is_written(what: str, graph: Path, tmp_path: Path) -> None:
    words, expected = REFUSED[what]
    said = relwalk_ranks(2, "train", graph, "--out", tmp_path / "run", *BRIEF[:-2], *words, folder=tmp_path, status=1)
    assert expected in only_line(said.err[0])
    assert not (tmp_path / "run").exists()


def test_more_processes_than_entities_are_refused(tmp_path: Path) -> None:
    small = random_graph(tmp_path / "graph", entities=3, triples=60)
    said = relwalk_ranks(4, "train", small, "--out", tmp_path / "run", *BRIEF, folder=tmp_path, status=1)
    assert "4 processes for 3 entities" in only_line(said.err[0])


def test_other_verbs_are_refused(graph: Path, tmp_path: Path) -> None:
    said = relwalk_ranks(2, "info", graph, folder=tmp_path, status=1)
    assert "call it without torchrun" in only_line(said.err[0])


def other_graph() -> None:
    """In the process of rank 1: another graph under the same name."""
    if os.environ["RANK"] == "1":
        from relwalk.graph.graph import Graph

        Graph.fingerprint = property(lambda self: "another")  # type: ignore[assignment,method-assign]


def other_version() -> None:
    if os.environ["RANK"] == "1":
        from relwalk.sharded import processes

        processes.software_versions = lambda: {"relwalk": "0.0"}


@pytest.mark.parametrize(("before", "what"), [(other_graph, "graph"), (other_version, "versions")])
def test_processes_that_differ_are_told_apart(before: object, what: str, graph: Path, tmp_path: Path) -> None:
    said = relwalk_ranks(2, "train", graph, "--out", tmp_path / "run", *BRIEF, folder=tmp_path, status=1, before=before)
    assert f"rank 1 has another {what} than rank 0" in only_line(said.err[0])


def full_disk() -> None:
    """In the process of rank 1: nothing can be written."""
    if os.environ["RANK"] == "1":
        import errno

        from relwalk.runs import shard_files

        def fail(path: Path, *_: object) -> None:
            raise OSError(errno.ENOSPC, "no space", str(path))

        shard_files.write_tensors = fail


def test_a_full_disk_of_one_ends_all(graph: Path, tmp_path: Path) -> None:
    said = relwalk_ranks(
        2, "train", graph, "--out", tmp_path / "run", *BRIEF, folder=tmp_path, status=1, before=full_disk
    )
    assert "rank 1: " in only_line(said.err[0]) and "no space is left on its disk" in only_line(said.err[0])


def hangs() -> None:
    """In the process of rank 1: a step that does not end before rank 0 has said something."""
    if os.environ["RANK"] == "1":
        from relwalk.sharded.likelihood import ShardedLikelihood

        said = Path("/proc/self/fd/2").readlink().with_name("err0")

        def endless(*_: object, **__: object) -> None:
            with suppress(AssertionError):
                wait_for(lambda: "relwalk: " in said.read_text())
            os._exit(1)

        ShardedLikelihood.loss = endless  # type: ignore


def test_a_process_that_hangs_ends_the_others_in_time(graph: Path, tmp_path: Path) -> None:
    words = ["train", str(graph), "--out", str(tmp_path / "run"), *map(str, BRIEF)]
    began = time.monotonic()
    said = ranks(2, words, folder=tmp_path, before=hangs, environment={"RELWALK_TIMEOUT": "2"})
    assert said.status == [1, 1] and time.monotonic() - began < 60
    assert "no word from another rank within 2 seconds" in only_line(said.err[0])


def test_a_wrong_timeout_is_told(graph: Path, tmp_path: Path) -> None:
    words = ["train", str(graph), "--out", str(tmp_path / "run"), *map(str, BRIEF)]
    said = ranks(2, words, folder=tmp_path, environment={"RELWALK_TIMEOUT": "soon"})
    assert said.status == [1, 1] and "RELWALK_TIMEOUT is 'soon'; expected seconds" in only_line(said.err[0])


def asked_to_stop() -> None:
    """In the process of rank 1: a signal at its third step."""
    if os.environ["RANK"] == "1":
        from relwalk.sharded.likelihood import ShardedLikelihood

        loss, steps = ShardedLikelihood.loss, iter(range(1, 1000))

        def signalled(self: ShardedLikelihood, *how: object, **more: object) -> torch.Tensor:
            if next(steps) == 3:
                os.kill(os.getpid(), signal.SIGTERM)
            return loss(self, *how, **more)  # type: ignore[arg-type]

        ShardedLikelihood.loss = signalled  # type: ignore[method-assign,assignment]


def test_a_signal_to_one_stops_all_between_two_steps_and_they_go_on(graph: Path, tmp_path: Path) -> None:
    words = ["train", str(graph), *map(str, BRIEF), "--out"]
    relwalk_ranks(2, *words, tmp_path / "whole", folder=tmp_path)
    said = ranks(2, [*words, str(tmp_path / "run")], folder=tmp_path, before=asked_to_stop)
    assert said.status == [128 + signal.SIGINT, 128 + signal.SIGTERM]
    assert "stopped in epoch 1; go on with: relwalk resume" in said.err[0]
    relwalk_ranks(2, "resume", tmp_path / "run", folder=tmp_path)
    assert_same_weights(tmp_path / "run", tmp_path / "whole")


def assert_same_weights(run: Path, other: Path) -> None:
    others = load_run(other).model.state_dict()
    for name, weights in load_run(run).model.state_dict().items():
        assert torch.equal(weights, others[name]), name


def work_of_torchrun(words: list[str], folder: Path) -> None:
    """In a process that torchrun's engine started: the command, after it has told which process it is."""
    brief_calibration()
    torch.set_num_threads(1)
    (folder / f"pid{os.environ['RANK']}.{os.environ['TORCHELASTIC_RESTART_COUNT']}").write_text(str(os.getpid()))
    try:
        _verb(words)
    except SystemExit as left:
        if left.code:
            os._exit(1)


@contextmanager
def signals_kept() -> Iterator[None]:
    """Torch's engine leaves handlers of its own in the process that it runs in."""
    before = {number: signal.getsignal(number) for number in signal.valid_signals()}
    try:
        yield
    finally:
        for number, handler in before.items():
            if signal.getsignal(number) is not handler:
                signal.signal(number, handler)


def test_a_killed_process_is_replaced_and_the_weights_are_the_same(graph: Path, tmp_path: Path) -> None:
    words = ["train", str(graph), *map(str, BRIEF), "--epochs", "32", "--checkpoint-seconds", "0"]
    relwalk_ranks(2, *words, "--out", tmp_path / "whole", folder=tmp_path)
    chance = random.Random(0)

    def kill_one() -> None:
        wait_for((tmp_path / "run" / "checkpoint.safetensors").exists)
        time.sleep(chance.uniform(0, 1))
        os.kill(int((tmp_path / f"pid{chance.randrange(2)}.0").read_text()), signal.SIGKILL)

    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=2,
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        run_id="killed",
        rdzv_configs={"keep_alive_interval": 1},
        max_restarts=1,
        monitor_interval=0.1,
        start_method="forkserver",
    )
    killer = threading.Thread(target=kill_one)
    killer.start()
    with signals_kept():
        elastic_launch(config, work_of_torchrun)([*words, "--out", str(tmp_path / "run")], tmp_path)
    killer.join()
    assert (tmp_path / "pid0.1").exists()  # they were started again
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL  # and nothing is left for other tests
    assert_same_weights(tmp_path / "run", tmp_path / "whole")


def wait_for(what: Callable[[], bool], seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until
        time.sleep(0.02)
