"""What every model promises, as a check that anyone can run on a model of their own.

    relwalk.testing.check_model(MyModel)

raises `ContractBroken` with the first promise that does not hold. `tests/models/test_contract.py` runs it on every
model that the package lists.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from relwalk.errors import RelWalkError
from relwalk.graph.answers import SIDES, Side
from relwalk.models import Model, Scorer, build_model
from relwalk.models.base import as_product
from relwalk.models.orthogonal import nearest_orthogonal
from relwalk.training.softmax import Targets, Workspace, softmax_loss

ENTITIES, RELATIONS, BATCH = 23, 5, 11
STEPS, FAR = 250, 10.0  # steps that a model which grows is given for it, and how large its weights are meanwhile


class ContractBroken(RelWalkError):
    """A model does not do what every model promises."""


class Case(NamedTuple):
    """A model away from its start, and some triples."""

    model: Scorer
    heads: Tensor
    relations: Tensor
    tails: Tensor

    def asked(self, side: Side) -> tuple[Tensor, Tensor]:
        """What is given and what is the answer when this side is asked."""
        return (self.heads, self.tails) if side == "tail" else (self.tails, self.heads)


def check_model(model: Model, *, dim: int = 8, options: Mapping[str, Any] | None = None) -> None:
    """Check a model, by class or by name, with these options: raises `ContractBroken` when a promise does not hold."""
    for promise, check in PROMISES.items():
        case = make_case(model, dim, options or {})
        try:
            check(case)
        except (AssertionError, RuntimeError, IndexError, TypeError) as error:
            reason = " ".join(str(error).split())[:400]
            raise ContractBroken(f"{case.model.title}: {promise} does not hold: {reason}") from error


def make_case(model: Model, dim: int, options: Mapping[str, Any]) -> Case:
    """A model with weights away from a start that could hide a mistake, in evaluation mode, with no dropout."""
    made = build_model(model, ENTITIES, RELATIONS, dim, seed=3, options=options).eval()
    for dropout in made.dropouts().values():
        dropout.rate = 0.0
    generator = torch.Generator().manual_seed(4)
    with torch.no_grad():
        for weights in made.parameters():
            weights.add_(0.3 * torch.randn(weights.shape, generator=generator))
        for weights in made.orthogonal():
            weights.copy_(nearest_orthogonal(weights))
    h, r, t = (torch.randint(0, size, (BATCH,), generator=generator) for size in (ENTITIES, RELATIONS, ENTITIES))
    if made.grows:
        _grow(made, h, r, t, generator)
    return Case(made, h, r, t)


@torch.no_grad()
def _grow(model: Scorer, h: Tensor, r: Tensor, t: Tensor, generator: torch.Generator) -> None:
    """Let a model take up what it can: for a while all its weights are large, and triples far from what it has."""
    for weights in model.parameters():
        weights.mul_(FAR)
    for _ in range(STEPS):
        model.grow(h, r, t, generator)
    for weights in model.parameters():
        weights.div_(FAR)


def ways_to_score_agree(case: Case) -> None:
    """score, score_tails, score_heads and score_relations give a triple the same score."""
    model, (h, r, t), rows = case.model, case[1:], torch.arange(BATCH)
    expected = model.score(h, r, t)
    assert expected.shape == (BATCH,), f"score gives {tuple(expected.shape)}, expected ({BATCH},)"
    _close(model.score_relations(h, t)[rows, r], expected)
    for side in SIDES:
        given, answers = case.asked(side)
        _close(model.score_candidates(side, given, r)[rows, answers], _one_sided(model, side, h, r, t))


def candidates_are_columns_of_all(case: Case) -> None:
    """Scores of some entities, shared by all rows or each row's own, are columns of the scores of all."""
    shared = torch.tensor([7, 0, ENTITIES - 1, 7])
    own = torch.randint(0, ENTITIES, (BATCH, 4), generator=torch.Generator().manual_seed(6))
    for side in SIDES:
        given, _ = case.asked(side)
        every = case.model.score_candidates(side, given, case.relations)
        assert every.shape == (BATCH, ENTITIES), f"score_candidates gives {tuple(every.shape)}"
        _close(case.model.score_candidates(side, given, case.relations, shared), every[:, shared])
        _close(case.model.score_candidates(side, given, case.relations, own), every.gather(1, own))


def order_does_not_matter(case: Case) -> None:
    """A batch in another order gives the same scores in that order."""
    model, ids, order = case.model, case[1:], torch.randperm(BATCH, generator=torch.Generator().manual_seed(7))
    shuffled = [x[order] for x in ids]
    _close(model.score(*shuffled), model.score(*ids)[order])
    _close(model.score_tails(*shuffled[:2]), model.score_tails(*ids[:2])[order])


def conditionals_sum_to_one(case: Case) -> None:
    """Probabilities of all tails, of all heads and of all relations sum to one."""
    for side in SIDES:
        given, _ = case.asked(side)
        _close(case.model.log_prob_candidates(side, given, case.relations).exp().sum(-1), torch.ones(BATCH))
    _close(case.model.log_prob_relations(case.heads, case.tails).exp().sum(-1), torch.ones(BATCH))


def gradients_agree(case: Case) -> None:
    """The ways to score have the same gradient, and it reaches every weight."""
    model, (h, r, t), rows = case.model, case[1:], torch.arange(BATCH)
    for side in SIDES:
        given, answers = case.asked(side)
        by_score = _gradients(model, _one_sided(model, side, h, r, t).sum())
        by_all = _gradients(model, model.score_candidates(side, given, r)[rows, answers].sum())
        by_own = _gradients(model, model.score_candidates(side, given, r, answers.unsqueeze(1)).sum())
        for name, expected in by_score.items():
            _close(by_all[name], expected, f"the gradient of {name}", rtol=1e-3, atol=1e-3)
            _close(by_own[name], expected, f"the gradient of {name}", rtol=1e-3, atol=1e-3)
    parts = [model.score_candidates(side, case.asked(side)[0], r).square().sum() for side in SIDES]
    reached = _gradients(model, parts[0] + parts[1])
    for name, gradient in reached.items():
        assert bool((gradient != 0).any()), f"no gradient reaches {name}"


def sampled_keys_agree(case: Case) -> None:
    """Keys of some entities are rows of all keys; their gradients reach only the rows they are about, in any table."""
    model = as_product(case.model)
    if model is None:
        return
    some = torch.tensor([3, 9, 4])
    for side in SIDES:
        relation = case.relations[0] if model.keys_by_relation else None
        _close(model.keys(side, some, relation), model.keys(side, None, relation)[some])
        if model.shares_keys(side):
            _close(torch.cat(model.key_parts(side), 1), model.keys(side))
        if model.keys_by_relation:
            each = model.keys(side, some, case.relations[:3])
            _close(each[1], model.keys(side, some, case.relations[1])[1])
    for table in model.tables():
        table.sparse = True
    try:
        relation = case.relations[0] if model.keys_by_relation else None
        gradients = torch.autograd.grad(
            model.keys("tail", some, relation).square().sum(), [t.weight for t in model.tables()], allow_unused=True
        )
    finally:
        for table in model.tables():
            table.sparse = False
    for gradient in gradients:
        if gradient is not None:
            assert gradient.is_sparse, "the gradient of an entity table is not sparse: look its rows up by table(ids)"
            assert set(gradient.coalesce().indices()[0].tolist()) <= set(some.tolist())


def fused_softmax_agrees(case: Case) -> None:
    """The fused softmax of queries and keys is the cross-entropy of the scores, in value and gradient."""
    model = as_product(case.model)
    if model is None:
        return
    rows = torch.arange(BATCH)
    for side in SIDES:
        given, answers = case.asked(side)
        log_prob = model.log_prob_candidates(side, given, case.relations)
        expected = _gradients(model, -log_prob[rows, answers].sum())
        loss = torch.zeros(())
        for row in range(BATCH):
            relation = case.relations[row] if model.keys_by_relation else None
            queries = model.queries(side, given[row : row + 1], case.relations[row : row + 1])
            targets = Targets(torch.zeros(1, dtype=torch.long), answers[row : row + 1], torch.ones(1))
            loss = loss + softmax_loss(model.scale * queries, model.keys(side, None, relation), targets, Workspace())
        _close(loss, -log_prob[rows, answers].sum(), rtol=1e-3, atol=1e-3)
        for name, found in _gradients(model, loss).items():
            _close(found, expected[name], f"the gradient of {name}", rtol=1e-3, atol=1e-3)


def entities_are_in_tables(case: Case) -> None:
    """Its entities are rows of `EntityTable`s, and what it says of their vectors and norms is about those."""
    model = case.model
    assert model.tables(), "there is no EntityTable"
    for table in model.tables():
        assert len(table.weight) == ENTITIES, f"an EntityTable has {len(table.weight)} rows, expected {ENTITIES}"
    assert len(model.vectors()) == ENTITIES
    some = torch.tensor([5, 2])
    _close(model.squared_norms(some), model.squared_norms()[some])
    _close(model.squared_norms(), model.vectors().square().sum(-1))


def evaluation_is_repeatable(case: Case) -> None:
    """In evaluation mode scores do not change from call to call; dropout that a model names does something."""
    model, ids = case.model, case[1:]
    _close(model.score_tails(*ids[:2]), model.score_tails(*ids[:2]), rtol=0, atol=0)
    for name, dropout in model.dropouts().items():
        whole = model.train().score_tails(*ids[:2])  # in training, where batch norm is another thing too
        dropout.rate, dropout.generator = 0.5, torch.Generator().manual_seed(0)
        assert not torch.equal(model.score_tails(*ids[:2]), whole), f"{name} does nothing in training"
        quiet = model.eval().score_tails(*ids[:2])
        dropout.rate, dropout.generator = 0.0, None
        _close(model.score_tails(*ids[:2]), quiet, f"{name} in evaluation", rtol=0, atol=0)


def saving_is_exact(case: Case) -> None:
    """A model filled with the saved weights of another gives the same bits."""
    model, ids = case.model, case[1:]
    other = copy.deepcopy(model)
    with torch.no_grad():
        for weights in other.parameters():
            weights.zero_()
    other.load_state_dict(model.state_dict())
    _close(other.score(*ids), model.score(*ids), rtol=0, atol=0)


def a_torch_optimizer_can_go_on(case: Case) -> None:
    """It is a plain module: `loss.backward()` fills every .grad, and an optimizer of torch lowers the loss."""
    model, r, rows = case.model.train(), case.relations, torch.arange(BATCH)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(4):
        optimizer.zero_grad()
        parts = [-model.log_prob_candidates(s, case.asked(s)[0], r)[rows, case.asked(s)[1]].sum() for s in SIDES]
        loss = parts[0] + parts[1]
        loss.backward()  # type: ignore[no-untyped-call]
        for name, weights in model.named_parameters():
            assert weights.grad is not None, f"{name} has no .grad after backward()"
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < losses[0], f"the loss went from {losses[0]:.4f} to {losses[-1]:.4f}"


PROMISES: dict[str, Callable[[Case], None]] = {
    "the ways to score agree": ways_to_score_agree,
    "candidates are columns of all": candidates_are_columns_of_all,
    "the order of a batch does not matter": order_does_not_matter,
    "conditionals sum to one": conditionals_sum_to_one,
    "gradients agree and reach every weight": gradients_agree,
    "sampled keys agree with all keys": sampled_keys_agree,
    "the fused softmax agrees": fused_softmax_agrees,
    "entities are in tables": entities_are_in_tables,
    "evaluation is repeatable": evaluation_is_repeatable,
    "saving and loading is exact": saving_is_exact,
    "a torch optimizer can go on": a_torch_optimizer_can_go_on,
}


def _one_sided(model: Scorer, side: Side, h: Tensor, r: Tensor, t: Tensor) -> Tensor:
    """The score of triples when this side is asked: of a reciprocal model, that of its own direction."""
    base = getattr(model, "base", None)
    if not isinstance(base, Scorer):
        return model.score(h, r, t)
    return base.score(h, r, t) if side == "tail" else base.score(t, r + model.relations, h)


def _gradients(model: Scorer, value: Tensor) -> dict[str, Tensor]:
    """The gradient of every weight; of orthogonal ones the part that leads along the orthogonal matrices."""
    orthogonal = {id(weights) for weights in model.orthogonal()}
    named = dict(model.named_parameters())
    found = torch.autograd.grad(value, list(named.values()), allow_unused=True)
    gradients = {n: torch.zeros_like(w) if g is None else g for (n, w), g in zip(named.items(), found, strict=True)}
    return {n: _tangent(named[n], g) if id(named[n]) in orthogonal else g for n, g in gradients.items()}


def _tangent(matrices: nn.Parameter, gradient: Tensor) -> Tensor:
    skew = matrices.detach().mT @ gradient
    return matrices.detach() @ (skew - skew.mT) / 2


def _close(found: Tensor, expected: Tensor, what: str = "", *, rtol: float = 1e-4, atol: float = 1e-4) -> None:
    torch.testing.assert_close(found, expected, rtol=rtol, atol=atol, msg=lambda text: f"{what} {text}".strip())
