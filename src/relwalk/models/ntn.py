"""NTN: a small neural network for each relation, with a bilinear layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from relwalk.checks import check_whole
from relwalk.graph.answers import Side
from relwalk.models.base import Scorer
from relwalk.models.relation_matmul import project
from relwalk.models.tables import EntityTable
from relwalk.space import Among, Between, Search

BLOCK = 1 << 22  # numbers held at a time while candidates are scored
MOST_SLICES = 1 << 10


class NTN(Scorer):
    """The neural tensor network (Socher, Chen, Manning, Ng: NIPS 2013).

    Each relation has k bilinear forms ("slices") and a linear layer, added up, bent and weighed:

        s = uᵀ tanh(hᵀ W^[1:k] t + V [h; t] + b)

    k = 4 `slices` when left out, as in the paper; its entities are means of word vectors, these have vectors of their
    own. The nonlinearity stands between the answer and the sum: scores are no product of queries and keys, and a
    gradient holds k numbers for each of them.
    """

    paper = "Socher, Chen, Manning, Ng: NIPS 2013"
    formula = "uᵀ tanh(hᵀ W^[1:k] t + V [h; t] + b)"
    expresses = ("symmetry", "antisymmetry", "inversion", "composition", "one-to-many")

    lr = 0.3
    # Of the forms, only the entities between them are held: firmly. Valid MRR on the graphs of `TransE.usual`, d = 32,
    # 12 s of a busy core (in brackets 15 s), seed 0:
    #
    #     batch 1024, l2 .15, lr .3     .441  (.203)  .357
    #     batch 256,  l2 .15, lr .3           (.202)
    #     batch 256,  l2 .01, lr .1           (.197)
    #     batch 1024, l2 .4,  lr .3            .206
    #     batch 512,  l2 .15, lr .1            .210
    #     batch 512,  l2 .4,  lr .1     .517   .213   .388
    usual: ClassVar[Mapping[str, Any]] = {"dim": 64, "lr": 0.1, "l2": 0.4, "batch_size": 512}
    search: ClassVar[Mapping[str, Search | None]] = {
        "dim": Between(16, 128, "powers"),
        "slices": Among((1, 2, 4)),
        "entity_dropout": None,
        "query_dropout": None,
    }

    def __init__(self, entities: int, relations: int, dim: int, *, generator: torch.Generator, slices: int = 4) -> None:
        super().__init__(entities, relations, dim)
        self.slices = check_whole("slices", slices, most=MOST_SLICES)

        def normal(*shape: int) -> Tensor:
            return torch.randn(*shape, generator=generator)

        self.entity = EntityTable(normal(entities, dim) / dim**0.5)
        self.W = nn.Parameter(normal(relations, slices, dim, dim) / dim**0.5)
        self.V_head = nn.Parameter(normal(relations, slices, dim) / dim**0.5)
        self.V_tail = nn.Parameter(normal(relations, slices, dim) / dim**0.5)
        self.b = nn.Parameter(torch.zeros(relations, slices))
        self.u = nn.Parameter(normal(relations, slices))

    def score(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        forms, added = self._forms("tail", heads, relations)
        bent = torch.tanh((forms * self.entity(tails).unsqueeze(1)).sum(-1) + added)  # (batch, slices)
        return (F.embedding(relations, self.u) * bent).sum(-1)  # (batch,)

    def score_candidates(
        self, side: Side, given: Tensor, relations: Tensor, candidates: Tensor | None = None
    ) -> Tensor:
        forms, added = self._forms(side, given, relations)
        u = F.embedding(relations, self.u)  # (batch, slices)
        own = candidates is not None and candidates.dim() == 2
        count = self.entities if candidates is None else candidates.shape[-1]
        size = max(1, BLOCK // max(1, count * (self.slices + self.dim * own)))  # rows whose numbers make a block
        everyone = None if own else self.entity(candidates)  # (candidates, dim)
        scores = [torch.empty(0, count, device=given.device)]
        for start in range(0, len(given), size):
            part = slice(start, start + size)
            e = self.entity(candidates[part]) if candidates is not None and everyone is None else everyone
            assert e is not None
            bent = torch.tanh(forms[part] @ e.mT + added[part].unsqueeze(-1))  # (rows, slices, candidates)
            scores.append(torch.einsum("bk,bkn->bn", u[part], bent))
        return torch.cat(scores)  # (batch, candidates)

    def step_numbers(self, questions: int, candidates: int) -> int:
        """The bent numbers of all slices and, on the way back, their gradient."""
        return (2 * self.slices + 2) * questions * candidates

    def _forms(self, side: Side, given: Tensor, relations: Tensor) -> tuple[Tensor, Tensor]:
        """What the given entity leaves of the network, linear in the other one: hᵀW + V_t with V_h h + b.

        # (batch, slices, dim) and (batch, slices)
        """
        x = self.entity(given)  # (batch, dim)
        turned = project(x.repeat(1, self.slices), self.W, relations, transposed=side == "head")
        near, far = (self.V_head, self.V_tail) if side == "tail" else (self.V_tail, self.V_head)
        forms = turned.view(-1, self.slices, self.dim) + _rows(far, relations)
        return forms, torch.einsum("bkd,bd->bk", _rows(near, relations), x) + F.embedding(relations, self.b)


def _rows(stack: Tensor, relations: Tensor) -> Tensor:
    """stack[relations], with a gradient that adds up in the same order every time.  # (batch, slices, dim)"""
    return F.embedding(relations, stack.flatten(1)).view(-1, *stack.shape[1:])
