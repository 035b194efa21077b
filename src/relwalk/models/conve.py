"""ConvE: a convolution over head and relation makes the question."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from relwalk.checks import check_number, check_whole
from relwalk.errors import RelWalkError
from relwalk.graph.answers import Side
from relwalk.models.base import ProductScorer
from relwalk.models.tables import BatchNorm, Dropout, EntityTable, with_constant
from relwalk.space import Between, Search

FILTER = 3  # height and width of a filter, or the image's width where that is less
BLOCK = 1 << 23  # numbers of feature maps held at a time, where no gradient needs them all
MOST_DROPPED = 0.99  # the highest rate of a dropout


class ConvE(ProductScorer):
    """ConvE (Dettmers, Minervini, Stenetorp, Riedel: AAAI 2018).

    Head and relation are folded into images, one on top of the other; filters ω slide over both at once, and a linear
    map W brings the feature maps back to a vector, which is compared with every tail:

        s = ReLU(vec(ReLU([h; r] * ω)) W) · t + b_t

    As in the paper: filters of 3 x 3 without padding, batch norm before each nonlinearity and of the image (which make
    biases of ω and W idle), dropout on the image, on whole feature maps and on the hidden layer. `dim` numbers make an
    image `embedding_height` high, as near to a square as they fold when that is left out: 10 x 20 for the paper's 200.

    The question is about tails. Heads are asked for by `reciprocal` relations, as in the paper. When told not to, each
    candidate head goes through the network, relation by relation: right, but slow on all but small graphs.
    """

    paper = "Dettmers, Minervini, Stenetorp, Riedel: AAAI 2018"
    formula = "ReLU(vec(ReLU([h; r] * ω)) W) · t + b_t"
    expresses = ("one-to-many",)
    shared = ("filters", "hidden", "image_norm", "map_norm", "hidden_norm")

    reciprocal = True
    keys_by_side = keys_by_relation = True
    # Entities need a higher rate than the network, and a decay that falls (compared in `recipes`).
    usual: ClassVar[Mapping[str, Any]] = {
        "optimizer": "adam",
        "lr": 0.02,
        "relation_lr": 0.003,
        "schedule": "cosine",
        "batch_size": 128,
        "l2": 0.15,
        "decay_end": 0.2,
    }
    search: ClassVar[Mapping[str, Search | None]] = {
        "channels": Between(8, 64, "powers"),
        "entity_dropout": None,
        "query_dropout": None,
        "input_dropout": Between(0.0, 0.5),
        "feature_dropout": Between(0.0, 0.5),
        "hidden_dropout": Between(0.0, 0.6),
    }

    def __init__(
        self,
        entities: int,
        relations: int,
        dim: int,
        *,
        generator: torch.Generator,
        embedding_height: int | None = None,
        channels: int = 32,
        input_dropout: float = 0.2,
        feature_dropout: float = 0.2,
        hidden_dropout: float = 0.3,
    ) -> None:
        super().__init__(entities, relations, dim)
        self.height, self.width = fold(dim, embedding_height)
        check_whole("channels", channels, most=1 << 16)
        sides = FILTER, min(FILTER, self.width)
        self.features = channels * (2 * self.height - sides[0] + 1) * (self.width - sides[1] + 1)
        self.entity = EntityTable(torch.randn(entities, dim, generator=generator) / dim**0.5)
        self.bias = EntityTable(torch.zeros(entities, 1))
        self.relation = nn.Parameter(torch.randn(relations, dim, generator=generator) / dim**0.5)
        self.filters = nn.Parameter(torch.randn(channels, 1, *sides, generator=generator) / FILTER)
        self.hidden = nn.Parameter(torch.randn(self.features, dim, generator=generator) / self.features**0.5)
        self.image_norm, self.map_norm = nn.BatchNorm2d(1), nn.BatchNorm2d(channels)
        self.hidden_norm = BatchNorm(dim)
        self.input_dropout = Dropout(check_number("input_dropout", input_dropout, 0, MOST_DROPPED))
        self.feature_dropout = Dropout(check_number("feature_dropout", feature_dropout, 0, MOST_DROPPED), axes=2)
        self.hidden_dropout = Dropout(check_number("hidden_dropout", hidden_dropout, 0, MOST_DROPPED))

    def score(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        return (self._ask(heads, relations) * self._answer(tails)).sum(-1)  # (batch,)

    def queries(self, side: Side, given: Tensor, relations: Tensor) -> Tensor:
        return self._ask(given, relations) if side == "tail" else self._answer(given)  # (batch, dim + 1)

    def keys(self, side: Side, entities: Tensor | None = None, relations: Tensor | None = None) -> Tensor:
        if side == "tail":
            return self._answer(entities)  # (candidates, dim + 1)
        heads = torch.arange(self.entities, device=self.device) if entities is None else entities
        assert relations is not None
        return self._ask(heads, relations.expand(len(heads)))  # (candidates, dim + 1)

    def shares_keys(self, side: Side) -> bool:
        return side == "tail"

    def step_numbers(self, questions: int, candidates: int) -> int:
        """Every relation of a step has feature maps of every candidate head: of the filters, the norm and the ReLU."""
        return 3 * min(questions, self.relations) * candidates * self.features

    def n3_norm(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        return super().n3_norm(heads, relations, tails) + F.embedding(relations, self.relation).abs().pow(3).sum()

    def _answer(self, entities: Tensor | None) -> Tensor:
        """[t, b_t]  # (entities, dim + 1)"""
        return torch.cat([self.entity(entities), self.bias(entities)], -1)

    def _ask(self, heads: Tensor, relations: Tensor) -> Tensor:
        """[q(h, r), 1]; in blocks where rows are on their own and nothing is kept.  # (batch, dim + 1)"""
        if self.training or torch.is_grad_enabled():
            return self._network(heads, relations)
        size = max(1, BLOCK // self.features)
        blocks = zip(torch.split(heads, size), torch.split(relations, size), strict=True)
        return torch.cat([self._network(*block) for block in blocks])

    def _network(self, heads: Tensor, relations: Tensor) -> Tensor:
        h, r = self.entity(heads), F.embedding(relations, self.relation)  # (batch, dim)
        image = torch.cat([h, r], -1).view(-1, 1, 2 * self.height, self.width)
        image = self.input_dropout(self.image_norm(image))
        maps = F.relu(self.map_norm(F.conv2d(image, self.filters)))  # (batch, channels, height', width')
        hidden = self.feature_dropout(maps).flatten(1) @ self.hidden  # (batch, dim)
        return with_constant(F.relu(self.hidden_norm(self.hidden_dropout(hidden))), 1.0)


def fold(dim: int, height: int | None = None) -> tuple[int, int]:
    """Height and width of the image that `dim` numbers make: as near to a square as they fold, unless a height is said.

    Both are at least 2: a filter should see some of the head and of the relation.
    """
    heights = _heights(dim)
    if not heights:
        near = [str(d) for d in (dim - 1, max(dim + 1, 4)) if d >= 4]  # even, as dim is a prime, or small
        raise RelWalkError(
            f"ConvE folds a vector into an image of at least 2 x 2, which dim {dim} does not make. "
            f"Take --dim {' or '.join(near)}."
        )
    if height is None:
        height = max(h for h in heights if h * h <= dim)
    elif height not in heights:
        known = ", ".join(map(str, heights))
        raise RelWalkError(f"embedding_height is {height!r}; a vector of dim {dim} folds to a height of {known}.")
    return height, dim // height


def _heights(dim: int) -> list[int]:
    return [height for height in range(2, dim // 2 + 1) if dim % height == 0]
