"""What bfloat16 products cost in MRR, measured on a machine that has none: the same training with rounded numbers.

    python tools/rounding.py fb15k-237 --epochs 20 --validate-every 10

A bfloat16 product multiplies rounded operands, adds up in float32 and rounds what it puts out. Here the fused softmax
does that in float32 arithmetic, rounding wherever `--precision bfloat16` would, so only the speed is not that of a unit
for it. Prints the validation figures of both trainings, same seed.
"""

from __future__ import annotations

import argparse
import json

import torch
from torch import Tensor

from relwalk import experiment, read_graph
from relwalk.training import softmax


def rounded(x: Tensor) -> Tensor:
    return x.bfloat16().float()


def fill(tiles: list[Tensor], q: Tensor, e: Tensor) -> Tensor:
    slope = torch.zeros(q.shape)
    for tile, entities in zip(tiles, torch.split(e, tiles[0].shape[1]), strict=True):
        torch.mm(q, entities.T, out=tile)
        tile.copy_(rounded(tile)).exp_()
        tile.copy_(rounded(tile))
        slope += rounded(tile @ entities)
    return slope


def with_rounding() -> None:
    exactly_lengthened, exactly_mm = softmax._lengthened, softmax._mm

    def lengthened(x: Tensor, first: Tensor, second: Tensor, dtype: torch.dtype) -> Tensor:
        return rounded(exactly_lengthened(x, first, second, dtype))

    def mm(a: Tensor, b: Tensor, out: Tensor) -> None:
        exactly_mm(a, rounded(b), out)
        out.copy_(rounded(out))

    softmax._fill, softmax._lengthened, softmax._mm = fill, lengthened, mm


def figures(graph: str, rounding: bool, epochs: int, validate_every: int, dim: int | None) -> dict[int, float]:
    if rounding:
        with_rounding()
    found: dict[int, float] = {}

    class Watch:
        def step(self, *_: object) -> None: ...
        def epoch(self, record: experiment.Any, _: object) -> None:
            if record.metric is not None:
                found[record.epoch] = round(record.metric, 5)
                print("rounded" if rounding else "float32", record.epoch, found[record.epoch], flush=True)

    settings = {"epochs": epochs, "validate_every": validate_every, "precision": "float32"}
    experiment.train(read_graph(graph), dim=dim, observer=Watch(), **settings)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graph")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--validate-every", type=int, default=10)
    parser.add_argument("--dim", type=int)
    arguments = parser.parse_args()
    both = {
        name: figures(arguments.graph, rounding, arguments.epochs, arguments.validate_every, arguments.dim)
        for name, rounding in (("float32", False), ("bfloat16", True))
    }
    print(json.dumps({"graph": arguments.graph, "valid_mrr": both}))


if __name__ == "__main__":
    main()
