"""PyKEEN's side of every system that both have: the same scores from the same weights, a training step, a ranking.

The interaction of PyKEEN (`pykeen.nn.modules`) gets our weights, and its scores are held against ours. For the clock
its own loops run, `SLCWATrainingLoop` with the margin loss and `RankBasedEvaluator`, on a model of the same dimension.
It gets what speaks for it, as in pykeen_peer.py: no progress bar, no regulariser, no pinned memory, and for ranking the
fastest of several batch sizes.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import torch
from process import emit
from pykeen import models as peers
from pykeen.losses import MarginRankingLoss
from pykeen.nn import modules
from pykeen.regularizers import NoRegularizer
from pykeen.training import SLCWATrainingLoop
from pykeen_peer import Enough, StepClock, evaluate
from torch import Tensor

from relwalk.models import Scorer
from relwalk.testing import Case, make_case

logging.disable(logging.WARNING)
FEW = 4  # triples whose ranking costs little more than what is done once
BATCHES = (8, 32)


class Peer(NamedTuple):
    """A system of PyKEEN: how its model is built, and its scores of triples from our weights."""

    build: Callable[[int], tuple[type, dict[str, Any]]]  # by dimension: class and options
    score: Callable[[Any, Tensor, Tensor, Tensor], Tensor]  # our model, heads, relations, tails
    options: Mapping[str, Any] = MappingProxyType({})  # of ours, so that both mean the same


def complex_numbers(x: Tensor) -> Tensor:
    """Ours hold all real parts first, then all imaginary ones."""
    return torch.complex(*x.chunk(2, -1))


def transe(norm: int, squared: bool) -> Callable[[Any, Tensor, Tensor, Tensor], Tensor]:
    distance = modules.TransEInteraction(p=norm, power_norm=squared)
    return lambda m, h, r, t: distance(h=m.entity(h), r=m.relation[r], t=m.entity(t))


def transd(m: Any, h: Tensor, r: Tensor, t: Tensor) -> Tensor:
    both = {"h": (m.entity(h), m.entity_projection(h)), "t": (m.entity(t), m.entity_projection(t))}
    return modules.TransDInteraction()(r=(m.relation[r], m.relation_projection[r]), **both)


def transr(m: Any, h: Tensor, r: Tensor, t: Tensor) -> Tensor:
    return modules.TransRInteraction(p=2)(h=m.entity(h), r=(m.relation[r], m.projection[r]), t=m.entity(t))


def structured(m: Any, h: Tensor, r: Tensor, t: Tensor) -> Tensor:
    return modules.SEInteraction(p=1)(h=m.entity(h), r=(m.R1[r], m.R2[r]), t=m.entity(t))


def ntn(m: Any, h: Tensor, r: Tensor, t: Tensor) -> Tensor:
    weights = (m.W[r], m.V_head[r], m.V_tail[r], m.b[r], m.u[r])
    return modules.NTNInteraction(activation=torch.nn.Tanh)(h=m.entity(h), r=weights, t=m.entity(t))


def complex_(m: Any, h: Tensor, r: Tensor, t: Tensor) -> Tensor:
    x, w, y = (complex_numbers(part) for part in (m.entity(h), m.relation[r], m.entity(t)))
    return modules.ComplExInteraction()(h=x, r=w, t=y)


def rotate(m: Any, h: Tensor, r: Tensor, t: Tensor) -> Tensor:
    turned = torch.polar(torch.ones_like(m.angle[r]), m.angle[r])
    return modules.RotatEInteraction()(h=complex_numbers(m.entity(h)), r=turned, t=complex_numbers(m.entity(t)))


def cp(m: Any, h: Tensor, r: Tensor, t: Tensor) -> Tensor:
    parts = (m.head(h), m.relation[r], m.tail(t))
    return modules.CPInteraction()(**{name: x.unsqueeze(-2) for name, x in zip("hrt", parts, strict=True)})


def bilinear(interaction: type) -> Callable[[Any, Tensor, Tensor, Tensor], Tensor]:
    def score(m: Any, h: Tensor, r: Tensor, t: Tensor) -> Tensor:
        relation = m.M if hasattr(m, "M") else m.relation
        found: Tensor = interaction()(h=m.entity(h), r=relation[r], t=m.entity(t))
        return found

    return score


def tucker(m: Any, h: Tensor, r: Tensor, t: Tensor) -> Tensor:
    theirs = modules.TuckERInteraction(embedding_dim=m.dim, relation_dim=m.relation.shape[1]).eval()
    with torch.no_grad():
        theirs.core_tensor.copy_(m.core.transpose(0, 1))  # ours (relation, head, tail), theirs (head, relation, tail)
    copy_norm(m.input_norm, theirs.head_batch_norm)
    copy_norm(m.hidden_norm, theirs.head_relation_batch_norm)
    found: Tensor = theirs(h=m.entity(h), r=m.relation[r], t=m.entity(t))
    return found


def conve(m: Any, h: Tensor, r: Tensor, t: Tensor) -> Tensor:
    theirs = modules.ConvEInteraction(
        embedding_dim=m.dim,
        embedding_height=m.height,
        embedding_width=m.width,
        output_channels=len(m.filters),
        kernel_height=m.filters.shape[2],
        kernel_width=m.filters.shape[3],
    ).eval()
    layers = [layer for part in (theirs.hr2d, theirs.hr1d) for layer in part]
    norms = iter((m.image_norm, m.map_norm, m.hidden_norm))
    with torch.no_grad():
        for layer in layers:
            if isinstance(layer, torch.nn.Conv2d):
                layer.weight.copy_(m.filters)
                layer.bias.zero_()
            elif isinstance(layer, torch.nn.Linear):
                layer.weight.copy_(m.hidden.T)
                layer.bias.zero_()
            elif isinstance(layer, torch.nn.modules.batchnorm._BatchNorm):
                copy_norm(next(norms), layer)
    found: Tensor = theirs(h=m.entity(h), r=m.relation[r], t=(m.entity(t), m.bias(t).squeeze(-1)))
    return found


def copy_norm(ours: Any, theirs: Any) -> None:
    """The line that a batch norm is in evaluation."""
    theirs.load_state_dict({**theirs.state_dict(), **ours.state_dict()})


def plain(name: str, **options: Any) -> Callable[[int], tuple[type, dict[str, Any]]]:
    return lambda dim: (getattr(peers, name), {"embedding_dim": dim, **options})


PEERS: dict[str, Peer] = {
    "unstructured": Peer(
        plain("UM"), lambda m, h, r, t: modules.UMInteraction(p=2)(h=m.entity(h), r=(), t=m.entity(t))
    ),
    "structured": Peer(plain("SE", scoring_fct_norm=1), structured),
    "transe": Peer(plain("TransE", scoring_fct_norm=2), transe(2, squared=True)),
    "transe-l1": Peer(plain("TransE", scoring_fct_norm=1), transe(1, squared=False), {"distance": "l1"}),
    "transd": Peer(lambda dim: (peers.TransD, {"embedding_dim": dim, "relation_dim": dim}), transd),
    "transr": Peer(lambda dim: (peers.TransR, {"embedding_dim": dim, "relation_dim": dim}), transr),
    "ntn": Peer(plain("NTN", num_slices=4, non_linearity=torch.nn.Tanh()), ntn),
    "rescal": Peer(plain("RESCAL", regularizer=NoRegularizer()), bilinear(modules.RESCALInteraction)),
    "distmult": Peer(plain("DistMult", regularizer=NoRegularizer()), bilinear(modules.DistMultInteraction)),
    "complex": Peer(lambda dim: (peers.ComplEx, {"embedding_dim": dim // 2, "regularizer": NoRegularizer()}), complex_),
    "conve": Peer(plain("ConvE"), conve, {"reciprocal": False}),
    "cp": Peer(plain("CP", rank=1), cp),
    "rotate": Peer(lambda dim: (peers.RotatE, {"embedding_dim": dim // 2}), rotate),
    "tucker": Peer(
        lambda dim: (peers.TuckER, {"embedding_dim": dim, "relation_dim": dim}), tucker, {"reciprocal": False}
    ),
}


def agree(arguments: argparse.Namespace) -> None:
    """The largest difference of scores from the same weights, beside the largest score."""
    peer = PEERS[arguments.model]
    case: Case = make_case(arguments.model.split("-")[0], 16, peer.options)
    ours: Scorer = case.model
    ours.constrain()
    with torch.no_grad():
        expected = peer.score(ours, case.heads, case.relations, case.tails)
        found = ours.score(case.heads, case.relations, case.tails)
    emit({"difference": float((found - expected).abs().max()), "largest": float(expected.abs().max())})


def train(arguments: argparse.Namespace) -> None:
    factory, _ = load(arguments.data)
    model = build(arguments.model, arguments.dim, factory)
    clock = StepClock(arguments.warmup + arguments.steps)
    optimizer = torch.optim.Adagrad(model.get_grad_params(), lr=0.1)
    loop = SLCWATrainingLoop(
        model=model,
        triples_factory=factory,
        optimizer=optimizer,
        negative_sampler_kwargs={"num_negs_per_pos": arguments.negatives},
        automatic_memory_optimization=False,
    )
    with contextlib.suppress(Enough):
        loop.train(
            factory,
            num_epochs=100,
            batch_size=arguments.batch,
            use_tqdm=False,
            num_workers=0,
            pin_memory=False,
            callbacks=clock,
        )
    emit({"step_seconds": float(np.median(np.diff(clock.stamps)[arguments.warmup :]))})


def rank(arguments: argparse.Namespace) -> None:
    """Seconds for the whole test set, scaled from a part of it by a straight line."""
    factory, parts = load(arguments.data)
    model, test = build(arguments.model, arguments.dim, factory), parts["test"]
    known = torch.cat([parts["train"], parts["valid"], test])
    part = test[torch.randperm(len(test), generator=torch.Generator().manual_seed(0))[: arguments.triples]]
    _seconds(model, part[:FEW], known, FEW)  # what happens only once in a process
    fixed = _seconds(model, part[:FEW], known, FEW)
    slopes = {size: (_seconds(model, part, known, size) - fixed) / (len(part) - FEW) for size in BATCHES}
    best = min(slopes, key=lambda size: slopes[size])
    emit({"seconds": fixed + max(slopes[best], 0.0) * (len(test) - FEW), "batch_size": best, "measured": len(part)})


def _seconds(model: Any, triples: Tensor, known: Tensor, batch: int) -> float:
    started = time.perf_counter()
    evaluate(model, triples, known, batch)
    return time.perf_counter() - started


def load(path: Path) -> tuple[Any, dict[str, Tensor]]:
    from pykeen.triples import CoreTriplesFactory

    arrays = np.load(path)
    parts = {name: torch.from_numpy(arrays[name].astype(np.int64)) for name in ("train", "valid", "test")}
    entities, relations = (int(n) for n in arrays["sizes"])
    return CoreTriplesFactory(parts["train"], num_entities=entities, num_relations=relations), parts


def build(name: str, dim: int, factory: Any) -> Any:
    kind, options = PEERS[name].build(dim)
    return kind(triples_factory=factory, loss=MarginRankingLoss(), random_seed=0, **options)


WORK = {"agree": agree, "train": train, "rank": rank}


def main() -> None:
    parser = argparse.ArgumentParser(description="PyKEEN's side of every system that both have")
    parser.add_argument("work", choices=WORK)
    parser.add_argument("--model", choices=PEERS, required=True)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--negatives", type=int, default=16)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--triples", type=int, default=36)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    WORK[arguments.work](arguments)


if __name__ == "__main__":
    main()
