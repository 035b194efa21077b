"""A large file of triples to read: names like those of Freebase, most of them rare.

Heads and tails follow a power law over one name for every ten lines, relations over 500. Written in pieces, so that
twenty million lines need no more memory than two.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

PIECE = 200_000
RELATIONS = 500
DIGITS = np.array(list("0123456789bcdfghjklmnpqrstvwxyz_"))  # 32 of them, as in the names of Freebase


def names(ids: np.ndarray) -> list[str]:
    """/m/0 and five digits of base 32; a multiplication by an odd number scatters neighbours."""
    scattered = (ids.astype(np.int64) * 20_077_853) % 32**5
    places = np.stack([(scattered >> (5 * place)) % 32 for place in range(5)], axis=1)
    return ["/m/0" + "".join(row) for row in DIGITS[places].tolist()]


def write(path: Path, lines: int, seed: int = 0) -> None:
    rng = np.random.default_rng(seed)
    entities = max(1000, lines // 10)
    pool = np.array(names(np.arange(entities)))
    relations = np.array([f"/domain_{i % 40}/type_{i % 170}/property_{i}" for i in range(RELATIONS)])
    with path.open("w") as out:
        for start in range(0, lines, PIECE):
            count = min(PIECE, lines - start)
            ends = (entities * rng.random((2, count)) ** 2).astype(np.int64)
            kinds = (RELATIONS * rng.random(count) ** 2).astype(np.int64)
            rows = zip(pool[ends[0]].tolist(), relations[kinds].tolist(), pool[ends[1]].tolist(), strict=True)
            out.write("\n".join("\t".join(row) for row in rows) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description="Write a synthetic file of triples")
    parser.add_argument("path", type=Path)
    parser.add_argument("--lines", type=int, default=2_000_000)
    arguments = parser.parse_args()
    write(arguments.path, arguments.lines)


if __name__ == "__main__":
    main()
