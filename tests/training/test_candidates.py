"""The sum over a sample of the entities stands for the sum over all of them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from relwalk.errors import RelWalkError
from relwalk.evaluation.ranking import rank
from relwalk.experiment import make_task, train
from relwalk.graph.graph import Graph
from relwalk.graph.vocabulary import Vocabulary
from relwalk.models import MODELS, build_model
from relwalk.training.candidates import ALL_UP_TO, DRAWN, Draws, choose_candidates
from relwalk.training.settings import TrainingSettings
from relwalk.training.softmax import Targets, Workspace
from tests.training.test_softmax import softmax_loss


def test_the_graphs_size_decides_unless_told() -> None:
    assert choose_candidates(None, ALL_UP_TO) == 0
    assert choose_candidates(None, ALL_UP_TO + 1) == DRAWN
    assert choose_candidates(50, 1000) == 50
    assert choose_candidates(0, 10**7) == choose_candidates(2000, 1000) == 0


def test_weights_make_up_for_the_probability_of_a_draw() -> None:
    """The mean weight of every entity over many draws is one: it stands for itself."""
    answers = np.repeat(np.arange(10, dtype=np.int32), [1, 0, 0, 5, 40, 2, 2, 2, 2, 2])
    draws, generator = Draws.from_answers(answers, 10), torch.Generator().manual_seed(0)
    assert draws.probability.sum() == pytest.approx(1)
    total, squares, repeats = np.zeros(10), np.zeros(10), 4000
    for _ in range(repeats):
        drawn = draws.draw(6, generator)
        weights = np.zeros(10)
        weights[drawn.entities.numpy()] = drawn.log_weights.exp().numpy()
        total += weights
        squares += weights**2
    error = np.sqrt((squares / repeats - (total / repeats) ** 2) / repeats)
    assert (np.abs(total / repeats - 1) < 4.5 * error).all()


def sampled(model, graph: Graph, count: int, generator, corrected: bool = True) -> tuple[float, torch.Tensor]:
    """Loss and gradient of all questions of a graph with a sample of its entities."""
    task = make_task(graph, TrainingSettings(l2=0.0, batch_size=10_000, candidates_per_step=count, precision="float32"))
    (batch,) = task.batches(torch.Generator().manual_seed(0))
    if not corrected:
        task.draws = Uncorrected(task.draws)
    model.zero_grad()
    loss = task.loss(model, batch, generator)
    loss.backward()
    gradient = model.entity.weight.grad
    return float(loss.detach()), gradient.to_dense() if gradient.is_sparse else gradient


class Uncorrected:
    """The same draws, each entity counted once."""

    def __init__(self, draws: Draws) -> None:
        self.draws = draws

    def draw(self, count: int, generator: torch.Generator):
        drawn = self.draws.draw(count, generator)
        return drawn._replace(log_weights=torch.zeros(len(drawn.entities)))


def test_the_estimated_sum_is_unbiased_at_any_size() -> None:
    generator = torch.Generator().manual_seed(1)
    q, e = torch.randn(3, 4, generator=generator), torch.randn(30, 4, generator=generator)
    targets = Targets(torch.tensor([0, 0, 1, 2]), torch.tensor([4, 9, 2, 0]), torch.ones(4))
    draws = Draws.from_answers(np.repeat(np.arange(30, dtype=np.int32), np.arange(30) % 7), 30)
    exact = (q @ e.T).double().exp().sum(1)
    estimates = []
    for _ in range(1500):
        drawn = draws.draw(5, generator)  # five of thirty
        others = torch.tensor([x for x in (4, 9, 2, 0) if x not in drawn.entities.tolist()], dtype=torch.long)
        order = torch.cat([drawn.entities, others])
        place = torch.full((30,), -1)
        place[order] = torch.arange(len(order))
        rows = []
        for row in range(3):  # loss of a row = w log Ẑ - hits
            own = targets.rows == row
            part = Targets(targets.rows[own] * 0, place[targets.columns[own]], targets.weights[own])
            loss = softmax_loss(q[row : row + 1], e[order], None, part, Workspace(), log_weights=drawn.log_weights)
            hits = (q[row] @ e[targets.columns[own]].T).sum()
            rows.append(float(((loss + hits) / own.sum()).double().exp()))
        estimates.append(rows)
    found = np.array(estimates)
    error = found.std(0) / np.sqrt(len(found))
    assert (np.abs(found.mean(0) - exact.numpy()) < 4.5 * error).all()


def test_the_sampled_gradient_is_that_of_all_entities_on_average(world: Graph) -> None:
    """Against the exact gradient, and with the correction left out as the control that must fail."""
    small = rows_of(world, 300)
    model = build_model("relwalk", len(small.entities), len(small.relations), 6, seed=0, options={})
    exact_loss, exact = sampled(model, small, 0, torch.Generator())
    generator = torch.Generator().manual_seed(2)
    for corrected in (True, False):
        runs = [sampled(model, small, 400, generator, corrected) for _ in range(150)]
        losses, gradients = np.array([run[0] for run in runs]), torch.stack([run[1] for run in runs])
        error = gradients.std(0) / len(runs) ** 0.5
        off = ((gradients.mean(0) - exact).abs() / (error + 1e-6 * exact.abs().max())).flatten()
        z_loss = abs(losses.mean() - exact_loss) / (losses.std() / len(runs) ** 0.5)
        if corrected:
            assert float(off.square().mean()) < 1.5  # one, but for chance, when there is no bias
            assert z_loss < 4.5
        else:
            assert float(off.square().mean()) > 3
            assert z_loss > 20


def rows_of(graph: Graph, count: int) -> Graph:
    """The first triples of a graph, with the entities that occur in them."""
    ids, places = np.unique(graph.train[:count, [0, 2]], return_inverse=True)
    heads, tails = places.reshape(-1, 2).T
    triples = np.column_stack([heads, graph.train[:count, 1], tails]).astype(np.int32)
    names = tuple(graph.entities.names[i] for i in ids)
    return Graph("part", Vocabulary("entity", names), graph.relations, triples)


def test_a_sample_that_is_everything_is_exact() -> None:
    generator = torch.Generator().manual_seed(3)
    q, e = (torch.randn(n, 5, generator=generator, requires_grad=True) for n in (4, 20))
    b = torch.randn(20, generator=generator, requires_grad=True)
    targets = Targets(torch.tensor([0, 1, 1, 3]), torch.tensor([19, 2, 0, 7]), torch.ones(4))
    whole = softmax_loss(q, e, b, targets, Workspace(tile=7))
    drawn = softmax_loss(q, e, b, targets, Workspace(tile=7), log_weights=torch.zeros(20))
    torch.testing.assert_close(drawn, whole)
    for found, expected in zip(
        torch.autograd.grad(drawn, (q, e, b)), torch.autograd.grad(whole, (q, e, b)), strict=True
    ):
        torch.testing.assert_close(found, expected)


def test_the_gradient_of_the_estimate_is_its_own(world: Graph) -> None:
    """Value and slope agree: against autograd through the definition, targets drawn and not drawn, heavy weights."""
    generator = torch.Generator().manual_seed(4)
    q, e = (torch.randn(n, 5, generator=generator, dtype=torch.float64) for n in (6, 30))
    log_weights = 3 * torch.randn(20, generator=generator, dtype=torch.float64)
    rows, columns = torch.tensor([0, 0, 2, 3, 5]), torch.tensor([3, 25, 29, 0, 19])
    exact = [x.clone().requires_grad_() for x in (q, e)]
    weights = torch.cat([log_weights.exp(), torch.zeros(10, dtype=torch.float64)]).repeat(6, 1)
    weights[rows, columns] = 1.0
    scores = exact[0] @ exact[1].T
    expected = ((weights * scores.exp()).sum(1).log()[rows] - scores[rows, columns]).sum()
    single = [x.float().requires_grad_() for x in (q, e)]
    targets = Targets(rows, columns, torch.ones(5))
    found = softmax_loss(*single, None, targets, Workspace(tile=8), log_weights=log_weights.float())
    assert float(found.detach()) == pytest.approx(float(expected.detach()), rel=1e-4)
    for a, c in zip(torch.autograd.grad(found, single), torch.autograd.grad(expected, exact), strict=True):
        torch.testing.assert_close(a.double(), c, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("optimizer", ["adagrad", "rowwise-adagrad"])
def test_every_model_learns_from_samples(small_world: Graph, name: str, optimizer: str) -> None:
    untrained = build_model(name, len(small_world.entities), len(small_world.relations), 16, seed=0, options={})
    run = train(small_world, model=name, dim=16, epochs=5, candidates_per_step=150, batch_size=250, optimizer=optimizer)
    assert rank(run.model, small_world, "valid").mrr > 5 * rank(untrained, small_world, "valid").mrr


def test_entities_that_a_step_is_not_about_keep_their_bits(world: Graph) -> None:
    from relwalk.training.trainer import Trainer

    settings = TrainingSettings(batch_size=20, candidates_per_step=30, threads=2)
    model = build_model("relwalk", len(world.entities), len(world.relations), 8, seed=0, options={})
    before = model.entity.weight.detach().clone()
    trainer = Trainer(model, make_task(world, settings), settings)
    generator = torch.Generator().manual_seed(0)
    trainer._step(next(trainer.task.batches(generator)), generator, 1, 1)
    moved = (model.entity.weight.detach() != before).any(1).sum()
    assert 30 < int(moved) < 200


def ring(entities: int, relations: int, triples: int) -> Graph:
    """Every relation leads some way on along a circle, to one of a few neighbours: sparse, and slow to learn."""
    rng = np.random.default_rng(0)
    head, relation = rng.integers(entities, size=triples), rng.integers(relations, size=triples)
    tail = (head + rng.integers(entities, size=relations)[relation] + rng.integers(-5, 6, size=triples)) % entities
    names = (tuple(map(str, range(count))) for count in (entities, relations))
    vocabularies = [Vocabulary(kind, own) for kind, own in zip(("entity", "relation"), names, strict=True)]
    return Graph("ring", *vocabularies, np.stack([head, relation, tail], 1).astype(np.int32))


def test_large_batches_of_sampled_sums_do_not_make_the_loss_rise() -> None:
    """The loss of new questions starts at log(entities), chance; a rate that is too high drives it far above."""
    graph = ring(20_000, 10, 60_000)
    losses: list[float] = []

    class Watch:
        def step(self, epoch: int, step: int, steps: int, loss: float) -> None:
            losses.append(loss)

        def epoch(self, *_: object) -> None: ...

    sizes = {"dim": 32, "batch_size": 4096, "candidates_per_step": 2048, "l2": 0.0, "hidden": False, "threads": 1}
    assert train(graph, epochs=1, observer=Watch(), **sizes).record.training.lr == pytest.approx(0.5)
    chance = losses[0]
    assert np.mean(losses[20:30]) < 1.05 * chance
    losses.clear()
    train(graph, epochs=1, observer=Watch(), lr=3.0, **sizes)
    assert np.mean(losses[20:30]) > 1.1 * chance


@pytest.mark.parametrize(
    ("options", "training", "words"),
    [
        ({}, {"label_smoothing": 0.1}, "label_smoothing"),
        ({}, {"optimizer": "adam"}, "rowwise-adagrad"),
    ],
)
def test_what_a_sample_cannot_serve_is_refused(world: Graph, options: dict, training: dict, words: str) -> None:
    with pytest.raises(RelWalkError, match=words):
        train(world, dim=8, epochs=1, **options, candidates_per_step=100, **training)
