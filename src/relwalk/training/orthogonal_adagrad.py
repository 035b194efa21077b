"""Adagrad for orthogonal matrices: steps along rotations, one adaptive rate per matrix, at the cost of a few rows."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from relwalk.mapped import MEMORY, Room
from relwalk.models.orthogonal import nearest_orthogonal
from relwalk.models.relation_matmul import Factors, collect_factors
from relwalk.together import Together
from relwalk.training.optim import Group, Optimizer, State

SMALL = 0.004  # (I - A + A²/2) is orthogonal up to A⁴/4, so to 4e-6 while ||A²|| is below this
POLISH_EVERY = 8  # steps of a matrix after which rounding is taken out
FARTHEST = 1.0  # ||ηA|| of one step at most: the first ones, with nothing to compare with, would go anywhere
ROUGH = 1e-5  # what a small system may leave unsolved before its matrix is made orthogonal at once
FEW = 4  # with fewer than d / FEW rows the small system is cheaper than products of d x d matrices


class OrthogonalAdagrad(Optimizer):
    """Keeps stacks of orthogonal matrices (count, d, d) orthogonal while it follows their gradient G.

    The part of G that leads along the orthogonal group is R A with A = (RᵀG - GᵀR) / 2, skew, and a step rotates by

        R <- R exp(-ηA),      η = lr √d / sqrt(Σ over steps of ||A||²).

    The rate is one number per matrix: a rate per entry would depend on the basis, and would turn a small rotation into
    a large change that is none. Matrices without a gradient are not touched.

    A batch of 1024 questions about 237 relations has four or five rows for each, so A = (PᵀN - NᵀP) / 2 has rank ten
    rather than d. `project` hands over P and N (`Factors`), and the rotation is Cayley's, exact to rounding, through a
    system of that small size. Matrices with many rows take (I - ηA + η²A²/2), and the nearest orthogonal matrix to it
    where the step is not a small one.
    """

    def __init__(self, groups: Iterable[Group], room: Room = MEMORY) -> None:
        super().__init__(groups, room)
        self.factors: list[list[Factors]] = [[] for _ in self.weights()]

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Within, gradients come as factors, for the next step."""
        with collect_factors(self.weights()) as self.factors:
            yield

    def zero_grad(self) -> None:
        super().zero_grad()
        self.factors = [[] for _ in self.weights()]

    def share(self, together: Together, own: Container[int]) -> None:
        """The factors of all processes, in the same order in each: all take the same rotation."""
        super().share(together, own)
        self.factors = [[_gathered(parts, together)] if parts else [] for parts in self.factors]

    @torch.no_grad()
    def step(self) -> None:
        rates = [group.lr for group in self.groups for _ in group.weights]
        for matrices, state, lr, factors in zip(self.weights(), self.states, rates, self.factors, strict=True):
            gradient = matrices.grad.flatten(0, -3) if matrices.grad is not None else None
            self._rotate(matrices.flatten(0, -3), gradient, state, lr, _joined(factors, matrices))

    def memory(self, weights: Tensor, start: float = 0.0) -> State:
        count, device = len(weights.flatten(0, -3)), weights.device  # a number for each matrix, of each block
        return {"steps": torch.zeros(count, dtype=torch.long, device=device), "sum": torch.zeros(count, device=device)}

    def move(self, weights: Tensor, gradient: Tensor, state: State, group: Group) -> None:
        self._rotate(weights.flatten(0, -3), gradient.flatten(0, -3), state, group.lr, _joined([], weights))

    def _rotate(self, matrices: Tensor, gradient: Tensor | None, state: State, lr: float, asked: _Asked) -> None:
        """One step of a stack (count, d, d); blocks of several relations are a longer stack of smaller matrices."""
        if not state:
            state |= self.memory(matrices)
        stack = _Stack(matrices, state["steps"], state["sum"], lr)
        few = matrices.shape[-1] // FEW if gradient is None else 0  # beside a whole gradient, all are whole
        for which, P, N in asked.few(few):
            _rotate_by_few(stack, which, P, N)
        which, RG = asked.many(matrices, gradient, few)
        if len(which):
            _rotate_by_many(stack, which, RG)


class _Stack(NamedTuple):
    """Matrices with what the optimiser remembers of each."""

    matrices: Tensor  # (count, d, d)
    steps: Tensor  # (count,)
    sum: Tensor  # (count,) of ||A||²
    lr: float

    def rates(self, which: Tensor, size: Tensor, noise: Tensor) -> Tensor:
        """η for a step with ||A||² = size; a gradient that leads off the group leaves only `noise` in A."""
        self.sum[which] += size + 1e-8 * noise
        self.steps[which] += 1
        rate = self.lr * self.matrices.shape[-1] ** 0.5 / (self.sum[which].sqrt() + 1e-10)
        return torch.minimum(rate, FARTHEST / (size.sqrt() + 1e-10)).view(-1, 1, 1)

    def put(self, which: Tensor, turned: Tensor, large: Tensor | None = None) -> None:
        """Store rotated matrices, after taking rounding (every few steps) and what a large step left out of them."""
        rough = self.steps[which] % POLISH_EVERY == 0
        rough = (rough if large is None else rough | large).nonzero().squeeze(1)
        if len(rough):
            turned[rough] = nearest_orthogonal(turned[rough])
        self.matrices[which] = turned


class _Asked(NamedTuple):
    """The factors of a step sorted by relation: relation i has rows bounds[i] to bounds[i+1]."""

    P: Tensor  # (rows + 1, d) the last one zero
    N: Tensor
    relations: Tensor
    bounds: Tensor

    def few(self, limit: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Relations with up to `limit` rows, in batches of like width: which, P and N (matrices, width, d)."""
        for group, P, N in self._padded(0, limit):
            yield self.relations[group], P, N

    def many(self, matrices: Tensor, gradient: Tensor | None, limit: int) -> tuple[Tensor, Tensor]:
        """Relations with more rows than that, and with any gradient of their own: which, and RᵀG (matrices, d, d)."""
        counts = self.bounds.diff()
        parts = [(group, P.mT @ N) for group, P, N in self._padded(limit, int(counts.max()) if len(counts) else 0)]
        which = torch.cat([self.relations[:0], *(self.relations[group] for group, _ in parts)])
        RG = torch.cat([self.P.new_empty(0, *matrices.shape[1:]), *(product for _, product in parts)])
        if gradient is None:
            return which, RG
        full = torch.bmm(matrices.mT, gradient)
        full[which] += RG
        touched = torch.linalg.vector_norm(full.flatten(1), dim=1).nonzero().squeeze(1)
        return touched, full[touched]

    def _padded(self, least: int, most: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Relations with more than `least` and up to `most` rows, in batches of like width, filled up with zeros."""
        counts = self.bounds.diff()
        width = max(2, least)
        while least < most:
            width = min(2 * width, most)
            group = ((counts > least) & (counts <= width)).nonzero().squeeze(1)
            if len(group):
                place = torch.arange(width, device=counts.device)
                index = torch.where(
                    place < counts[group].unsqueeze(1), self.bounds[group].unsqueeze(1) + place, len(self.P) - 1
                )
                yield group, self.P[index], self.N[index]
            least = width


def _joined(collected: list[Factors], matrices: Tensor) -> _Asked:
    if not collected:
        none = torch.zeros(0, dtype=torch.long, device=matrices.device)
        zero = matrices.new_zeros(1, matrices.shape[-1])
        return _Asked(zero, zero, none, none.new_zeros(1))
    relations, order = torch.sort(torch.cat([part.relations for part in collected]), stable=True)
    zero = collected[0].rows.new_zeros(1, matrices.shape[-1])
    order = torch.cat([order, order.new_full((1,), len(order))])
    P, N = (torch.cat([*parts, zero])[order] for parts in ([f.turned for f in collected], [f.rows for f in collected]))
    distinct, counts = torch.unique_consecutive(relations, return_counts=True)
    return _Asked(P, N, distinct, torch.cat([counts.new_zeros(1), counts.cumsum(0)]))


def _gathered(parts: list[Factors], together: Together) -> Factors:
    """The factors of all processes, in one message: each row with its relation, whose bits travel as a number."""
    turned, rows, relations = (torch.cat(part) for part in zip(*parts, strict=True))
    numbers = relations.int().view(torch.float32).unsqueeze(1)
    own = torch.cat([turned, rows, numbers], 1)
    counts = together.gather(torch.tensor([len(own)], device=own.device)).tolist()
    most = max(counts)
    every = together.gather(F.pad(own, (0, 0, 0, most - len(own))))
    if min(counts) < most:  # DURA asks about the triples of each process, and these are not as many in all
        every = torch.cat([part[:count] for part, count in zip(torch.split(every, most), counts, strict=True)])
    turned, rows, numbers = torch.split(every, [turned.shape[1], rows.shape[1], 1], 1)
    return Factors(turned, rows, numbers.flatten().view(torch.int32).long())


def _rotate_by_few(stack: _Stack, which: Tensor, P: Tensor, N: Tensor) -> None:
    """R (I + ηA/2)⁻¹(I - ηA/2) = R - (η/2) R Wᵀ (I + (η/4) Z Wᵀ)⁻¹ Z, where A = WᵀZ / 2, W = [P; N], Z = [N; -P]."""
    balance = (N.square().sum((1, 2)) / P.square().sum((1, 2)).clamp(min=1e-30)).clamp(1e-20, 1e20).pow(0.25)
    P, N = P * balance.view(-1, 1, 1), N / balance.view(-1, 1, 1)  # the same A from a well-conditioned system
    PP, NN, NP = P @ P.mT, N @ N.mT, N @ P.mT  # (matrices, width, width)
    full = (PP * NN).sum((1, 2))  # ||RᵀG||²
    size = ((full - (NP * NP.mT).sum((1, 2))) / 2).clamp(min=0)  # ||A||²
    rate = stack.rates(which, size, full)
    W, Z = torch.cat([P, N], 1), torch.cat([N, -P], 1)  # (matrices, 2 width, d)
    S = rate / 4 * torch.cat([torch.cat([NP, NN], 2), torch.cat([-PP, -NP.mT], 2)], 1)  # (η/4) Z Wᵀ
    solved = _inverse(S) @ Z
    off = torch.linalg.matrix_norm(solved + S @ solved - Z) > ROUGH * torch.linalg.matrix_norm(Z)
    R = stack.matrices[which]
    stack.put(which, R.baddbmm_(R @ W.mT, rate / 2 * solved, alpha=-1), off)


def _inverse(S: Tensor) -> Tensor:
    """(I + S)⁻¹ = (I - S)(I + S²)(I + S⁴)(I + S⁸) up to S¹⁶, which vanishes: S has the eigenvalues of ηA/2, and none of
    a skew matrix exceeds its norm over √2, here FARTHEST / 2 / √2 = .35."""
    eye = torch.eye(S.shape[-1], device=S.device)
    inverse, power = eye - S, S
    for _ in range(3):
        power = power @ power
        inverse = inverse + inverse @ power
    return inverse


def _rotate_by_many(stack: _Stack, which: Tensor, RG: Tensor) -> None:
    """R (I - ηA + η²A²/2), a rotation up to fourth order."""
    A = (RG - RG.mT) / 2  # (matrices, d, d)
    A *= stack.rates(which, A.square().sum((1, 2)), RG.square().sum((1, 2)))
    square = A @ A
    R = stack.matrices[which]
    turned = torch.baddbmm(R, R, A.sub_(square, alpha=0.5), alpha=-1)
    stack.put(which, turned, torch.linalg.matrix_norm(square) > SMALL)
