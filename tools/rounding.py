"""What bfloat16 products cost in MRR, measured on a machine that has none: the same training with rounded numbers.

    python tools/rounding.py fb15k-237 --epochs 30 --out runs/rounded
    relwalk train fb15k-237 --epochs 30 --precision float32      # what to compare with, same seed

A bfloat16 product multiplies rounded operands, adds up in float32 and rounds what it puts out. Here the fused softmax
does that in float32 arithmetic, rounding wherever `--precision bfloat16` would, so only the speed is not that of a unit
for it.
"""

from __future__ import annotations

import argparse

import torch
from torch import Tensor

from relwalk import rank, train
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graph")
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--dim", type=int)
    parser.add_argument("--out", required=True, help="the run's folder")
    arguments = parser.parse_args()
    with_rounding()
    run = train(arguments.graph, dim=arguments.dim, epochs=arguments.epochs, precision="float32", out=arguments.out)
    print(rank(run.model, run.graph, "test"))


if __name__ == "__main__":
    main()
