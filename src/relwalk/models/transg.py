"""TransG: a relation is a mixture of translations, as many as its triples ask for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from relwalk.checks import check_number, check_whole
from relwalk.graph.answers import Side
from relwalk.models.base import Scorer
from relwalk.models.blocks import in_blocks
from relwalk.models.tables import EntityTable, squared_norms
from relwalk.space import Between, Search

VARIANCES = (0.01, 100.0)  # of an entity: beyond, the products that distances are made of lose their digits


class TransG(Scorer):
    """TransG (Xiao, Huang, Zhu: ACL 2016).

    A relation has several meanings, each a translation u_m of its own, and an entity is a Gaussian with mean u and
    variance σ². The score is the logarithm of the density, up to a constant:

        s = log Σ_m π_m exp(-||u_h + u_m - u_t||² / (σ_h² + σ_t²))

    Every relation starts with one component. For each true triple of a step another one is opened at u_t - u_h with
    the chance that a Chinese restaurant process gives it beside those it has,

        P_new = β e / (β e + exp(s)),  e = exp(-||u_h - u_t||² / (σ_h² + σ_t² + 2)),

    as long as there are less than `max_components`, one a step at most, and once those it has were trained for `settle`
    steps: before, no triple is near any component. It starts with the mean share of those it has. The weights π are a
    softmax over the components that are open, and learned, as means and variances are. Means and translations stay
    within the unit ball: a likelihood of answers alone does not see how far off all of them are, and P_new does.

    Ours, and not the paper's: `settle`, one component a step, the ball for translations, the bounds of σ² and the start
    of π.
    """

    paper = "Xiao, Huang, Zhu: ACL 2016"
    formula = "log Σ_m π_m exp(-||h + r_m - t||² / (σ_h² + σ_t²))"
    expresses = ("symmetry", "antisymmetry", "inversion", "composition")
    lr = 0.3
    # A sum over all entities has exponentials for every component: drawn ones leave time for more passes. Valid MRR on
    # the graphs of `TransE.usual`, d = 32, 12 s of a busy core (in brackets 15 s), seed 0:
    #
    #     batch 1024, l2 .15, all             .521  (.212)  .192
    #     batch 256,  l2 .01, lr .1, all      .510  (.223)  .165
    #     batch 512,  l2 .03, 512 drawn       .557   .209   .215
    usual: ClassVar[Mapping[str, Any]] = {"dim": 64, "l2": 0.03, "batch_size": 512, "candidates_per_step": 512}
    constrained = True
    grows = True
    search: ClassVar[Mapping[str, Search | None]] = {
        "max_components": Between(1, 16, "powers"),
        "beta": Between(1e-9, 1e-3, "log"),
        "entity_dropout": None,
        "query_dropout": None,
    }

    open: Tensor  # (relations,) how many components each relation has
    steps: Tensor  # (relations,) how many steps they were trained for since the last one was opened

    def __init__(
        self,
        entities: int,
        relations: int,
        dim: int,
        *,
        max_components: int = 8,
        beta: float = 1e-6,
        settle: int = 100,
        generator: torch.Generator,
    ) -> None:
        super().__init__(entities, relations, dim)
        self.max_components = check_whole("max_components", max_components, most=1024)
        self.beta = check_number("beta", beta, 0, 1, above=True)
        self.settle = check_whole("settle", settle, 0)
        self.entity = EntityTable(torch.randn(entities, dim, generator=generator) / dim**0.5)
        self.log_variance = EntityTable(torch.zeros(entities, 1))
        translations = torch.zeros(relations, max_components, dim)
        translations[:, 0] = torch.randn(relations, dim, generator=generator) / dim**0.5
        self.translation = nn.Parameter(translations)
        self.weight = nn.Parameter(torch.zeros(relations, max_components))
        self.register_buffer("open", torch.ones(relations, dtype=torch.long))
        self.register_buffer("steps", torch.zeros(relations, dtype=torch.long))

    def score(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        u, log_weights = self._components(relations)
        rows = (self.entity(heads) - self.entity(tails), u, log_weights, self._variance(heads) + self._variance(tails))
        return in_blocks(_log_density, rows, numbers=u[0].numel())  # (batch,)

    def score_candidates(
        self, side: Side, given: Tensor, relations: Tensor, candidates: Tensor | None = None
    ) -> Tensor:
        u, log_weights = self._components(relations)
        goals = self.entity(given).unsqueeze(1) + (u if side == "tail" else -u)  # (batch, components, dim)
        rows = (goals, log_weights, self._variance(given))
        keys = (self.entity(candidates), self._variance(candidates))  # (n, dim), (n,); with a row each (batch, n, ...)
        numbers = u.shape[1] * keys[1].shape[-1]
        if candidates is None or candidates.dim() == 1:
            return in_blocks(_log_densities, rows, keys, numbers=numbers)  # (batch, n)
        return in_blocks(_log_densities, (*rows, *keys), numbers=numbers)

    def score_relations(self, heads: Tensor, tails: Tensor) -> Tensor:
        u, log_weights = self._components(torch.arange(self.relations, device=heads.device))
        moves = self.entity(tails) - self.entity(heads)  # (batch, dim)
        variance = self._variance(heads) + self._variance(tails)
        return in_blocks(_log_densities_of_relations, (moves, variance), (u, log_weights), numbers=u[..., 0].numel())

    def _components(self, relations: Tensor) -> tuple[Tensor, Tensor]:
        """u_m and log π_m of each relation, as many as the largest of them has; log π of what is not open is -inf.

        # (batch, components, dim), (batch, components)
        """
        most = int(self.open[relations].max()) if len(relations) else 1
        shut = torch.arange(most, device=relations.device) >= self.open.unsqueeze(1)  # (relations, components)
        log_weights = torch.log_softmax(self.weight[:, :most].masked_fill(shut, -math.inf), -1)
        return self.translation[:, :most][relations], log_weights[relations]

    def _variance(self, entities: Tensor | None) -> Tensor:
        return self.log_variance(entities).squeeze(-1).exp()  # (entities,)  σ²

    @torch.no_grad()
    def constrain(self, entities: Tensor | None = None) -> None:
        rows = slice(None) if entities is None else entities
        self.entity.weight[rows] = _within_unit_ball(self.entity.weight[rows])
        self.translation.copy_(_within_unit_ball(self.translation))
        self.log_variance.weight[rows] = self.log_variance.weight[rows].clamp(*map(math.log, VARIANCES))

    @torch.no_grad()
    def grow(self, heads: Tensor, relations: Tensor, tails: Tensor, generator: torch.Generator) -> None:
        self.steps[torch.unique(relations)] += 1
        may = (self.open < self.max_components) & (self.steps >= self.settle)
        rows = may[relations].nonzero()[:, 0]
        if not len(rows):
            return
        h, r, t = heads[rows], relations[rows], tails[rows]
        chance = self.chance_of_new(h, r, t)
        drawn = (torch.rand(len(rows), generator=generator).to(chance.device) < chance).nonzero()[:, 0]
        # One for a relation: after it, the other triples are no longer as far from all components.
        first = drawn[torch.from_numpy(np.unique(r[drawn].cpu().numpy(), return_index=True)[1]).to(drawn.device)]
        h, r, t = h[first], r[first], t[first]
        place, total = self.open[r], self._log_total(r)
        self.translation[r, place] = self.entity(t) - self.entity(h)
        self.weight[r, place] = total - place.log()  # the mean of the others
        self.open[r] += 1
        self.steps[r] = 0

    @torch.no_grad()
    def chance_of_new(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        """P_new: how likely each triple is to be of a component that its relation does not have yet.  # (batch,)"""
        variance = self._variance(heads) + self._variance(tails) + 2
        log_new = math.log(self.beta) - squared_norms(self.entity(heads) - self.entity(tails)) / variance
        return torch.sigmoid(log_new - self.score(heads, relations, tails))

    def _log_total(self, relations: Tensor) -> Tensor:
        """log Σ exp of the weights of the components that are open.  # (batch,)"""
        shut = torch.arange(self.max_components, device=relations.device) >= self.open[relations].unsqueeze(1)
        return torch.logsumexp(self.weight[relations].masked_fill(shut, -math.inf), -1)


def _within_unit_ball(x: Tensor) -> Tensor:
    norms: Tensor = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return x / norms.clamp_min(1.0)


def _log_density(moves: Tensor, u: Tensor, log_weights: Tensor, variance: Tensor) -> Tensor:
    """log Σ_m π_m exp(-||u_h - u_t + u_m||² / σ²), from the moves u_h - u_t.  # (batch,)"""
    squared = (moves.unsqueeze(1) + u).square().sum(-1)  # (batch, components)
    return torch.logsumexp(log_weights - squared / variance.unsqueeze(1), -1)


def _log_densities(goals: Tensor, log_weights: Tensor, given: Tensor, keys: Tensor, own: Tensor) -> Tensor:
    """The same of candidates, whose means are `keys`: ||g - k||² = ||g||² - 2 g·k + ||k||².  # (batch, n)"""
    products = goals @ keys.mT  # (batch, components, n)
    squared = squared_norms(goals).unsqueeze(-1) - 2 * products + squared_norms(keys).unsqueeze(-2)
    variance = given[:, None, None] + own.unsqueeze(-2)
    return torch.logsumexp(log_weights.unsqueeze(-1) - squared / variance, 1)


def _log_densities_of_relations(moves: Tensor, variance: Tensor, u: Tensor, log_weights: Tensor) -> Tensor:
    """The same of every relation, whose components should be where the tail is from the head.  # (batch, relations)"""
    products = (moves @ u.flatten(0, 1).T).view(-1, *u.shape[:2])  # (batch, relations, components)
    squared = squared_norms(moves)[:, None, None] - 2 * products + squared_norms(u)
    return torch.logsumexp(log_weights - squared / variance[:, None, None], -1)
