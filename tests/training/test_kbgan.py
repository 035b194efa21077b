"""KBGAN: a generator that learns which negatives are hard, and is kept and gone on with like the model itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from relwalk.errors import RelWalkError, UnknownChoice
from relwalk.evaluation.ranking import rank
from relwalk.experiment import make_task, train
from relwalk.graph.graph import Graph
from relwalk.graph.vocabulary import Vocabulary
from relwalk.models import MODELS, ProductScorer, build_model
from relwalk.models.tables import EntityTable, with_constant
from relwalk.training.kbgan import REMEMBERED_STEPS, NegativeGenerator
from relwalk.training.negative_sampling import NegativeSampling
from relwalk.training.negatives import Negatives
from relwalk.training.objectives import OBJECTIVES
from relwalk.training.settings import TrainingSettings, make_settings
from relwalk.training.trainer import Trainer

ENTITIES, HARD = 40, 5
SAMPLING = [name for name, objective in OBJECTIVES.items() if issubclass(objective, NegativeSampling)]


class Judge(ProductScorer):
    """A discriminator that finds some entities near the truth everywhere, and all others far."""

    lr = 1e-9

    def __init__(self, entities, relations, dim, *, generator):
        super().__init__(entities, relations, dim)
        self.bias = EntityTable(torch.where(torch.arange(entities) < HARD, 0.0, -5.0).unsqueeze(1))

    def score(self, heads, relations, tails):
        return (self.bias(heads) + self.bias(tails))[:, 0]

    def queries(self, side, given, relations):
        return with_constant(self.bias(given), 1.0)

    def keys(self, side, entities=None, relations=None):
        bias = self.bias(entities)
        return torch.cat([torch.ones_like(bias), bias], -1)


@pytest.fixture(scope="module")
def easy() -> Graph:
    """Triples of the entities that are easy: the hard ones are all false."""
    draws = np.random.default_rng(0)
    rows = [draws.integers(HARD, ENTITIES, 300), draws.integers(0, 3, 300), draws.integers(HARD, ENTITIES, 300)]
    return Graph(
        name="easy",
        entities=Vocabulary("entity", tuple(f"e{n}" for n in range(ENTITIES))),
        relations=Vocabulary("relation", ("a", "b", "c")),
        train=np.unique(np.stack(rows, 1), axis=0).astype(np.int32),
        valid=np.zeros((0, 3), np.int32),
        test=np.zeros((0, 3), np.int32),
    )


def hard_share(generator: NegativeGenerator, graph: Graph) -> float:
    """How likely the generator is to choose a hard negative among all entities."""
    positives = torch.from_numpy(graph.train.astype(np.int64))
    every = torch.arange(ENTITIES).expand(len(positives), -1)
    log_prob = generator.log_prob(positives, Negatives(every, torch.arange(len(positives)) % 2 == 0))
    return log_prob[:, :HARD].exp().sum(1).mean().item()


def shares(graph: Graph, objective: str, rate: float) -> tuple[float, float]:
    """Before and after a training against a judge that does not move."""
    settings = make_settings(
        {
            "objective": objective,
            "sampler": "kbgan",
            "negatives": 2,
            "epochs": 25,
            "batch_size": 64,
            "lr": 1e-9,
            "l2": 0,
        },
        {"generator_lr": rate, "generator_dim": 8},
    )
    judge = Judge(ENTITIES, 3, 1, generator=torch.Generator())
    trainer = Trainer(judge, make_task(graph, settings), settings)
    generator = trainer.task.negative_generator
    assert generator is not None
    before = hard_share(generator, graph)
    trainer.run()
    return before, hard_share(generator, graph)


@pytest.mark.parametrize("objective", SAMPLING)
def test_hard_negatives_are_chosen_more_and_more(easy: Graph, objective: str) -> None:
    before, after = shares(easy, objective, rate=0.1)
    assert before < 0.2 and after > 0.6
    same, frozen = shares(easy, objective, rate=0.0)
    assert same == before and frozen == before  # it is the training of the generator that does it


def test_negatives_are_drawn_by_their_probabilities() -> None:
    generator = NegativeGenerator("distmult", 4, 1, 2, lr=0.1, seed=0)
    with torch.no_grad():
        generator.model.entity.weight.copy_(torch.tensor([[1.0, 0], [0, 0], [np.log(2), 0], [np.log(3), 0]]))
        generator.model.relation.fill_(1.0)
    many = 20_000
    positives, tail = torch.tensor([[0, 0, 1]]).repeat(many, 1), torch.ones(many, dtype=torch.bool)
    candidates = Negatives(torch.tensor([[1, 2, 3]]).repeat(many, 1), tail)
    chosen = generator.choose(positives, candidates, 2, torch.Generator().manual_seed(0))
    assert torch.equal(chosen.negatives.tail, tail)
    counts = torch.bincount(chosen.negatives.entities.flatten(), minlength=4) / (2 * many)
    torch.testing.assert_close(counts, torch.tensor([0, 1 / 6, 2 / 6, 3 / 6]), atol=0.01, rtol=0)
    expected = torch.tensor([np.nan, 1 / 6, 2 / 6, 3 / 6]).log()[chosen.negatives.entities]
    torch.testing.assert_close(chosen.log_prob.detach(), expected, check_dtype=False)


def test_reinforce_by_hand() -> None:
    generator = NegativeGenerator("distmult", 4, 1, 2, lr=0.1, seed=0)
    log_prob = torch.tensor([[-1.0, -2.0]], requires_grad=True)
    assert generator.loss(log_prob, torch.tensor([[3.0, 1.0]])).item() == -(1 * -1 + -1 * -2)  # their mean is 2
    assert generator.mean_reward.item() == 2
    loss = generator.loss(log_prob, torch.tensor([[5.0, 1.0]]))
    assert loss.item() == -(3 * -1 + -1 * -2)  # from the mean of steps before
    assert torch.autograd.grad(loss, log_prob)[0].tolist() == [[-3.0, 1.0]]
    assert generator.mean_reward.item() == 2.5
    for _ in range(3 * REMEMBERED_STEPS):
        generator.loss(log_prob, torch.tensor([[7.0, 7.0]]))
    assert generator.mean_reward.item() == pytest.approx(7, abs=0.5)


def test_the_generator_learns_beside_any_model(world: Graph) -> None:
    untrained = build_model("transe", len(world.entities), len(world.relations), 16, seed=0, options={})
    settings = {"objective": "margin", "sampler": "kbgan", "negatives": 5, "generator_model": "complex", "epochs": 5}
    run = train(world, model="transe", dim=16, generator_dim=8, avoid_known=True, **settings)
    assert rank(run.model, world, "valid").mrr > 5 * rank(untrained, world, "valid").mrr
    objective = run.record.training.objective.model_dump()
    assert (objective["generator_candidates"], objective["generator_lr"]) == (20, MODELS["complex"].lr)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"generator_dim": 8}, "generator_dim means nothing to the sampler uniform"),
        ({"sampler": "kbgan", "generator_model": "transg"}, "transg, whose scores are no product; expected one of"),
        ({"sampler": "kbgan", "generator_model": "dismult"}, "Did you mean 'distmult'"),
        ({"sampler": "kbgan", "generator_candidates": 0}, "greater than or equal to 1"),
    ],
)
def test_settings_that_mean_nothing_are_refused(wrong: dict, words: str) -> None:
    with pytest.raises((ValidationError, RelWalkError, UnknownChoice), match=words):
        TrainingSettings(objective="margin", **wrong)


def test_a_generator_that_cannot_be_built_leaves_no_folder(easy: Graph, tmp_path: Path) -> None:
    settings = {"objective": "margin", "sampler": "kbgan", "generator_model": "complex", "generator_dim": 7}
    with pytest.raises(RelWalkError, match="ComplEx needs an even dim"):
        train(easy, dim=4, epochs=1, out=tmp_path / "run", **settings)
    assert list(tmp_path.iterdir()) == []


def test_settings_of_the_generator_belong_to_kbgan_alone() -> None:
    plain = TrainingSettings(objective="margin")
    assert not [name for name in plain.flat() if name.startswith("generator_")]
    earlier = TrainingSettings(objective="margin", sampler="kbgan", generator_dim=7).flat()
    assert make_settings(earlier, {"epochs": 3}).flat()["generator_dim"] == 7
    assert make_settings(earlier, {"sampler": "uniform"}) == make_settings(plain.flat(), {})
