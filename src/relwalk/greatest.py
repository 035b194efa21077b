"""Where the greatest numbers of each row are, found without sorting the row."""

from __future__ import annotations

import torch
from torch import Tensor

WIDTH = 256  # columns looked at together


def greatest(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The rows and columns of the k greatest numbers of each row, and of all that are level with the k-th; row by row.

    Of parts of a row only the k with the greatest maxima can hold the k greatest numbers: the rest is looked at once.
    """
    rows, count = scores.shape
    k = min(k, count)
    parts = count // WIDTH
    if parts < 4 * k:
        found = (scores >= scores.topk(k).values[:, -1:]).nonzero(as_tuple=True)
        return found[0], found[1]
    cut = scores[:, : parts * WIDTH].view(rows, parts, WIDTH)
    rest = scores[:, parts * WIDTH :]  # fewer than a part
    tops = cut.amax(2)  # (rows, parts)
    places = tops.topk(k).indices.unsqueeze(2).expand(-1, -1, WIDTH)
    candidates = torch.cat([cut.gather(1, places).flatten(1), rest], 1)
    least = candidates.topk(k).values[:, -1:]  # the k-th of each row
    row, part = (tops >= least).nonzero(as_tuple=True)
    inside, column = (cut[row, part] >= least[row]).nonzero(as_tuple=True)
    last, beside = (rest >= least).nonzero(as_tuple=True)
    found_rows = torch.cat([row[inside], last])
    found_columns = torch.cat([part[inside] * WIDTH + column, parts * WIDTH + beside])
    order = torch.argsort(found_rows, stable=True)
    return found_rows[order], found_columns[order]
