"""Changes to a run whose checksums are made to fit, so that they reach what lies behind the checksums."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from random import Random
from typing import Any

import torch
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from relwalk.runs.checkpoint import digest_of
from tools.campaign.mutations import BYTES, LINES
from tools.campaign.place import Place
from tools.campaign.tree import Odd, Tree

# The files of a run, as the README has them.
RECORD, WEIGHTS, GRAPH = "run.json", "weights.safetensors", "graph.safetensors"
ENTITIES, RELATIONS, HISTORY, CHECKPOINT = "entities.tsv", "relations.tsv", "history.jsonl", "checkpoint.safetensors"

NESTED: Any = json.loads("[" * 900 + "]" * 900)
VALUES: list[Any] = [
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    3.5,
    1e308,
    -0.0,
    2**31,
    2**63,
    10**9,
    10**6,
    10**400,
    "",
    "1",
    "x" * 5000,
]
VALUES += [
    float("nan"),
    float("inf"),
    [],
    {},
    [1],
    {"a": 1},
    NESTED,
    "finished",
    "training",
    "\x1b[31m",
    "\ud800",
    "relwalk",
]
VALUES += ["transe", "complex", "../..", "likelihood", "softmax", "adam", "float32", "bfloat16", [[0.5]], {"files": {}}]
COSTLY = ("epochs", "negatives", "batch_size", "batches", "candidates_per_step", "dim", "threads", "patience")
MUCH = 10_000


def _bytes(content: bytes | Odd) -> bytes:
    return content if isinstance(content, bytes) else b""


def _record_of(tree: Tree) -> Any:
    try:
        return json.loads(_bytes(tree.get(RECORD, b"")))
    except (ValueError, RecursionError):
        return {}


def asks_for_much(tree: Tree) -> bool:
    """Whether a record asks, well-formed, for a training that nobody could wait for."""
    training = _record_of(tree)
    training = training.get("training") if isinstance(training, dict) else None
    if not isinstance(training, dict):
        return False
    parts = [training, *(part for part in training.values() if isinstance(part, dict))]  # of objective and schedule
    return any(isinstance(part.get(name), int | float) and part[name] > MUCH for part in parts for name in COSTLY)


def record(rng: Random, tree: Tree, place: Place) -> Tree:
    """A value of run.json replaced, removed, added, or nested too deep for a reader that recurses."""
    if rng.random() < 0.05:
        place.say("nested deep")
        depth = rng.choice([1_000, 100_000])
        return tree | {RECORD: rng.choice([b"[" * depth, b'{"format":' * depth, b"[" * depth + b"]" * depth])}
    content = _record_of(tree)
    if not isinstance(content, dict) or not content:
        return tree
    _change_somewhere(rng, content, place)
    return tree | {RECORD: json.dumps(content, indent=2).encode("utf-8", "replace")}


def _change_somewhere(rng: Random, content: dict[str, Any], place: Place) -> None:
    """Walk down to some value, and change it."""
    if not content:  # an earlier change took all
        return
    path = [rng.choice(list(content))]
    while isinstance(content[path[-1]], dict) and content[path[-1]] and rng.random() < 0.9:
        content = content[path[-1]]
        path.append(rng.choice(list(content)))
    name = path[-1]
    match rng.choice(["replace", "replace", "replace", "replace", "remove", "add"]):
        case "replace":
            content[name] = rng.choice(VALUES)
            place.say(f"{'.'.join(path)} = {_shown(content[name])}")
        case "remove":
            del content[name]
            place.say(f"no {'.'.join(path)}")
        case "add":
            content[rng.choice(["extra", "dim", "seed", ""])] = rng.choice(VALUES)
            place.say(f"more beside {'.'.join(path)}")


def _shown(value: Any) -> str:
    return "nested lists" if value is NESTED else repr(value)[:40]


def signed(tree: Tree, *names: str) -> Tree:
    """The record vouches for these files as they are now."""
    content = _record_of(tree)
    files = content.get("files") if isinstance(content, dict) else None
    if not isinstance(files, dict):
        return tree
    for name in names:
        files[name] = hashlib.sha256(_bytes(tree.get(name, b""))).hexdigest()
    return tree | {RECORD: json.dumps(content, indent=2).encode("utf-8", "replace")}


def names(rng: Random, tree: Tree, place: Place) -> Tree:
    """Other bytes in a list of names: a line without a tab, ids out of order, names twice."""
    name, kinds = rng.choice([ENTITIES, RELATIONS]), BYTES | LINES
    how = rng.choice(list(kinds))
    place.say(f"{how} in {name}, signed")
    return signed(tree | {name: kinds[how](rng, _bytes(tree.get(name, b"")))}, name)


def graph(rng: Random, tree: Tree, place: Place) -> Tree:
    return _tensor_file(rng, tree, place, GRAPH)


def weights(rng: Random, tree: Tree, place: Place) -> Tree:
    return _tensor_file(rng, tree, place, WEIGHTS)


def _tensor_file(rng: Random, tree: Tree, place: Place, name: str) -> Tree:
    content = _bytes(tree.get(name, b""))
    if rng.random() < 0.3:
        how = rng.choice(list(BYTES))
        place.say(f"{how} in {name}, signed")
        return signed(tree | {name: BYTES[how](rng, content)}, name)
    tensors = tensors_of(content)
    return signed(tree | {name: save_tensors(_other(rng, tensors, place))}, name) if tensors else tree


def checkpoint(rng: Random, tree: Tree, place: Place) -> Tree:
    """Other tensors in the checkpoint, whose own digest is made to fit."""
    content = _bytes(tree.get(CHECKPOINT, b""))
    tensors, metadata = tensors_of(content), metadata_of(content)
    return tree | {CHECKPOINT: sealed(_other(rng, tensors, place), metadata)} if tensors else tree


def progress(rng: Random, tree: Tree, place: Place) -> Tree:
    """Another value in what the header of the checkpoint says of itself."""
    content = _bytes(tree.get(CHECKPOINT, b""))
    tensors, metadata = tensors_of(content), metadata_of(content)
    keys = [name for name in metadata if name != "digest"]
    if not tensors or not keys:  # an earlier change took them
        return tree
    key = rng.choice(keys)
    content = json.loads(metadata[key])
    if isinstance(content, dict) and rng.random() < 0.8:
        _change_somewhere(rng, content, place)
    else:
        content = rng.choice(VALUES)
    text = json.dumps(content).encode("utf-8", "replace").decode()
    return tree | {CHECKPOINT: sealed(tensors, metadata | {key: text})}


def sealed(tensors: dict[str, Tensor], metadata: dict[str, str]) -> bytes:
    """A checkpoint file with a digest that fits."""
    return bytes(save_tensors(tensors, metadata | {"digest": digest_of(tensors, metadata)}))


def tensors_of(content: bytes) -> dict[str, Tensor]:
    """The tensors of a safetensors file; none when it is damaged already."""
    try:
        return dict(load_tensors(content))
    except Exception:
        return {}


def metadata_of(content: bytes) -> dict[str, str]:
    """The words of a safetensors header, which its length precedes."""
    try:
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        return dict(header["__metadata__"])
    except (ValueError, KeyError, TypeError):
        return {"progress": "{}"}


def _other(rng: Random, tensors: dict[str, Tensor], place: Place) -> dict[str, Tensor]:
    """One tensor of another type, shape or content, renamed, left out or added."""
    name = rng.choice(list(tensors))
    how = rng.choice(list(FORGERIES))
    place.say(f"{how}: {name}, signed")
    changed = dict(tensors)
    if how == "renamed":
        changed["x" + name] = changed.pop(name)
    elif how == "left out":
        del changed[name]
    else:
        changed[name] = FORGERIES[how](rng, tensors[name]).contiguous()
    return {key: tensor.clone() for key, tensor in changed.items()}


DTYPES = [torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.int32, torch.int64, torch.bool, torch.uint8]
FORGERIES: dict[str, Callable[[Random, Tensor], Tensor]] = {
    "another type": lambda rng, tensor: tensor.to(rng.choice(DTYPES)),
    "another shape": lambda rng, tensor: torch.zeros(
        [rng.choice([0, 1, 2, 7, side]) for side in tensor.shape], dtype=tensor.dtype
    ),
    "flat": lambda rng, tensor: tensor.reshape(-1),
    "one more axis": lambda rng, tensor: tensor[None],
    "one number": lambda rng, tensor: torch.tensor(1, dtype=tensor.dtype),
    "no numbers": lambda rng, tensor: torch.full_like(tensor, float("nan")) if tensor.is_floating_point() else tensor,
    "huge numbers": lambda rng, tensor: torch.full_like(tensor, 3e38) if tensor.is_floating_point() else tensor + 10**6,
    "negative": lambda rng, tensor: -tensor - 1 if tensor.dtype != torch.bool else tensor,
    "renamed": lambda rng, tensor: tensor,
    "left out": lambda rng, tensor: tensor,
}
