"""Two entities learned anew from some of their facts, all else as it is: what an answer rests on shows when it is taken
away (Rossi, Firmani, Merialdo, Teofili: Kelpie, SIGMOD 2022).

    v = argmax  Σ_facts log p(t | h, R) + log p(h | R, t)  -  ‖(v - μ) / σ‖² / 2

over the vectors of the two alone. μ and σ are those of all entities. Candidates are the entities of the facts, the best
answers, and a sample of the others, each of which stands for as many as were left out.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor

from relwalk.graph.answers import Side
from relwalk.graph.graph import Graph
from relwalk.graph.lists import Longs
from relwalk.models.base import Scorer

Doubles = NDArray[np.float64]
DRAWN = 1000  # candidates beside those that matter
ITERATIONS = 40


@dataclass(frozen=True)
class Standing:
    """Where an answer stands among the new ones: its share of p, and its place."""

    share: float
    place: int


class Relearner:
    """The model cut down to some entities, of which the first two can be learned anew.

    `question` is the triple that is explained; `facts` are those to learn from, `apart` entities that must be among
    the candidates. All are ids of the graph.
    """

    def __init__(
        self, model: Scorer, graph: Graph, question: tuple[int, int, int], facts: Longs, apart: Longs, seed: int
    ) -> None:
        head, relation, tail = question
        self.graph, self.question, self.two = graph, question, len({head, tail})
        firm = np.unique(np.concatenate([facts[:, [0, 2]].ravel(), apart]))
        firm = np.concatenate([[head, tail][: self.two], firm[~np.isin(firm, [head, tail])]])
        others = np.setdiff1d(np.arange(len(graph.entities)), firm)
        drawn = np.random.default_rng(seed).choice(others, min(DRAWN, len(others)), replace=False)
        self.rows = np.concatenate([firm, np.sort(drawn)]).astype(np.int64)
        weight = math.log(len(others) / len(drawn)) if len(drawn) else 0.0
        self.log_weight = torch.tensor([0.0] * len(firm) + [weight] * len(drawn))
        self.model = _cut(model, self.rows)
        self.tables = [table.weight for table in self.model.tables()]
        self.centre = [weight.detach().mean(0) for weight in self.tables]
        self.spread = [weight.detach().std() + 1e-6 for weight in self.tables]
        place = np.full(len(graph.entities), -1, np.int64)
        place[self.rows] = np.arange(len(self.rows))
        self.facts = torch.from_numpy(np.stack([place[facts[:, 0]], facts[:, 1], place[facts[:, 2]]], 1))
        self.asked = torch.tensor([[place[head], relation, place[tail]]])
        self.start = self._own()

    def learn(self, keep: NDArray[np.bool_]) -> None:
        """Learn the two from the facts that are kept, from where they were."""
        kept = self.facts[torch.from_numpy(keep)]

        def cost(x: Doubles) -> tuple[float, Doubles]:
            self._put(x)
            loss = self._prior() - (self._log_p(kept).sum() if len(kept) else 0.0)
            slopes = torch.autograd.grad(loss, self.tables)
            return float(loss.detach()), _flat([slope[: self.two] for slope in slopes])

        found = minimize(cost, self.start, jac=True, method="L-BFGS-B", options={"maxiter": ITERATIONS})
        self._put(found.x)

    @torch.no_grad()
    def standing(self, side: Side) -> Standing:
        """Where the answer to the question stands now, of that side."""
        logits = self._logits(side, self.asked)[0]
        head, relation, tail = self.question
        given, answer = (head, tail) if side == "tail" else (tail, head)
        known = self.graph.known[side].lookup(np.array([given]), np.array([relation]))[0]
        out = np.isin(self.rows, known[known != answer])
        if not self.graph.has_loops[relation]:
            out |= (self.rows == given) & (given != answer)
        logits[torch.from_numpy(out)] = -torch.inf
        own = logits[int(self.asked[0, 2 if side == "tail" else 0])]
        shares = torch.exp(own - torch.logsumexp(logits, 0))
        above = torch.where(logits > own, self.log_weight.exp(), 0.0).sum()  # those drawn stand for others
        return Standing(float(shares), 1 + round(float(above)))

    def influence(self, side: Side) -> Doubles:
        """How much the log share of the answer falls without each fact, to first order: gᵀ H⁻¹ g_fact.  # (facts,)"""
        target = self._slope(self._log_p_side(side, self.asked).sum())
        each = np.stack([self._slope(self._log_p(self.facts[i : i + 1]).sum()) for i in range(len(self.facts))])
        scales = [
            np.full(self.two * w.shape[1], 1 / float(s) ** 2) for w, s in zip(self.tables, self.spread, strict=True)
        ]
        curvature = each.T @ each + np.diag(np.concatenate(scales))
        found: Doubles = each @ np.linalg.solve(curvature, target)
        return found

    def _logits(self, side: Side, triples: Tensor) -> Tensor:
        given = triples[:, 0 if side == "tail" else 2]
        scores = self.model.score_candidates(side, given, triples[:, 1]).float() * self.model.scale
        return scores + self.log_weight

    def _log_p_side(self, side: Side, triples: Tensor) -> Tensor:
        answers = triples[:, 2 if side == "tail" else 0]
        logits = self._logits(side, triples)
        own = logits.gather(1, answers[:, None])[:, 0]
        return own - torch.logsumexp(logits, 1)

    def _log_p(self, triples: Tensor) -> Tensor:
        return self._log_p_side("tail", triples) + self._log_p_side("head", triples)

    def _prior(self) -> Tensor:
        parts = zip(self.tables, self.centre, self.spread, strict=True)
        return torch.stack([((w[: self.two] - c) / s).square().sum() / 2 for w, c, s in parts]).sum()

    def _slope(self, value: Tensor) -> Doubles:
        return _flat([slope[: self.two] for slope in torch.autograd.grad(value, self.tables)])

    def _own(self) -> Doubles:
        return _flat([weight[: self.two].detach() for weight in self.tables])

    @torch.no_grad()
    def _put(self, x: Doubles) -> None:
        values, begin = torch.from_numpy(x), 0
        for weight in self.tables:
            end = begin + self.two * weight.shape[1]
            weight[: self.two] = values[begin:end].view(self.two, -1).to(weight.dtype)
            begin = end


def _cut(model: Scorer, rows: Longs) -> Scorer:
    """A copy with these entities alone, whose vectors can be learned."""
    ids = torch.from_numpy(rows).to(model.device)
    memo: dict[int, object] = {}
    for table in model.tables():  # the copy begins with the rows that it keeps: the whole table may be large
        weight = torch.nn.Parameter(table.weight.detach()[ids].clone().cpu(), requires_grad=True)
        memo[id(table.weight)] = weight
    smaller = copy.deepcopy(model, memo).cpu().eval()
    for module in smaller.modules():
        if isinstance(module, Scorer):
            module.entities = len(rows)
    for name, parameter in smaller.named_parameters():
        parameter.requires_grad_(any(parameter is table.weight for table in smaller.tables()))
        assert parameter.device.type == "cpu", name
    for table in smaller.tables():
        table.num_embeddings = len(rows)
    return smaller


def _flat(parts: list[Tensor]) -> Doubles:
    return np.concatenate([part.detach().double().cpu().numpy().ravel() for part in parts])
