"""The smallest compression that loses at most so much: a staircase over sizes of relations and of entities.

What is chosen as the smallest that passes on valid has had luck there. So what counts is the loss on valid plus what
its own sampling error allows for, at 95%: then the loss on other triples of the graph is seldom above the limit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from relwalk.errors import GraphError, RelWalkError
from relwalk.evaluation.metrics import Floats
from relwalk.evaluation.ranking import rank
from relwalk.evaluation.result import RankingResult
from relwalk.graph.answers import SIDES
from relwalk.graph.graph import Graph
from relwalk.models.base import Scorer
from relwalk.models.compressed import Compression, best_method, blocks_of, has_diagonal, has_matrices, held_bytes
from relwalk.models.compressor import Compressor
from relwalk.progress import OnProgress, silent

RANKS = (1 / 32, 1 / 16, 3 / 32, 1 / 8, 3 / 16, 1 / 4, 3 / 8, 1 / 2, 3 / 4, 1)  # shares of d
CODES = (1 / 8, 3 / 16, 1 / 4, 5 / 16, 3 / 8, 7 / 16, 1 / 2)  # bytes of a vector, as shares of d
CAUTION = 1.645  # standard errors: one-sided 95%
SAMPLE = 2000  # triples of valid that a step is tried on; all of valid has the last word


class Fixed(NamedTuple):
    """What a compression must have; None: whatever serves."""

    method: str | None = None
    around: str | None = None
    precision: str | None = None
    entities: str | None = None
    rank: int | None = None
    code_bytes: int | None = None


Step = dict[str, Any]  # some fields of a Compression


def smallest_that_keeps(
    compressor: Compressor, graph: Graph, fixed: Fixed, keep: float, on_progress: OnProgress = silent
) -> Compression:
    """The smallest compression of a model whose MRR is at most `keep` below the model's own, judged on valid."""
    if len(graph.valid) == 0:
        raise GraphError(f"graph {graph.name!r} has no valid triples to choose by. Give it a valid split, or a rank.")
    relations, entities = relation_steps(compressor.model, fixed), entity_steps(compressor.model, fixed)
    some = graph.valid[np.random.default_rng(0).permutation(len(graph.valid))[:SAMPLE]]
    bar = rank(compressor.model, graph, "valid", triples=some).mrr - keep
    found, tried, total = [], 0, len(relations) + len(entities)
    place = 0
    # Entities from the largest to the smallest: the smaller they are, the more relations must keep.
    for codes in reversed(entities):
        while place < len(relations):
            if (how := Compression(**relations[place], **codes)) == Compression():
                break  # nothing is compressed
            on_progress(tried, total, f"trying {how}")
            tried += 1
            if rank(compressor(how), graph, "valid", triples=some).mrr >= bar:
                # One size more beside each: what passes by a little here may fail on all of valid.
                near = (Compression(**step, **codes) for step in relations[place : place + 2])
                found += [(held_bytes(compressor(near_by)), near_by) for near_by in near if near_by != Compression()]
                break
            place += 1
    whole = rank(compressor.model, graph, "valid")
    for _, how in sorted(found, key=lambda pair: pair[0]):
        on_progress(tried, total, f"checking {how}")
        if cautious_loss(whole, rank(compressor(how), graph, "valid")) <= keep:
            return how
    raise RelWalkError(
        f"nothing smaller loses at most {keep:g} of the MRR {whole.mrr:.4f} on valid, the sampling error of its "
        f"{len(graph.valid):,} triples allowed for. Allow more with keep."
    )


def cautious_loss(before: RankingResult, after: RankingResult) -> float:
    """How much MRR is lost between two rankings of the same triples, at most, with 95% confidence."""
    lost = _reciprocal_ranks(before) - _reciprocal_ranks(after)
    return float(lost.mean() + CAUTION * lost.std() / math.sqrt(len(lost)))


def _reciprocal_ranks(ranking: RankingResult) -> Floats:
    """Of each triple, the mean of both sides: they are no two independent questions.  # (triples,)"""
    by_side = [1 / ranking.ranks[side].by_rule("realistic") for side in SIDES]
    return np.asarray(np.mean(by_side, axis=0))


def relation_steps(model: Scorer, fixed: Fixed) -> list[Step]:
    """Compressions of the relations, the smallest first; none of it is the last, unless one is asked for."""
    if fixed.method == "lossless":
        return [{"method": "lossless"}]
    asked = any(value is not None for value in (fixed.method, fixed.around, fixed.precision, fixed.rank))
    if not asked and not has_matrices(model):
        return [{}]
    # Less is left for K components around signs than around the identity: Σ(|r_ii| - 1)² <= Σ(r_ii - 1)².
    around = fixed.around or ("signs" if has_diagonal(model) else "identity")
    method = fixed.method or best_method(model)
    kind = {"method": method, "around": around, "precision": fixed.precision or "int8"}
    blocks = blocks_of(model)
    ranks = [fixed.rank] if fixed.rank is not None else [blocks * k for k in _shares(RANKS, model.dim // blocks)]
    steps = [kind | {"rank": k} for k in ranks]
    return steps if asked else [*steps, {}]


def entity_steps(model: Scorer, fixed: Fixed) -> list[Step]:
    """The same of the entities."""
    if fixed.code_bytes is not None:
        return [{"entities": "pq", "code_bytes": fixed.code_bytes}]
    coded = [{"entities": "pq", "code_bytes": size} for size in _shares(CODES, model.dim)]
    if fixed.entities is not None:
        return coded if fixed.entities == "pq" else [{"entities": fixed.entities}]
    return [*coded, {"entities": "int8"}, {"entities": "float16"}, {}]


def _shares(shares: Sequence[float], dim: int) -> list[int]:
    return sorted({max(1, round(share * dim)) for share in shares})
