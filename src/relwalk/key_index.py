"""An index over the keys of all entities: which of a million can be among the best, without a look at each number.

A score is a product of a query and a key, and a bias is one of its coordinates, so the greatest inner products are all
that is looked for. Keys are cut into pairs of coordinates and kept as half a byte a pair (product quantisation, scanned
in registers by faiss: André, Kermarrec, Le Scouarnec, PAMI 2021). The best by codes are a short list, which the model
itself scores. Every code is looked at, so that recall does not hang on how the entities lie.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save
from torch import Tensor

from relwalk.errors import RelWalkError
from relwalk.files import write_atomically
from relwalk.graph.answers import SIDES, Side
from relwalk.models.base import ProductScorer, Scorer, as_product

FILE = "index.safetensors"
BITS = 4  # of a code
PAIR = 2  # coordinates of a part
SAMPLE = 1 << 16  # keys that the centroids are learned from
BLOCK = 1 << 16  # keys encoded at a time
SHORT = 1 << 12  # entities of a short list
Codes = Mapping[str, NDArray[Any]]  # codes and centroids of one side


@dataclass(frozen=True, eq=False)
class KeyIndex:
    """`search` finds short lists. A side that shares its keys with the other shares its index."""

    sides: Mapping[Side, Any]  # faiss.IndexPQFastScan
    short: int = SHORT
    made: dict[Any, Any] = field(default_factory=dict)  # what its user makes once: the keys of a sample

    def search(self, side: Side, queries: Tensor, count: int) -> Tensor:
        """The entities with the greatest products by codes, in no certain order; -1 where there are no more.

        # (queries, count)
        """
        own = self.sides[side]
        rows = np.zeros((len(queries), own.d), np.float32)
        rows[:, : queries.shape[1]] = queries.detach().cpu().numpy()
        return torch.from_numpy(own.search(rows, min(count, own.ntotal))[1]).to(queries.device)


def find_faiss() -> Any:
    """faiss, which comes with an extra."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of the types that SWIG makes
            import faiss
    except ImportError as error:
        raise RelWalkError(
            f"an index is made by faiss, which cannot be imported here ({error}). "
            "Install it: pip install 'relwalk[index]', or leave out --index."
        ) from error
    return faiss


def indexable(model: Scorer) -> ProductScorer:
    """The model, if all questions of a side are about the same keys."""
    product = as_product(model)
    if product is None or not all(product.shares_keys(side) for side in SIDES):
        raise RelWalkError(
            f"{model.title} has no keys that all relations share, and an index is made of those. Leave out --index."
        )
    return product


@torch.inference_mode()
def make_codes(model: Scorer) -> dict[Side, Codes]:
    """The codes of all keys, of each side that has its own."""
    faiss, product = find_faiss(), indexable(model)
    return {side: _codes(faiss, product, side) for side in (SIDES if product.keys_by_side else SIDES[1:])}


def _codes(faiss: Any, model: ProductScorer, side: Side) -> Codes:
    order = torch.randperm(model.entities, generator=torch.Generator().manual_seed(0))[:SAMPLE]
    sample = _even(model.keys(side, order.to(model.device)))
    index = faiss.IndexPQ(sample.shape[1], sample.shape[1] // PAIR, BITS, faiss.METRIC_INNER_PRODUCT)
    index.train(sample)
    for start in range(0, model.entities, BLOCK):
        rows = torch.arange(start, min(start + BLOCK, model.entities), device=model.device)
        index.add(_even(model.keys(side, rows)))
    codes = faiss.vector_to_array(index.codes).reshape(model.entities, -1)
    return {"codes": codes, "centroids": faiss.vector_to_array(index.pq.centroids)}


def _even(keys: Tensor) -> NDArray[np.float32]:
    """With as many coordinates as make whole pairs."""
    rows = keys.float().cpu().numpy()
    return np.ascontiguousarray(np.pad(rows, ((0, 0), (0, rows.shape[1] % PAIR))))


def index_of(codes: Mapping[Side, Codes], short: int = SHORT) -> KeyIndex:
    """What searches in codes."""
    faiss = find_faiss()

    def made(own: Codes) -> Any:
        width = own["centroids"].size >> BITS
        index = faiss.IndexPQ(width, width // PAIR, BITS, faiss.METRIC_INNER_PRODUCT)
        faiss.copy_array_to_vector(np.ascontiguousarray(own["centroids"]), index.pq.centroids)
        faiss.copy_array_to_vector(np.ascontiguousarray(own["codes"]).reshape(-1), index.codes)
        index.ntotal, index.is_trained = len(own["codes"]), True
        return faiss.IndexPQFastScan(index)

    found = {side: made(own) for side, own in codes.items()}
    return KeyIndex({side: found.get(side, found["tail"]) for side in SIDES}, short)


def save_codes(folder: Path, codes: Mapping[Side, Codes], fingerprint: str) -> None:
    tensors = {f"{side}/{name}": array for side, own in codes.items() for name, array in own.items()}
    write_atomically(folder / FILE, save(tensors, {"run": fingerprint}))


def load_codes(folder: Path, fingerprint: str, model: Scorer) -> dict[Side, Codes] | None:
    """The codes that are kept with a run, if they are of this very run and fit its model."""
    path, product = folder / FILE, indexable(model)
    if not path.is_file():
        return None
    width = product.keys("tail", torch.zeros(1, dtype=torch.long, device=model.device)).shape[1]
    parts = -(-width // PAIR)
    wanted: dict[str, tuple[tuple[int, ...], Any]] = {
        "codes": ((model.entities, -(-parts * BITS // 8)), np.uint8),
        "centroids": ((parts * PAIR << BITS,), np.float32),
    }
    sides: tuple[Side, ...] = SIDES if product.keys_by_side else SIDES[1:]
    try:
        with safe_open(path, "numpy") as file:
            if (file.metadata() or {}).get("run") != fingerprint:
                return None
            found: dict[Side, Codes] = {
                side: {name: file.get_tensor(f"{side}/{name}") for name in wanted} for side in sides
            }
    except (SafetensorError, OSError, ValueError):
        return None
    fits = all((own[n].shape, own[n].dtype) == (s, d) for own in found.values() for n, (s, d) in wanted.items())
    return found if fits else None


def open_index(folder: Path, fingerprint: str, model: Scorer) -> KeyIndex:
    """The index of a run: kept with it, made once where it is not."""
    codes = load_codes(folder, fingerprint, model)
    if codes is None:
        codes = make_codes(model)
        with suppress(OSError):  # a folder that cannot be written to: it is made again the next time
            save_codes(folder, codes, fingerprint)
    return index_of(codes)
