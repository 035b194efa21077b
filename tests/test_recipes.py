"""The default recipe goes by what a graph looks like, and by nothing else; what is said by hand wins."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from tools.subgraphs import MADE, cut, from_triples

from relwalk.checks import MOST
from relwalk.evaluation.ranking import rank
from relwalk.experiment import train
from relwalk.graph.graph import Graph
from relwalk.models import RelWalk
from relwalk.planning import plan
from relwalk.shapes import (
    BEGINS,
    BIASED,
    DIMS,
    DRAWN,
    DRAWN_DIMS,
    ENDS,
    EPOCHS,
    LONG_DIMS,
    LONG_EPOCHS,
    PATIENCE,
    SHORT_RATE,
    Shape,
    by_shape,
    choose_blocks,
    for_long,
)
from tests.entry import relwalk

SHORT = {"dim": 8, "epochs": 1}


def shape(entities: int = 2000, relations: int = 40, triples: int = 30_000, questions: int = 25_000) -> Shape:
    return Shape(entities, relations, triples, questions)


def test_a_name_changes_nothing(small_world: Graph) -> None:
    """The same graph under the names of benchmarks has the same settings as under its own."""
    plain = train(small_world, **SHORT).record
    for name in ("fb15k-237", "wn18rr", "x"):
        renamed = train(dataclasses.replace(small_world, name=name), **SHORT).record
        assert renamed.training == plain.training and renamed.model == plain.model


def test_the_best_recipe_knows_no_name_and_takes_longer(world: Graph) -> None:
    plain = plan(world, recipe="best")
    for name in ("fb15k-237", "wn18rr"):
        renamed = plan(dataclasses.replace(world, name=name), recipe="best")
        assert (renamed.training, renamed.model) == (plain.training, plain.model)
    usual = plan(world)
    assert plain.model.dim == LONG_DIMS[0] > usual.model.dim and plain.training.schedule.name == "cosine"
    small, large = for_long(shape()), for_long(shape(entities=90_000, triples=10**6, questions=10**6))
    assert small["dim"] == LONG_DIMS[0] > large["dim"] and small["epochs"] > large["epochs"] >= LONG_EPOCHS[0]
    assert small["entity_dropout"] > 0 == for_long(shape(triples=3000))["entity_dropout"]
    said = plan(world, recipe="best", dim=32, epochs=7, l2=0.05)
    assert (said.model.dim, said.training.epochs, said.training.l2, said.training.decay_end) == (32, 7, 0.05, 1.0)
    assert plan(world, recipe="best", model="complex").training == plan(world, model="complex").training


def test_what_few_triples_say_of_an_entity_is_held_more_firmly() -> None:
    sparse, dense, full = (by_shape(shape(triples=n)) for n in (3000, 30_000, 3_000_000))
    ends = [found["dura"] * found["decay_end"] for found in (sparse, dense, full)]
    assert BEGINS[1] >= ends[0] > ends[1] > ends[2] == pytest.approx(ENDS[0])
    assert all(0 < found["decay_end"] <= 1 for found in (sparse, dense, full))
    assert sparse["entity_dropout"] < dense["entity_dropout"]
    few = by_shape(shape(questions=10**6))  # epochs: a narrower path, with rates that fall
    assert few["dura"] * few["decay_end"] > ends[1] and (dense["schedule"], few["schedule"]) == ("constant", "cosine")


def test_without_valid_the_end_of_the_path_is_no_weaker_than_serves() -> None:
    blind, seeing = by_shape(dataclasses.replace(shape(), selects=False)), by_shape(shape())
    ends = [found["dura"] * found["decay_end"] for found in (blind, seeing)]
    assert ends[0] > 2 * ends[1] and blind["schedule"] == "cosine"


def test_many_relations_of_few_triples_get_blocks() -> None:
    assert choose_blocks(shape(relations=10, triples=100_000), 128) == 1
    few = [choose_blocks(shape(relations=n, triples=10_000), 128) for n in (10, 100, 1000)]
    assert few[0] <= few[1] <= few[2] and few[2] > few[0]
    for dim in (1, 2, 7, 30, 100, 256):
        blocks = choose_blocks(shape(), dim)
        assert dim % blocks == 0 and (blocks == 1 or dim // blocks >= 2)


def test_relations_have_hidden_dimensions_unless_said(small_world: Graph) -> None:
    plain = plan(small_world)
    assert plain.model.options["hidden"] and plain.model.options["equal_lengths"]
    assert plain.training.l2 == 0 < plain.training.dura
    for said in ({"hidden": False}, {"orthogonality": "soft"}):
        without = plan(small_world, **said)
        assert not {"hidden", "equal_lengths"} & {name for name, value in without.model.options.items() if value}
        assert without.training.dura == 0 < without.training.l2
    assert plan(small_world, equal_lengths=False).model.options["hidden"]


def test_few_entities_begin_with_less_decay_and_learn() -> None:
    begins = [by_shape(shape(entities=n, triples=15 * n))["dura"] for n in (2, 20, 200, 2000, 20_000)]
    assert begins == sorted(begins) and 0 < begins[0] < begins[1] < 0.05 < begins[3] == begins[4] == BEGINS[0]
    for entities in range(2, 40):
        assert by_shape(shape(entities=entities, triples=entities))["decay_end"] <= 1
    few = MADE["dealings"](20, 3)
    run = train(few, dim=32, epochs=20)
    assert float(run.model.vectors().detach().square().mean()) > 0.1, "vectors fell to zero"
    assert rank(run, split="valid").mrr > 0.5


def test_few_steps_have_higher_rates() -> None:
    small, large = by_shape(shape()), by_shape(shape(questions=10**6))
    assert "lr" not in small and large["lr"] == SHORT_RATE * RelWalk.lr
    assert "lr" not in by_shape(shape(questions=10**6), hidden=False)
    assert large["dura"] == by_shape(shape(questions=10**6), hidden=False)["l2"] / 2


def test_a_batch_that_is_said_has_the_usual_rate(world: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relwalk.shapes.LONG", 10**6)
    assert plan(world).training.lr == SHORT_RATE * plan(world, batch_size=512).training.lr


def test_relations_without_hidden_dimensions_have_a_bias_where_it_is_dense_unless_said() -> None:
    assert by_shape(shape(), hidden=False)["relation_bias"]
    assert "relation_bias" not in by_shape(shape(triples=3000), hidden=False)
    assert by_shape(shape(triples=3000))["relation_bias"]
    pairs = np.argwhere(np.ones((20, 20)))
    dense = from_triples("dense", np.insert(pairs, 1, pairs.sum(1) % 2, axis=1).astype(np.int32), seed=0)
    assert len(dense.train) >= BIASED * len(dense.entities)
    assert train(dense, **SHORT).record.model.options["relation_bias"] is True
    assert train(dense, **SHORT, relation_bias=False).model.bias is None


def test_a_large_graph_has_fewer_dimensions_and_epochs_and_a_tiny_one_some_steps() -> None:
    tiny, small, large = (
        by_shape(shape(entities=n, triples=k, questions=k)) for n, k in ((14, 1500), (2000, 30_000), (90_000, 10**6))
    )
    assert (small["dim"], large["dim"]) == (DIMS[0], DIMS[-1])
    assert tiny["epochs"] == EPOCHS[1] >= small["epochs"] > large["epochs"] == EPOCHS[0]
    assert 1500 / tiny["batch_size"] >= 8 and large["batch_size"] == 1024


def test_a_pass_over_a_dense_graph_teaches_more_and_a_large_one_ends_its_path() -> None:
    sparse, dense = (by_shape(shape(entities=20_000, triples=n, questions=120_000)) for n in (50_000, 400_000))
    assert sparse["epochs"] > dense["epochs"] >= EPOCHS[0]
    assert "patience" not in dense and by_shape(shape())["patience"] == PATIENCE
    small = [by_shape(shape(triples=n))["epochs"] for n in (5000, 300_000)]  # passes cost nothing: the same for both
    assert small[0] == small[1]


def test_a_sparse_graph_of_many_entities_draws_some_and_has_more_dimensions() -> None:
    many = {"entities": 40_000, "questions": 100_000}
    sparse, dense = (by_shape(shape(triples=n, **many)) for n in (90_000, 800_000))
    assert (sparse["candidates_per_step"], sparse["dim"]) == (DRAWN, DRAWN_DIMS[0]) and sparse["relation_bias"]
    assert "candidates_per_step" not in dense and dense["dim"] == DIMS[-1]
    assert "candidates_per_step" not in by_shape(shape(entities=3000, triples=9000))  # no need to
    assert "candidates_per_step" not in by_shape(shape(entities=200_000, triples=300_000))  # drawn for any model
    assert "candidates_per_step" not in by_shape(shape(triples=90_000, **many), 16)  # all of them take little time
    assert for_long(shape(triples=90_000, **many))["candidates_per_step"] == DRAWN


def test_what_draws_no_entities_is_left_to_all_of_them(small_world: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relwalk.shapes.DRAWN", 20)
    monkeypatch.setattr("relwalk.shapes.EPOCH_WORK", 1.0)
    assert plan(small_world).training.objective.candidates_per_step == 20
    for said in ({"label_smoothing": 0.1}, {"candidates_per_step": 0}):
        assert plan(small_world, **said).training.objective.candidates_per_step == 0


def test_dim_goes_by_the_memory_that_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    from relwalk import shapes

    assert shapes.choose_dim(shape()) == DIMS[0]
    monkeypatch.setattr(shapes, "available_memory", lambda: 4 * 2000 * 128 * 6)
    assert shapes.choose_dim(shape()) == DIMS[-1]


def test_what_is_said_wins(small_world: Graph) -> None:
    by_itself = train(small_world, **SHORT).record.training
    assert (
        by_itself.dura == by_shape(Shape.from_graph(small_world))["dura"] < BEGINS[1]
        and by_itself.decay_end < 1
        and by_itself.patience == PATIENCE
    )
    said = train(small_world, **SHORT, l2=0.07, blocks=2, batch_size=5000).record
    assert said.training.dura == 0
    assert (said.training.l2, said.training.decay_end, said.training.patience) == (0.07, 1.0, 5)
    assert said.model.options["blocks"] == 2 and said.training.batch_size == 5000
    falling = train(small_world, **SHORT, l2=0.07, decay_end=0.5, schedule="linear", validate_every=7).record.training
    assert (falling.decay_end, falling.schedule.name, falling.validate_every) == (0.5, "linear", 7)
    timed = train(small_world, dim=8, budget=0.2).record.training
    assert timed.epochs == timed.patience == MOST and timed.decay_end == by_itself.decay_end


def test_other_models_and_objectives_keep_what_is_usual(small_world: Graph) -> None:
    for settings in ({"model": "transe"}, {"objective": "softmax", "negatives": 4}, {"optimizer": "adam"}):
        found = train(small_world, **SHORT, **settings).record.training
        assert (found.decay_end, found.schedule.name, found.entity_dropout) == (1.0, "constant", 0.0)
    assert train(small_world, model="distmult", epochs=1).record.model.dim == 128


def test_a_regularizer_that_is_said_takes_the_place_of_the_usual_one(small_world: Graph) -> None:
    usual = plan(small_world, model="complex").training
    assert (usual.l2, usual.n3, usual.dura, usual.decay_end) == (0.0, 0.0, 0.05, 0.1)
    said = plan(small_world, model="complex", n3=0.03).training
    assert (said.l2, said.n3, said.dura, said.decay_end) == (0.0, 0.03, 0.0, 1.0)
    assert said.batch_size == usual.batch_size
    both = plan(small_world, model="complex", l2=0.01, dura=0.02, decay_end=0.5).training
    assert (both.l2, both.n3, both.dura, both.decay_end) == (0.01, 0.0, 0.02, 0.5)


def test_it_says_what_it_chose(tmp_path: Path) -> None:
    said = relwalk("train", "world", "--dim", "8", "--epochs", "1", "--out", tmp_path / "run").stderr
    assert "3.3 triples an entity and 10 relations" in said and f"dura {BEGINS[1]:g} falling to" in said
    said = relwalk("train", "world", "--dim", "8", "--epochs", "1", "--l2", "0.1", "--out", tmp_path / "b").stderr
    assert "l2 0.1, " in said and "falling" not in said


@pytest.mark.parametrize("name", MADE)
def test_made_up_graphs_are_made_by_seed(name: str) -> None:
    first, again, other = (MADE[name](30, seed) for seed in (0, 0, 1))
    assert first.fingerprint == again.fingerprint != other.fingerprint
    assert len(first.valid) and len(first.test) and len(first.unseen) == 0


@pytest.mark.parametrize("how", ["dense", "snowball", "random"])
def test_a_cut_has_the_triples_among_its_entities(world: Graph, how: str) -> None:
    part = cut(world, 300, how=how, seed=3)
    names = [tuple(map(str, row)) for row in world.triples.tolist()]
    found = {
        (part.entities.names[h][1:], part.relations.names[r][1:], part.entities.names[t][1:])
        for h, r, t in part.triples.tolist()
    }
    assert found <= set(names) and len(part.entities) <= 300
    inside = {name[1:] for name in part.entities.names}
    expected = {row for row in names if row[0] in inside and row[2] in inside}
    assert found == expected
    assert len(cut(world, 300, how=how, share=0.5, seed=3).triples) < len(part.triples)
    assert np.array_equal(cut(world, 300, how=how, seed=3).train, part.train)
