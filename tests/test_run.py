from __future__ import annotations

import hashlib
import json
import math
import os
import resource
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.numpy import load_file as load_arrays
from safetensors.numpy import save_file as save_arrays
from safetensors.torch import load_file, save_file

import relwalk
from relwalk.errors import (
    LONGEST,
    Interrupted,
    RefusedOverwrite,
    RelWalkError,
    RunError,
    TrainingDiverged,
    UnknownChoice,
)
from relwalk.experiment import resume, train
from relwalk.files import sha256
from relwalk.graph.graph import Graph
from relwalk.graph.vocabulary import Vocabulary
from relwalk.models.orthogonal import defect
from relwalk.report.facts import _history
from relwalk.runs.checkpoint import digest_of
from relwalk.runs.folder import FILES, RECORD, WEIGHTS
from relwalk.runs.record import RUN_FORMAT
from relwalk.runs.run import load_run, read_state

RECIPE = {"hidden": True, "equal_lengths": True, "relation_bias": True}  # which another optimiser has to be told
FAST = {"dim": 8, "epochs": 2, "batch_size": 2000}


@pytest.fixture(scope="module")
def saved(world: Graph, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "world"
    train(world, out=path, **FAST)
    return path


@pytest.fixture
def run(saved: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(saved, tmp_path / "run"))


def test_a_run_is_the_folder_the_documentation_says(saved: Path) -> None:
    assert sorted(path.name for path in saved.iterdir()) == sorted(FILES)
    record = json.loads((saved / RECORD).read_text())
    assert record["status"] == "finished"
    assert record["training"]["seed"] == 0
    assert record["versions"]["torch"] == torch.__version__
    assert [json.loads(line)["epoch"] for line in (saved / "history.jsonl").read_text().splitlines()] == [1, 2]


def test_what_is_loaded_is_what_was_trained(saved: Path, world: Graph) -> None:
    run = load_run(saved)
    assert run.graph.fingerprint == world.fingerprint
    assert float(defect(run.model.R2.detach()).abs().max()) < 1e-5
    again = train(world, **FAST)
    assert torch.equal(run.model.entity.weight, again.model.entity.weight)
    assert run.record.metrics == again.record.metrics


def test_names_with_tabs_line_ends_and_backslashes_survive(tmp_path: Path) -> None:
    names = ("a\tb", "c\nd", "e\\tf", "g\r", "\\", "ü ")
    graph = Graph(
        name="odd",
        entities=Vocabulary("entity", names, (None, "x\ty", None, None, None, None)),
        relations=Vocabulary("relation", ("r",)),
        train=np.array([[0, 0, 1], [2, 0, 3], [4, 0, 5]], np.int32),
    )
    train(graph, out=tmp_path / "run", **FAST)
    assert load_run(tmp_path / "run").graph.entities == graph.entities


def test_nothing_is_overwritten_without_force(run: Path, world: Graph, tmp_path: Path) -> None:
    with pytest.raises(RefusedOverwrite, match="force"):
        train(world, out=run, **FAST)
    (run / "notes.txt").write_text("mine")
    train(world, out=run, force=True, **FAST)
    assert (run / "notes.txt").read_text() == "mine"
    other = tmp_path / "thesis"
    other.mkdir()
    (other / "chapter1.tex").write_text("mine")
    with pytest.raises(RefusedOverwrite):  # not a run: force does not touch it
        train(world, out=other, force=True, **FAST)


def test_a_wrong_option_leaves_no_folder(world: Graph, tmp_path: Path) -> None:
    with pytest.raises(UnknownChoice):
        train(world, out=tmp_path / "run", orthogonality="hard", **FAST)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", [name for name in FILES if name not in ("history.jsonl", "checkpoint.safetensors")])
@pytest.mark.parametrize("harm", ["cut", "missing", "foreign", "flipped"])
def test_a_damaged_file_is_refused_by_name(run: Path, name: str, harm: str) -> None:
    file = run / name
    content = file.read_bytes()
    if harm == "missing":
        file.unlink()
    else:
        middle = len(content) // 2
        flipped = content[:middle] + bytes([content[middle] ^ 0xFF]) + content[middle + 1 :]
        file.write_bytes({"cut": content[: len(content) // 2], "foreign": b"\x80\x04K\x01.", "flipped": flipped}[harm])
    with pytest.raises(RunError, match=name.replace(".", r"\.")):
        load_run(run)


def change(run: Path, **fields) -> None:
    record = json.loads((run / RECORD).read_text())
    (run / RECORD).write_text(json.dumps(record | fields))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"version": 99}, "Upgrade relwalk"),
        ({"format": "other"}, "not written by relwalk"),
        ({"surprise": 1}, "surprise"),
        ({"model": {"name": "os.system", "dim": 8}}, "unknown model"),
        ({"model": {"name": "relwalk", "dim": 9}}, "does not fit the model: R2"),
        ({"model": {"name": "relwalk", "dim": -1}}, r"model\.dim"),
        ({"model": {"name": "relwalk", "dim": 8, "options": {"generator": 1}}}, "unknown option"),
        ({"files": {}}, "does not vouch"),
        ({"files": {"../../etc/passwd": "0"}}, "no part of a run"),
        ({"status": "done"}, "status"),
        ({"created": "\ud800"}, "not readable JSON.*surrogates"),  # text that could not be written again
    ],
)
def test_a_tampered_record_is_refused(run: Path, fields: dict, words: str) -> None:
    change(run, **fields)
    with pytest.raises(RelWalkError, match=words):
        load_run(run)


def test_an_unfinished_run_loads_from_its_checkpoint(run: Path, saved: Path) -> None:
    change(run, status="training")
    (run / "weights.safetensors").unlink()
    record = json.loads((run / RECORD).read_text())
    del record["files"]["weights.safetensors"]
    (run / RECORD).write_text(json.dumps(record))
    assert torch.equal(load_run(run).model.entity.weight, load_run(saved).model.entity.weight)
    (run / "checkpoint.safetensors").unlink()
    with pytest.raises(RunError, match="no weights yet"):
        load_run(run)


def test_the_public_names_are_sorted_and_complete() -> None:
    assert list(relwalk.__all__) == sorted(relwalk.__all__)
    assert set(relwalk.__all__) == set(relwalk._HOMES)
    for name in relwalk.__all__:
        assert getattr(relwalk, name).__module__ == relwalk._HOMES[name] or name in ("RelWalk", "Scorer")
    with pytest.raises(AttributeError):
        relwalk.nonsense  # noqa: B018


def resign(run: Path, name: str) -> None:
    """Vouch for a file as it is now: what only its contents can give away."""
    record = json.loads((run / RECORD).read_text())
    record["files"][name] = hashlib.sha256((run / name).read_bytes()).hexdigest()
    (run / RECORD).write_text(json.dumps(record))


@pytest.mark.parametrize("dim", [10**6, 10**9, 10**30])
def test_a_size_that_the_weights_do_not_have_costs_nothing(run: Path, dim: int) -> None:
    change(run, model={"name": "relwalk", "dim": dim})
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(RunError, match=r"(weights\.safetensors|run\.json).*(dim|entity)"):
        load_run(run)
    change(run, status="training")
    with pytest.raises(RunError, match=r"(checkpoint\.safetensors|run\.json).*dim"):
        resume(run)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000  # kB, of 6 GB


@pytest.mark.parametrize("name", ["run.json", "progress"])
def test_deep_nesting_is_refused_by_name(run: Path, name: str) -> None:
    deep = "[" * 200_000
    if name == "run.json":
        (run / RECORD).write_text(f'{{"format": "relwalk-run", "metrics": {deep}')
    else:
        change(run, status="training")
        tensors = load_file(run / "checkpoint.safetensors")
        save_file(tensors, run / "checkpoint.safetensors", {"progress": deep, "owner": deep})
    with pytest.raises(RunError, match=r"(run\.json|checkpoint\.safetensors).*JSON"):
        load_run(run)


@pytest.mark.parametrize(
    "line", ["0", "", "0\ta\tb\tc", "x\ta", "1\ta", "0\ta\\q", "0\ta\\", "0 a", "0\ta\\tb\\"], ids=repr
)
def test_a_line_that_is_no_name_is_refused_with_its_number(run: Path, line: str) -> None:
    for name in ("entities.tsv", "relations.tsv"):
        lines = (run / name).read_text().split("\n")
        (run / name).write_text("\n".join([line, *lines[1:]]))
        resign(run, name)
        with pytest.raises(RunError, match=rf"{name}, line 1: found .*expected id 0.*train again"):
            load_run(run)
        (run / name).write_text("\n".join(lines))
        resign(run, name)
    (run / "entities.tsv").write_text("\n".join(lines)[:-1])
    resign(run, "entities.tsv")
    with pytest.raises(RunError, match="ends in the middle of line"):
        load_run(run)


@pytest.mark.parametrize("name", [name for name in FILES if name != RECORD])
def test_a_folder_where_a_file_should_be_is_refused_by_name(run: Path, name: str) -> None:
    (run / name).unlink()
    (run / name).mkdir()
    for attempt in (load_run, lambda path: resume(path, epochs=5)):
        with pytest.raises(RunError, match=rf"{name} is a folder"):
            attempt(run)


@pytest.mark.parametrize("name", [name for name in FILES if name != RECORD])
def test_a_pipe_where_a_file_should_be_is_refused_and_not_waited_for(run: Path, name: str) -> None:
    (run / name).unlink()
    os.mkfifo(run / name)
    for attempt in (load_run, lambda path: resume(path, epochs=5)):
        with pytest.raises(RunError, match=rf"{name} is a device or pipe"):
            attempt(run)


@pytest.mark.parametrize("place", [(), ("training",), ("model", "options"), ("files",), ("metrics",)])
def test_a_key_without_end_makes_a_message_with_one(run: Path, place: tuple[str, ...]) -> None:
    record = json.loads((run / RECORD).read_text())
    within = record
    for key in place:
        within = within[key]
    within["é" * 5000] = "x" * 5000
    (run / RECORD).write_text(json.dumps(record))
    with pytest.raises(RunError) as error:
        load_run(run)
    assert len(str(error.value)) <= LONGEST
    assert str(error.value).endswith(".")


@pytest.mark.parametrize(
    "lists",
    [
        {"head_offsets": np.array([0, 1])},
        {"head_offsets": np.array([0, 2] + [1] * 9)},
        {"head_values": np.array([10**6], np.int32)},
        {"head_values": np.array([1.5])},
        {"tail_values": None},
    ],
)
def test_argument_lists_are_checked(run: Path, lists: dict) -> None:
    arrays = load_arrays(run / "graph.safetensors")
    good = {f"{side}_{part}": a for side in ("head", "tail") for part, a in zip(*LISTS, strict=True)}
    arrays |= {name: array for name, array in (good | lists).items() if array is not None}
    save_arrays(arrays, run / "graph.safetensors")
    resign(run, "graph.safetensors")
    with pytest.raises(RunError, match=r"graph\.safetensors does not hold a graph"):
        load_run(run)


LISTS = ("offsets", "values"), (np.array([0] + [1] * 10), np.array([5], np.int32))  # world has ten relations


@pytest.mark.parametrize("dtype", [torch.int32, torch.float16, torch.bfloat16])
def test_weights_of_another_type_are_refused(run: Path, dtype: torch.dtype) -> None:
    file = run / "weights.safetensors"
    save_file({name: tensor.to(dtype) for name, tensor in load_file(file).items()}, file)
    resign(run, "weights.safetensors")
    with pytest.raises(RunError, match=r"weights\.safetensors does not fit the model: R2 is .*expected F32"):
        load_run(run)


def checkpoint(run: Path, **changes) -> None:
    """Rewrite a checkpoint with a digest of its own, as if it had been written so."""
    file = run / "checkpoint.safetensors"
    with safe_open(file, framework="pt") as content:
        metadata = content.metadata()
    tensors = load_file(file)
    for name, value in changes.items():
        tensors[name] = value(tensors[name])
    metadata["digest"] = digest_of(tensors, metadata)
    save_file(tensors, file, metadata)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"dim": 6}, "dim is 6; expected 8"),
        ({"model": "distmult"}, "name is 'distmult'; expected 'relwalk'"),
        ({"optimizer": "adam", **RECIPE}, "optimizer is 'adam'; expected 'adagrad'"),
        ({"orthogonality": "soft"}, "options is"),
        ({"seed": 5}, "seed is 5; expected 0"),
        ({"batch_size": 5000}, "batch_size is 5000; expected 2000"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(
    run: Path, world: Graph, tmp_path: Path, other: dict, words: str
) -> None:
    train(world, out=tmp_path / "other", **FAST | other)
    shutil.copy(tmp_path / "other" / "checkpoint.safetensors", run)
    with pytest.raises(RunError, match=rf"checkpoint\.safetensors belongs to another run: its {words}"):
        resume(run, epochs=3)
    change(run, status="training")
    with pytest.raises(RunError, match="belongs to another run"):
        load_run(run)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("model/entity.weight", lambda t: t.to(torch.int32), "model/entity.weight is I32"),
        ("best/entity.weight", lambda t: t[:5].clone(), "best/entity.weight is F32 \\(5, 8\\)"),
        ("optimizer/0/0/sum", lambda t: t.flatten().clone(), "optimizer/0/0/sum"),
        ("optimizer/1/0/steps", lambda t: t.float(), "optimizer/1/0/steps is F32"),
    ],
)
def test_a_checkpoint_of_other_shapes_or_types_is_refused(run: Path, name: str, value, words: str) -> None:
    checkpoint(run, **{name: value})
    with pytest.raises(RunError, match=rf"checkpoint\.safetensors does not fit the model: {words}.*Restore the file"):
        resume(run, epochs=3)


def test_the_progress_of_a_checkpoint_is_vouched_for(run: Path) -> None:
    file = run / "checkpoint.safetensors"
    content = file.read_bytes()
    assert content.count(b'\\"epoch\\": 2, \\"best_metric') == 1
    file.write_bytes(content.replace(b'\\"epoch\\": 2, \\"best_metric', b'\\"epoch\\": 1, \\"best_metric'))
    with pytest.raises(RunError, match=r"checkpoint\.safetensors was changed"):
        resume(run, epochs=3)
    assert load_run(run).state.status == "finished"  # as it was


@pytest.fixture(scope="module")
def diverged(world: Graph, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("diverged") / "run"
    with pytest.raises(TrainingDiverged, match=rf"relwalk resume {path} --lr 1e\+07"):
        train(world, out=path, dim=8, optimizer="sgd", lr=1e8, objective="margin", epochs=3)
    return path


def test_a_run_that_diverged_is_refused_and_can_go_on_at_a_lower_rate(diverged: Path, tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"diverged: .*--lr 1e.07.*anyway=True"):
        load_run(diverged)
    assert load_run(diverged, anyway=True).state == read_state(diverged)
    assert read_state(diverged).status == "diverged"
    path = Path(shutil.copytree(diverged, tmp_path / "run"))
    with pytest.raises(RelWalkError, match="would again"):
        resume(path)
    run = resume(path, lr=1e-4, relation_lr=1e-4)
    assert run.state.status == load_run(path).state.status == "finished"
    record = json.loads((path / RECORD).read_text())
    assert (record["training"]["lr"], record["reason"]) == (1e-4, "")
    assert record["changes"] == [{"after_epoch": 0, "settings": {"lr": 1e-4, "relation_lr": 1e-4}}]


def test_an_unfinished_run_says_so(world: Graph, tmp_path: Path) -> None:
    asked = iter([False] * 40)
    with pytest.raises(Interrupted):
        train(world, out=tmp_path / "run", stop=lambda: next(asked, True), **FAST | {"epochs": 60})
    run = load_run(tmp_path / "run")
    assert (run.state.status, run.state.epochs) == ("unfinished", 60)
    assert str(run.state) == f"unfinished: epoch {run.state.epoch} of 60"
    assert str(run.state) in str(run)
    with pytest.raises(RelWalkError, match=r"epochs already. Say --epochs \d+ or more"):
        resume(tmp_path / "run", epochs=1)


def test_epochs_that_add_nothing_are_an_error(run: Path) -> None:
    for epochs in (1, 2):
        with pytest.raises(RelWalkError, match=f"with 2 epochs: --epochs {epochs} adds none. Say more than 2"):
            resume(run, epochs=epochs)
    assert load_run(run).state.status == "finished"
    assert resume(run).state.status == "finished"


@pytest.mark.parametrize("line", ["{", "[]", '{"epoch": 1}', '{"epoch": "x", "loss": 1}', "[" * 100_000], ids=len)
def test_a_history_that_is_none_is_refused_by_name(run: Path, line: str) -> None:
    (run / "history.jsonl").write_text(line + "\n")
    with pytest.raises(RunError, match=r"history\.jsonl is not the history of a training"):
        _history(load_run(run))


def test_a_run_of_the_first_format_is_read_and_written_as_the_newest(run: Path) -> None:
    record = json.loads((run / RECORD).read_text())
    for name in ("changes", "reason"):
        del record[name]
    del record["model"]["listed"]
    objectives = {"sampler": "uniform", "negatives": 100, "eta": math.e, "plateau_factor": 0.5, "plateau_patience": 1}
    record["training"] = load_run(run).record.training.flat() | objectives  # all that there were, used or not
    tensors, scores = load_file(run / WEIGHTS), load_run(run).model.vectors()
    save_file({name.removesuffix(".weight"): tensor for name, tensor in tensors.items()}, run / WEIGHTS)
    files = record["files"] | {WEIGHTS: sha256(run / WEIGHTS)}
    (run / RECORD).write_text(json.dumps(record | {"version": 1, "files": files}))
    assert load_run(run).state.status == "finished"
    assert torch.equal(load_run(run).model.vectors(), scores)
    resume(run, epochs=3)
    assert json.loads((run / RECORD).read_text())["version"] == RUN_FORMAT
