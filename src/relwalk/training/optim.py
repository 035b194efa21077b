"""Optimisers that move free weights along their gradient: SGD, Adagrad, row-wise Adagrad, Adam.

Written here, and not taken from torch.optim, because they take sparse gradients, which name the rows they are about,
and cost what those rows cost; and because torch's bring a compiler along: two seconds and 70 MB at every start.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor

from relwalk.mapped import MEMORY, Room
from relwalk.together import Together

State = dict[str, Tensor]
CACHED = 1 << 20  # numbers of dense weights moved at a time: their rates stay in the cache, and need no copy of all
LEAST = 1e-20  # sums of squares begin with no less: 1 / sqrt of them stays a number


@dataclass
class Group:
    """Weights that share a learning rate. `start` is what Adagrad's sums of squares begin with."""

    weights: list[Tensor]
    lr: float
    start: float = 0.0


class Optimizer(ABC):
    """Steps groups of weights, and remembers what it needs of each as named tensors."""

    def __init__(self, groups: Iterable[Group], room: Room = MEMORY) -> None:
        """`room` is where it remembers what is as large as the weights."""
        self.groups, self.room = list(groups), room
        self.states: list[State] = [{} for _ in self.weights()]

    def weights(self) -> list[Tensor]:
        return [weights for group in self.groups for weights in group.weights]

    def collecting(self) -> AbstractContextManager[object]:
        """What the loss and its gradient are to be made within."""
        return nullcontext()

    def zero_grad(self) -> None:
        for weights in self.weights():
            weights.grad = None

    def share(self, together: Together, own: Container[int]) -> None:
        """Add up the gradients of several processes, but for those of weights (by id) that each has for itself."""
        shared = [weights for weights in self.weights() if id(weights) not in own]
        together.add_up([weights.grad for weights in shared if weights.grad is not None])

    @torch.no_grad()
    def step(self) -> None:
        groups = [group for group in self.groups for _ in group.weights]
        for weights, state, group in zip(self.weights(), self.states, groups, strict=True):
            if weights.grad is not None:
                if not state:
                    state |= self.memory(weights, group.start)
                self.move(weights, weights.grad, state, group)

    def memory(self, weights: Tensor, start: float = 0.0) -> State:
        """What is remembered of these weights before their first step; nothing unless said."""
        return {}

    @abstractmethod
    def move(self, weights: Tensor, gradient: Tensor, state: State, group: Group) -> None:
        """One step of one weight tensor of a group; `state` begins as `memory` made it."""

    def tensors(self) -> State:
        """What is remembered, by `<weights>/<what>`."""
        return _named(self.states)

    def all_tensors(self) -> State:
        """What would be remembered, were all weights moved: names, types and shapes for a checkpoint to be held to."""
        return _named([self.memory(weights.detach()) for weights in self.weights()])

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        for index, weights in enumerate(self.weights()):
            own = {name.split("/", 1)[1]: t for name, t in tensors.items() if name.split("/", 1)[0] == str(index)}
            self.states[index] = {key: self.room.copy(tensor.to(weights.device)) for key, tensor in own.items()}


def _rows(tensor: Tensor) -> Tensor:
    """Itself; a number alone is a row of one."""
    return tensor if tensor.dim() else tensor.view(1)


def _named(states: Iterable[State]) -> State:
    return {f"{index}/{key}": value for index, state in enumerate(states) for key, value in state.items()}


class SGD(Optimizer):
    """x <- x - lr g"""

    def move(self, weights: Tensor, gradient: Tensor, state: State, group: Group) -> None:
        weights.add_(gradient, alpha=-group.lr)


class Adagrad(Optimizer):
    """x <- x - lr g / sqrt(start + Σ over steps of g²) (Duchi, Hazan, Singer 2011).

    From a start of zero the first step of a weight is ±lr however small its gradient: an entity that was only drawn
    as a rival would go as far as one that a triple is about.
    """

    def move(self, weights: Tensor, gradient: Tensor, state: State, group: Group) -> None:
        if gradient.is_sparse:
            gradient = gradient.coalesce()
            rows, values = gradient.indices()[0], gradient.values()
            sums = state["sum"].index_select(0, rows)
            self.add_squares(sums, values)
            state["sum"].index_copy_(0, rows, sums)
            weights.index_add_(0, rows, values * self.rates(sums, values), alpha=-group.lr)
        else:
            some = max(1, CACHED // max(1, _rows(weights)[:1].numel()))
            parts = (torch.split(_rows(tensor), some) for tensor in (weights, gradient, state["sum"]))
            for x, g, sums in zip(*parts, strict=True):
                self.add_squares(sums, g)
                x.addcmul_(g, self.rates(sums, g), value=-group.lr)

    def memory(self, weights: Tensor, start: float = 0.0) -> State:
        return {"sum": self.room.full_like(weights, max(start, LEAST))}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        super().restore(tensors)
        for state in self.states:
            if state:
                state["sum"].clamp_(min=LEAST)

    def add_squares(self, sums: Tensor, gradient: Tensor) -> None:
        sums.addcmul_(gradient, gradient)

    def rates(self, sums: Tensor, like: Tensor) -> Tensor:
        """1 / sqrt(sums), for a gradient of that shape."""
        return sums.rsqrt()


class RowwiseAdagrad(Adagrad):
    """Adagrad with the mean of g² over a row: a memory of one number per entity instead of d."""

    def memory(self, weights: Tensor, start: float = 0.0) -> State:
        return {"sum": weights.new_full((len(weights),), max(start, LEAST))}

    def add_squares(self, sums: Tensor, gradient: Tensor) -> None:
        sums += gradient.reshape(len(gradient), -1).square().mean(1)

    def rates(self, sums: Tensor, like: Tensor) -> Tensor:
        return super().rates(sums, like).view(-1, *[1] * (like.dim() - 1))


class Adam(Optimizer):
    """x <- x - lr m̂ / (sqrt(v̂) + ε), running means of g and g² (Kingma, Ba 2015): β = .9 and .999."""

    def memory(self, weights: Tensor, start: float = 0.0) -> State:
        moments = {name: self.room.full_like(weights, 0.0) for name in ("mean", "square")}
        return {"step": torch.zeros(()), **moments}

    def move(self, weights: Tensor, gradient: Tensor, state: State, group: Group) -> None:
        state["step"] += 1
        state["mean"].lerp_(gradient, 0.1)
        state["square"].mul_(0.999).addcmul_(gradient, gradient, value=0.001)
        steps = float(state["step"])
        root = (state["square"] / (1 - 0.999**steps)).sqrt_().add_(1e-8)
        weights.addcdiv_(state["mean"], root, value=-group.lr / (1 - 0.9**steps))
