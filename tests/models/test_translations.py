"""The translation family: scores by hand, norms after a step, L1 distances in bounded memory, and that all learn."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from relwalk.errors import RelWalkError, UnknownChoice
from relwalk.evaluation.ranking import rank
from relwalk.experiment import make_task, train
from relwalk.exports import weights
from relwalk.graph.graph import Graph
from relwalk.models import Scorer, build_model
from relwalk.models.base import as_product
from relwalk.models.distances import l1_distances
from relwalk.models.relation_matmul import project
from relwalk.models.transe import TransE
from relwalk.runs.run import load_run
from relwalk.training.settings import make_settings
from relwalk.training.trainer import Trainer
from tests.conftest import part_of

FAMILY = [
    ("unstructured", {}),
    ("structured", {}),
    ("transe", {}),
    ("transe", {"distance": "l1"}),
    ("transe", {"unit_norms": True}),
    ("transe", {"distance": "l1", "unit_norms": True}),
    ("transr", {}),
    ("transr", {"relation_dim": 7}),
    ("transr", {"bounded_norms": False}),
    ("transd", {}),
    ("transd", {"bounded_norms": False}),
]
IDS = ["-".join([name, *map(str, options)]) for name, options in FAMILY]


def make(name: str, entities: int = 4, relations: int = 2, dim: int = 2, **options: object) -> Scorer:
    return build_model(name, entities, relations, dim, seed=0, options=options)


def set_weights(model: Scorer, **values: list) -> None:
    named = dict(model.named_parameters())
    with torch.no_grad():
        for name, rows in values.items():
            weight = named[name] if name in named else named[f"{name}.weight"]
            weight[: len(rows)] = torch.tensor(rows)


def one(model: Scorer, h: int = 0, r: int = 0, t: int = 1) -> float:
    return float(model.score(*(torch.tensor([i]) for i in (h, r, t))).detach())


def test_scores_by_hand() -> None:
    entity = [[0.5, 0.1], [0.2, -0.3]]
    unstructured = make("unstructured")
    set_weights(unstructured, entity=entity)
    assert one(unstructured) == one(unstructured, r=1) == pytest.approx(-(0.3**2 + 0.4**2))

    transe, l1 = make("transe"), make("transe", distance="l1")
    for model in (transe, l1):
        set_weights(model, entity=entity, relation=[[0.1, 0.2]])
    assert one(transe) == pytest.approx(-(0.4**2 + 0.6**2))
    assert one(l1) == pytest.approx(-1.0)

    structured = make("structured")
    set_weights(structured, entity=entity, R1=[[[1.0, 2.0], [0.0, 1.0]]], R2=[[[0.0, 1.0], [1.0, 0.0]]])
    assert one(structured) == pytest.approx(-(abs(0.7 + 0.3) + abs(0.1 - 0.2)))  # R1 h = (.7, .1), R2 t = (-.3, .2)

    transr = make("transr", relation_dim=1)
    set_weights(transr, entity=entity, projection=[[[0.5], [1.0]]], relation=[[0.2]])
    assert one(transr) == pytest.approx(-((0.35 + 0.2 + 0.2) ** 2))  # h M = .35, t M = -.2
    free = make("transr", relation_dim=1, bounded_norms=False)
    for model, moved in ((free, 3.5), (transr, 1.0)):  # h M = 3.5, or shortened to 1
        set_weights(model, entity=[[5.0, 1.0], [0.2, -0.3]], projection=[[[0.5], [1.0]]], relation=[[0.2]])
        assert one(model) == pytest.approx(-((moved + 0.2 + 0.2) ** 2))

    transd = make("transd")
    set_weights(transd, entity=entity, entity_projection=[[1.0, 0.0], [0.0, 2.0]])
    set_weights(transd, relation=[[0.1, 0.2]], relation_projection=[[0.4, -0.2]])
    # a_h = .5, h_r = (.7, 0); a_t = -.6, t_r = (-.04, -.18)
    assert one(transd) == pytest.approx(-(0.84**2 + 0.38**2), rel=1e-5)


def test_transd_projects_by_the_papers_matrix() -> None:
    model = make("transd", 5, 3, 4)
    h, r, t = 2, 1, 4
    e, e_p = model.entity.weight.double(), model.entity_projection.weight.double()
    r_p = model.relation_projection[r].double()
    moved = [(torch.outer(r_p, e_p[x]) + torch.eye(4)) @ e[x] for x in (h, t)]
    expected = -(moved[0] + model.relation[r] - moved[1]).square().sum()
    assert one(model, h, r, t) == pytest.approx(float(expected.detach()), rel=1e-5)


def test_transr_starts_as_transe() -> None:
    model = make("transr", 9, 3, 4)
    assert torch.equal(model.projection.detach(), torch.eye(4).repeat(3, 1, 1))
    h, r, t = (torch.tensor(ids) for ids in ([1, 2], [0, 2], [8, 3]))
    moved = model.entity(h) + model.relation[r] - model.entity(t)
    torch.testing.assert_close(model.score(h, r, t), -moved.square().sum(-1))


def keeps_its_norms(name: str, model: Scorer) -> None:
    """What the paper asks of the model: norms of 1, or of 1 at most."""
    slack = 1 + 1e-5
    lengths = model.entity().norm(dim=1)
    if name in ("structured", "transe"):
        torch.testing.assert_close(lengths, torch.ones_like(lengths))
        return
    assert float(lengths.max()) <= slack and float(model.relation.norm(dim=1).max()) <= slack
    every = torch.arange(model.entities)
    for r in range(model.relations):
        relation = torch.full_like(every, r)
        if name == "transr":
            projected = model._project(model.entity(), relation)
        else:
            projected = model._project(every, model.entity(), relation)
        assert float(projected.norm(dim=1).max()) <= slack


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize(("name", "options"), [f for f in FAMILY if make(f[0], dim=8, **f[1]).constrained])
def test_norms_hold_after_every_step(world: Graph, name: str, options: dict, sampled: bool) -> None:
    """From steps so long that nothing would hold without the rule; `sampled` ones name the rows that they moved."""
    sizes = {"batch_size": 500, "lr": 5.0, "l2": 0.0, "candidates_per_step": 60 if sampled else 0}
    settings = make_settings({"threads": 1}, sizes)
    model = make(name, len(world.entities), len(world.relations), 8, **options)
    with torch.no_grad():
        keeps_its_norms(name, model)  # from the start
    trainer = Trainer(model, make_task(world, settings), settings)
    assert trainer.task.few_entities == sampled
    generator = torch.Generator().manual_seed(0)
    before = model.entity.weight.detach().clone()
    for step, batch in zip(range(1, 4), trainer.task.batches(generator), strict=False):
        trainer._step(batch, generator, 1, step)
        with torch.no_grad():
            keeps_its_norms(name, model)
    assert float((model.entity.weight.detach() - before).abs().max()) > 0.1


def test_who_keeps_norms() -> None:
    kept = {name for name, options in FAMILY if make(name, dim=8, **options).constrained}
    assert kept == {"structured", "transe", "transr", "transd"}


@pytest.mark.parametrize("name", ["transr", "transd"])
def test_a_likelihood_has_room_and_a_margin_the_papers_norms(small_world: Graph, name: str) -> None:
    free, held = (train(small_world, model=name, dim=8, epochs=1, objective=o) for o in ("likelihood", "margin"))
    assert free.record.model.options["bounded_norms"] is False and not free.model.constrained
    assert "bounded_norms" not in held.record.model.options and held.model.constrained  # as in runs of before


@pytest.mark.parametrize("name", ["transe", "transr", "transd"])
def test_free_translations_are_not_held_to_norms(world: Graph, name: str) -> None:
    words = {"objective": "margin", "margin": 5.0, "negatives": 5, "lr": 1.0}
    free = {"unit_norms": False} if name == "transe" else {"bounded_norms": False}
    run = train(world, model=name, dim=8, epochs=1, **words, **free)
    assert not run.model.constrained and float(run.model.entity.weight.detach().norm(dim=1).max()) > 2


@pytest.mark.parametrize("own", [False, True])
def test_l1_distances_and_their_gradient(own: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    goals = torch.randn(5, 3, generator=generator, dtype=torch.float64, requires_grad=True)
    points = torch.randn(*([5, 4] if own else [7]), 3, generator=generator, dtype=torch.float64, requires_grad=True)
    expected = (goals.unsqueeze(1) - points).abs().sum(-1)
    found = l1_distances(goals, points)
    torch.testing.assert_close(found, expected)
    weight = torch.randn(found.shape, generator=generator, dtype=torch.float64)
    slopes = (torch.autograd.grad((x * weight).sum(), (goals, points)) for x in (found, expected))
    for a, b in zip(*slopes, strict=True):
        torch.testing.assert_close(a, b)


class Largest(TorchDispatchMode):
    """Remembers how many numbers the largest tensor had that any operation made."""

    numbers = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        made = function(*args, **(kwargs or {}))
        for tensor in made if isinstance(made, tuple | list) else [made]:
            if isinstance(tensor, Tensor):
                self.numbers = max(self.numbers, tensor.numel())
        return made


@pytest.mark.parametrize(("name", "options"), [("transe", {"distance": "l1"}), ("structured", {})])
def test_scores_of_all_entities_hold_no_difference_of_vectors(name: str, options: dict) -> None:
    """Forward and backward: never questions x entities x dim."""
    model = make(name, 1000, 3, 32, **options)
    given, relations = torch.arange(50), torch.arange(50) % 3
    with Largest() as largest:
        model.score_candidates("head", given, relations).sum().backward()
    assert largest.numbers <= max(50 * 1000, 1000 * 32)


def test_rectangular_projections_are_those_of_each_row() -> None:
    generator = torch.Generator().manual_seed(1)
    matrices = torch.randn(3, 6, 2, generator=generator, requires_grad=True)
    for rows in (4, 3000):  # both ways of multiplying
        x, relations = torch.randn(rows, 6, generator=generator), torch.randint(0, 3, (rows,), generator=generator)
        found, expected = project(x, matrices, relations), torch.einsum("bi,bij->bj", x, matrices[relations])
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
        back = project(found, matrices, relations, transposed=True)
        assert back.shape == (rows, 6)
        a, b = (torch.autograd.grad(y.square().sum(), matrices)[0] for y in (found, expected))
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-3)
    assert project(torch.empty(0, 6), matrices, torch.empty(0, dtype=torch.long)).shape == (0, 2)


@pytest.fixture(scope="module")
def graph(world: Graph) -> Graph:
    return part_of(world, 600)


@pytest.mark.parametrize(("name", "options"), FAMILY, ids=IDS)
@pytest.mark.parametrize(
    "settings", [{}, {"objective": "margin", "margin": 1.0, "negatives": 20}], ids=["all", "margin"]
)
def test_each_learns_ranks_saves_and_loads(graph: Graph, name: str, options: dict, settings: dict, tmp_path) -> None:
    untrained = make(name, len(graph.entities), len(graph.relations), 16, **options)
    run = train(graph, model=name, dim=16, epochs=4, batch_size=250, out=tmp_path / "run", **options, **settings)
    found = rank(run.model, graph, "valid").mrr
    assert found > 5 * rank(untrained, graph, "valid").mrr
    again = load_run(tmp_path / "run")
    assert (
        again.record.model.options == run.record.model.options and options.items() <= again.record.model.options.items()
    )
    assert type(again.model) is type(run.model)
    assert rank(again.model, graph, "valid").mrr == found


def test_l1_is_no_product_and_says_so(five: Graph) -> None:
    assert as_product(make("transe")) is not None and as_product(make("transe", distance="l1")) is None
    run = train(five, model="transe", distance="l1", dim=4, epochs=1)
    assert run.record.training.objective.precision == "float32"
    with pytest.raises(RelWalkError, match="precision bfloat16 means nothing to TransE, whose scores are no product"):
        train(five, model="transe", distance="l1", dim=4, epochs=1, precision="bfloat16")


def test_bad_options_are_refused() -> None:
    with pytest.raises(RelWalkError, match="distance"):
        make("transe", distance="l3")
    with pytest.raises(UnknownChoice, match="unknown distance 'l3'"):
        TransE(4, 2, 2, generator=torch.Generator(), distance="l3")  # type: ignore[arg-type]
    with pytest.raises(RelWalkError, match="relation_dim is 9; expected a whole number from 1 to 8"):
        make("transr", dim=8, relation_dim=9)
    with pytest.raises(RelWalkError, match="Unstructured has no weights of relations"):
        make("unstructured", reciprocal=True)


def test_both_tables_of_transd_are_exported_as_entities(five: Graph) -> None:
    run = train(five, model="transd", dim=4, epochs=1, reciprocal=True)
    shapes = {name: array.shape for name, array in weights(run).items()}
    relations = {f"{name}{end}": (2, 4) for name in ("relation", "relation_projection") for end in ("", "_inverse")}
    assert shapes == {"entity": (5, 4), "entity_projection": (5, 4), **relations}
