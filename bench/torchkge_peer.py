"""TorchKGE's side: filtered ranking by its `LinkPredictionEvaluator`.

RESCAL at the same dimension. Its dictionaries of known answers are made once from all triples (a Python loop, timed
apart as `prepare_seconds` and not counted), then a random part of test is ranked with the fastest of several batch
sizes and scaled to the whole.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from process import emit
from torchkge import KnowledgeGraph, LinkPredictionEvaluator, RESCALModel


def load(path: Path) -> tuple[KnowledgeGraph, torch.Tensor]:
    """All triples as a graph that knows the answers, and those of test."""
    arrays = np.load(path)
    entities, relations = (int(n) for n in arrays["sizes"])
    triples = torch.from_numpy(np.concatenate([arrays[n] for n in ("train", "valid", "test")]).astype(np.int64))
    columns = {"heads": triples[:, 0], "relations": triples[:, 1], "tails": triples[:, 2]}
    graph = KnowledgeGraph(kg=columns, ent2ix={i: i for i in range(entities)}, rel2ix={i: i for i in range(relations)})
    return graph, torch.from_numpy(arrays["test"].astype(np.int64))


def part_of(graph: KnowledgeGraph, triples: torch.Tensor) -> KnowledgeGraph:
    """Some triples, with the known answers of the whole graph."""
    return KnowledgeGraph(
        kg={"heads": triples[:, 0], "relations": triples[:, 1], "tails": triples[:, 2]},
        ent2ix=graph.ent2ix,
        rel2ix=graph.rel2ix,
        dict_of_heads=graph.dict_of_heads,
        dict_of_tails=graph.dict_of_tails,
        dict_of_rels=graph.dict_of_rels,
    )


def seconds_each(model: RESCALModel, graph: KnowledgeGraph, batch: int) -> float:
    """Seconds a triple, both sides."""
    started = time.perf_counter()
    with torch.inference_mode():
        LinkPredictionEvaluator(model, graph).evaluate(b_size=batch, verbose=False)
    return (time.perf_counter() - started) / graph.n_facts


def rank(arguments: argparse.Namespace) -> None:
    started = time.perf_counter()
    graph, test = load(arguments.data)
    prepared = time.perf_counter() - started
    torch.manual_seed(0)
    model = RESCALModel(arguments.dim, graph.n_ent, graph.n_rel)
    order = torch.randperm(len(test), generator=torch.Generator().manual_seed(0))
    part = test[order[: arguments.triples]]
    trial = part_of(graph, part[: max(arguments.batches)])
    tried = {batch: seconds_each(model, trial, batch) for batch in arguments.batches}
    batch = min(tried, key=lambda size: tried[size])
    each = seconds_each(model, part_of(graph, part), batch)
    emit(
        {
            "measured_triples": len(part),
            "scaled_to": len(test),
            "batch_size": batch,
            "seconds_by_batch_size": {str(size): seconds * len(test) for size, seconds in tried.items()},
            "prepare_seconds": prepared,
            "seconds": each * len(test),
        }
    )


def baseline(_: argparse.Namespace) -> None:
    emit({})


WORK = {"rank": rank, "baseline": baseline}


def main() -> None:
    parser = argparse.ArgumentParser(description="TorchKGE's side of the benchmark")
    parser.add_argument("work", choices=WORK)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--dim", type=int, default=100)
    parser.add_argument("--triples", type=int, default=128)
    parser.add_argument("--batches", type=int, nargs="+", default=[4, 16])
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    WORK[arguments.work](arguments)


if __name__ == "__main__":
    main()
