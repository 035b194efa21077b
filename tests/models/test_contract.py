"""What every model in MODELS promises, and that a model which breaks a promise is found out."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from relwalk.errors import RelWalkError, UnknownChoice
from relwalk.experiment import train
from relwalk.graph.graph import Graph
from relwalk.models import MODELS, ProductScorer, Scorer, build_model
from relwalk.models.relation_matmul import project
from relwalk.models.tables import Dropout, EntityTable, with_constant
from relwalk.testing import ContractBroken, check_model


class TwoTables(ProductScorer):
    """CP with a bias: an entity is one vector as head and another as tail, and has a bias of its own for each."""

    keys_by_side = True

    def __init__(self, entities, relations, dim, *, generator):
        super().__init__(entities, relations, dim)
        self.head, self.tail = (EntityTable(torch.randn(entities, dim, generator=generator)) for _ in range(2))
        self.head_bias, self.tail_bias = (EntityTable(torch.randn(entities, 1, generator=generator)) for _ in range(2))
        self.relation = nn.Parameter(torch.randn(relations, dim, generator=generator))
        self.entity_dropout = Dropout()

    def score(self, heads, relations, tails):
        products = self.head(heads) * F.embedding(relations, self.relation) * self.tail(tails)
        return products.sum(-1) + self.head_bias(heads)[:, 0] + self.tail_bias(tails)[:, 0]

    def queries(self, side, given, relations):
        x = self.entity_dropout((self.head if side == "tail" else self.tail)(given))
        return with_constant(x * F.embedding(relations, self.relation), 1.0)

    def keys(self, side, entities=None, relations=None):
        table, bias = (self.tail, self.tail_bias) if side == "tail" else (self.head, self.head_bias)
        return torch.cat([table(entities), bias(entities)], -1)

    def offsets(self, side, given, relations):
        return (self.head_bias if side == "tail" else self.tail_bias)(given)[:, 0]


class ByRelation(ProductScorer):
    """Keys that depend on the relation: entities are turned by its matrix before they meet, as in TransR."""

    keys_by_relation = True

    def __init__(self, entities, relations, dim, *, generator):
        super().__init__(entities, relations, dim)
        self.entity = EntityTable(torch.randn(entities, dim, generator=generator))
        self.matrix = nn.Parameter(torch.randn(relations, dim, dim, generator=generator) / dim**0.5)
        self.weight = nn.Parameter(torch.ones(relations))

    def score(self, heads, relations, tails):
        h, t = (project(self.entity(x), self.matrix, relations) for x in (heads, tails))
        return self.weight[relations] * (h * t).sum(-1)

    def queries(self, side, given, relations):
        turned = project(self.entity(given), self.matrix, relations)
        return self.weight[relations].unsqueeze(1) * turned

    def keys(self, side, entities=None, relations=None):
        return project(self.entity(entities), self.matrix, relations)


class NoProduct(Scorer):
    """An L1 distance: no product of queries and keys."""

    def __init__(self, entities, relations, dim, *, generator):
        super().__init__(entities, relations, dim)
        self.entity = EntityTable(torch.randn(entities, dim, generator=generator))
        self.relation = nn.Parameter(torch.randn(relations, dim, generator=generator))

    def score(self, heads, relations, tails):
        return -(self.entity(heads) + self.relation[relations] - self.entity(tails)).abs().sum(-1)

    def score_candidates(self, side, given, relations, candidates=None):
        sign = 1 if side == "tail" else -1
        goal = self.entity(given) + sign * self.relation[relations]
        return -(goal.unsqueeze(1) - self.entity(candidates)).abs().sum(-1)


class Normed(ProductScorer):
    """Batch norm before the product: buffers that training moves and evaluation uses."""

    def __init__(self, entities, relations, dim, *, generator):
        super().__init__(entities, relations, dim)
        self.entity = EntityTable(torch.randn(entities, dim, generator=generator))
        self.relation = nn.Parameter(torch.randn(relations, dim, generator=generator))
        self.norm = nn.BatchNorm1d(dim)

    def score(self, heads, relations, tails):
        return (self.norm(self.entity(heads) * self.relation[relations]) * self.entity(tails)).sum(-1)

    def queries(self, side, given, relations):
        return self.norm(self.entity(given) * self.relation[relations])

    def keys(self, side, entities=None, relations=None):
        return self.entity(entities)


OWN = [TwoTables, ByRelation, NoProduct]
OPTIONS = [
    ("relwalk", {"orthogonality": "soft"}),
    ("relwalk", {"hidden": True}),
    ("relwalk", {"hidden": True, "equal_lengths": True}),
    ("transe", {"distance": "l1"}),
    ("transr", {"relation_dim": 5}),
    ("conve", {"reciprocal": False}),
    ("tucker", {"reciprocal": False}),
    ("tucker", {"relation_dim": 3}),
    ("ntn", {"slices": 1}),
]
VARIANTS = [*((name, {}) for name in MODELS), *OPTIONS, *((own, {}) for own in OWN)]


def name_of(variant) -> str:
    kind, options = variant
    return "-".join([kind if isinstance(kind, str) else kind.__name__, *map(str, options.values())])


@pytest.mark.parametrize("variant", VARIANTS, ids=name_of)
def test_every_promise_holds(variant) -> None:
    kind, options = variant
    check_model(kind, options=options)


@pytest.mark.parametrize("variant", [v for v in VARIANTS if v[0] != "unstructured"], ids=name_of)
def test_every_promise_holds_of_reciprocal_relations(variant) -> None:
    kind, options = variant
    check_model(kind, options={**options, "reciprocal": True})


def test_batch_norm_is_one_thing_in_training_and_another_in_evaluation() -> None:
    """Its head queries are not its tail queries turned round, so only some of the promises are about it."""
    model = build_model(Normed, 23, 5, 8, seed=0, options={})
    h, r, t = (torch.randint(0, size, (11,), generator=torch.Generator().manual_seed(1)) for size in (23, 5, 23))
    before = model.norm.running_mean.clone()
    training = model.train().score_tails(h, r)
    assert not torch.equal(model.norm.running_mean, before)
    evaluated = model.eval().score_tails(h, r)
    assert not torch.allclose(training, evaluated)
    torch.testing.assert_close(evaluated[torch.arange(11), t], model.score(h, r, t))


class WrongHeads(TwoTables):
    """Asks for heads among the tails."""

    def keys(self, side, entities=None, relations=None):
        return super().keys("tail", entities, relations)


class WholeTable(TwoTables):
    """Reads rows off the whole table, so that a gradient touches every entity."""

    def keys(self, side, entities=None, relations=None):
        every = super().keys(side)
        return every if entities is None else every[entities]


class IdleDropout(TwoTables):
    """Names a dropout that it does not use."""

    def __init__(self, entities, relations, dim, *, generator):
        super().__init__(entities, relations, dim, generator=generator)
        self.query_dropout = Dropout()


class Unused(ByRelation):
    """A weight that no score depends on."""

    def __init__(self, entities, relations, dim, *, generator):
        super().__init__(entities, relations, dim, generator=generator)
        self.idle = nn.Parameter(torch.ones(3))


class NoTable(Scorer):
    """Entities that are a plain parameter."""

    def __init__(self, entities, relations, dim, *, generator):
        super().__init__(entities, relations, dim)
        self.entity = nn.Parameter(torch.randn(entities, relations, generator=generator))

    def score(self, heads, relations, tails):
        return self.entity[heads, relations] * self.entity[tails, relations]

    def score_candidates(self, side, given, relations, candidates=None):
        scores = self.entity[given, relations].unsqueeze(1) * self.entity[:, relations].T
        if candidates is None:
            return scores
        return scores[:, candidates] if candidates.dim() == 1 else scores.gather(1, candidates)


@pytest.mark.parametrize(
    ("broken", "promise"),
    [
        (WrongHeads, "the ways to score agree"),
        (WholeTable, "sampled keys"),
        (IdleDropout, "evaluation is repeatable"),
        (Unused, "reach every weight"),
        (NoTable, "entities are in tables"),
    ],
)
def test_a_broken_promise_is_named(broken, promise: str) -> None:
    with pytest.raises(ContractBroken, match=promise):
        check_model(broken)


def test_the_same_seed_gives_the_same_model() -> None:
    a, b, c = (build_model("relwalk", 9, 2, 4, seed=seed, options={}) for seed in (1, 1, 2))
    assert torch.equal(a.entity.weight, b.entity.weight)
    assert not torch.equal(a.entity.weight, c.entity.weight)


def test_a_wrong_name_lists_the_known_ones() -> None:
    with pytest.raises(UnknownChoice, match="Did you mean 'relwalk'"):
        build_model("relwlk", 9, 2, 4, seed=0, options={})
    with pytest.raises(UnknownChoice, match="orthogonality"):
        build_model("relwalk", 9, 2, 4, seed=0, options={"orthogonalty": "soft"})
    with pytest.raises(RelWalkError, match="subclass of"):
        build_model(nn.Linear, 9, 2, 4, seed=0, options={})


def test_a_trained_model_is_a_plain_module(world: Graph) -> None:
    """After a training `loss.backward()` fills every .grad, and nothing is kept from one call to the next."""
    run = train(world, dim=8, epochs=1, candidates_per_step=50, entity_dropout=0.2)
    model, ids = run.model.train(), torch.arange(6)
    assert not any(table.sparse for table in model.tables())
    assert not any(dropout.rate for dropout in model.dropouts().values())
    for _ in range(2):
        model.zero_grad()
        model.score(ids, ids, ids + 7).sum().backward()
        assert all(weights.grad is not None for weights in model.parameters())
        assert all(set(vars(weights)) == set() for weights in model.parameters())
