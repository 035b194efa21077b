"""Entity tables in fewer bytes: the rows asked for are decoded, the others stay codes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from relwalk.errors import RelWalkError
from relwalk.models.tables import EntityTable

EntityFormat = Literal["float16", "bfloat16", "int8", "pq"]
ROUNDS = 8  # of k-means
SAMPLE = 1 << 13  # rows that k-means looks at: 32 for each of 256 centroids
TINY = 1e-30  # a length to divide by
CENTROIDS = 256  # a code is one byte
DISTANCES = 1 << 22  # numbers held at a time by k-means and by encoding


class CodedTable(EntityTable, ABC):
    """An `EntityTable` of codes. `table(ids)` decodes some rows; `table()` makes all of them, which is for analyses and
    exports: ranking and prediction ask for a block of rows at a time."""

    coded = True

    def __init__(self, codes: Tensor, dim: int) -> None:
        nn.Module.__init__(self)  # an Embedding would want floats that can be trained
        self.num_embeddings, self.embedding_dim, self.sparse = len(codes), dim, False
        self.weight = nn.Parameter(codes, requires_grad=False)

    def forward(self, entities: Tensor | None = None) -> Tensor:
        """(*entities.shape, dim), or (entities, dim), in float32."""
        if entities is None:
            return torch.cat([self.decode(slice(i, j)) for i, j in blocks(self.num_embeddings, self.embedding_dim)])
        return self.decode(entities.flatten()).view(*entities.shape, self.embedding_dim)

    @abstractmethod
    def decode(self, rows: Tensor | slice) -> Tensor:
        """Some rows as numbers.  # (rows, dim)"""


class HalfTable(CodedTable):
    """float16 or bfloat16: two bytes a number."""

    def decode(self, rows: Tensor | slice) -> Tensor:
        return self.weight[rows].float()


class Int8Table(CodedTable):
    """e = scale · codes, with a scale for every row: one byte a number, and two."""

    def __init__(self, codes: Tensor, scale: Tensor) -> None:
        super().__init__(codes, codes.shape[1])
        self.scale = nn.Parameter(scale, requires_grad=False)

    def decode(self, rows: Tensor | slice) -> Tensor:
        return from_int8(self.weight[rows], self.scale[rows])


class ProductTable(CodedTable):
    """Product quantisation (Jégou, Douze, Schmid: PAMI 2011).

    A row is its length times a direction. The direction is cut into parts, and of each part the nearest of 256
    centroids is kept: one byte a part, and two for the length. The length is chosen so that ||e|| is kept exactly but
    for its rounding: RelWalk adds it to the score, and centroids alone would shorten every vector.
    """

    def __init__(self, codes: Tensor, scale: Tensor, centroids: Tensor, dim: int) -> None:
        super().__init__(codes, dim)
        self.scale = nn.Parameter(scale, requires_grad=False)  # (entities, 1)
        self.centroids = nn.Parameter(centroids, requires_grad=False)  # (parts, 256, width)

    def decode(self, rows: Tensor | slice) -> Tensor:
        codes = self.weight[rows]  # (rows, parts)
        parts, _, width = self.centroids.shape
        first = torch.arange(parts, device=codes.device, dtype=torch.int32) * CENTROIDS
        found = F.embedding(codes.int() + first, self.centroids.flatten(0, 1).float())  # (rows, parts, width)
        whole = found.flatten(1)
        if parts * width != self.embedding_dim:
            whole = whole[:, places(self.embedding_dim, parts).flatten().to(codes.device) >= 0]
        return whole * self.scale[rows].float()  # (rows, dim)


def to_int8(x: Tensor) -> tuple[Tensor, Tensor]:
    """Codes from -127 to 127, and the number to multiply each row with.  # (..., n) and (..., 1)"""
    scale = (x.abs().amax(-1, keepdim=True) / 127).clamp_min(TINY).to(torch.bfloat16)  # as far as float32 reaches
    codes = torch.round(x / scale.float()).clamp_(-127, 127)
    return codes.to(torch.int8), scale


def from_int8(codes: Tensor, scale: Tensor) -> Tensor:
    return codes.float().mul_(scale.float())


def blocks(rows: int, numbers: int, most: int = DISTANCES) -> Iterator[tuple[int, int]]:
    """First and last of so many rows at a time as have `most` numbers together."""
    size = max(1, most // max(1, numbers))
    return ((start, min(start + size, rows)) for start in range(0, rows, size))


def half_table(dtype: torch.dtype) -> Callable[[Tensor, int], CodedTable]:
    return lambda rows, _: HalfTable(_finite(rows.to(dtype)), rows.shape[1])


def int8_table(rows: Tensor, _: int) -> CodedTable:
    return Int8Table(*to_int8(rows))


@torch.no_grad()
def product_table(rows: Tensor, parts: int) -> CodedTable:
    """A byte for each of so many parts of a row. The same rows give the same codes."""
    count, dim = rows.shape
    lengths = rows.norm(dim=1, keepdim=True).clamp_min(TINY)
    order = torch.randperm(count, generator=torch.Generator().manual_seed(0))[:SAMPLE].to(rows.device)
    centroids = _k_means(_cut(rows[order] / lengths[order], parts))  # (parts, 256, width)
    centroids = centroids.half().float()
    codes = torch.empty(count, parts, dtype=torch.uint8, device=rows.device)
    for i, j in blocks(count, parts * CENTROIDS):
        codes[i:j] = _nearest(_cut(rows[i:j] / lengths[i:j], parts), centroids).T
    table = ProductTable(codes, torch.ones_like(lengths).half(), centroids.half(), dim)
    for i, j in blocks(count, dim):
        found = table.decode(slice(i, j)).norm(dim=1, keepdim=True).clamp_min(TINY)
        table.scale[i:j] = lengths[i:j] / found
    _finite(table.scale)
    return table


def _finite(numbers: Tensor) -> Tensor:
    if bool(numbers.isfinite().all()):
        return numbers
    raise RelWalkError("the entities have numbers that float16 cannot hold, above 65,504 or not finite. Say int8.")


def places(dim: int, parts: int) -> Tensor:
    """The coordinates of each part, of widths that differ by one at most; -1 fills up the shorter ones.

    (parts, width)
    """
    ends = torch.arange(parts + 1) * dim // parts
    found = ends[:-1].unsqueeze(1) + torch.arange(-(-dim // parts))
    return torch.where(found < ends[1:].unsqueeze(1), found, -1)


def _cut(rows: Tensor, parts: int) -> Tensor:
    """Each row in parts of one width, filled up with zeros.  # (parts, rows, width)"""
    padded = F.pad(rows, (0, 1))  # at -1
    return padded[:, places(rows.shape[1], parts).to(rows.device)].transpose(0, 1).contiguous()


def _k_means(points: Tensor) -> Tensor:
    """The centroids of each part, by Lloyd's rounds from the first points.  # (parts, 256, width)"""
    parts, count, width = points.shape
    centroids = points[:, torch.arange(CENTROIDS, device=points.device) % count].clone()
    for _ in range(ROUNDS):
        nearest = torch.cat([_nearest(points[:, i:j], centroids) for i, j in blocks(count, parts * CENTROIDS)], 1)
        sums = torch.zeros_like(centroids).scatter_add_(1, nearest.unsqueeze(-1).expand(-1, -1, width), points)
        sizes = torch.zeros(parts, CENTROIDS).to(points).scatter_add_(1, nearest, torch.ones_like(points[..., 0]))
        centroids = torch.where(sizes.unsqueeze(-1) > 0, sums / sizes.clamp_min(1).unsqueeze(-1), centroids)
    return centroids


def _nearest(points: Tensor, centroids: Tensor) -> Tensor:
    """The nearest centroid of each point, by ||c||² - 2 c·x.  # (parts, points)"""
    return torch.baddbmm(centroids.square().sum(-1).unsqueeze(1), points, centroids.mT, alpha=-2).argmin(-1)


def empty_table(format: EntityFormat, entities: int, dim: int, parts: int) -> CodedTable:
    """A table of this format for codes that are still to be filled in."""
    if format == "pq":
        scale = torch.empty(entities, 1, dtype=torch.float16)
        codes = torch.empty(entities, parts, dtype=torch.uint8)
        return ProductTable(codes, scale, torch.empty(parts, CENTROIDS, -(-dim // parts), dtype=torch.float16), dim)
    if format == "int8":
        scale = torch.empty(entities, 1, dtype=torch.bfloat16)
        return Int8Table(torch.empty(entities, dim, dtype=torch.int8), scale)
    return HalfTable(torch.empty(entities, dim, dtype=HALVES[format]), dim)


HALVES = {"float16": torch.float16, "bfloat16": torch.bfloat16}
ENTITY_FORMATS: dict[str, Callable[[Tensor, int], CodedTable]] = {
    "float16": half_table(torch.float16),
    "bfloat16": half_table(torch.bfloat16),
    "int8": int8_table,
    "pq": product_table,
}
