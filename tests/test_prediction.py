from __future__ import annotations

import copy
import random

import pytest
import torch

from relwalk import prediction
from relwalk.errors import RelWalkError, UnknownName
from relwalk.experiment import train
from relwalk.graph.graph import Graph
from relwalk.graph.read import read_graph
from relwalk.prediction import Query, predict, predict_many
from relwalk.runs.run import Run
from tests.conftest import TEST, TRAIN, VALID, make_graph


@pytest.fixture(scope="module")
def run() -> Run:
    return train(make_graph(TRAIN, VALID, TEST), dim=6, epochs=3)


def test_tails_come_best_first_with_their_probabilities(run: Run) -> None:
    found = predict(run, head="a", relation="likes", k=10)
    h, r = torch.tensor([0]), torch.tensor([0])
    with torch.no_grad():
        scores = run.model.score_tails(h, r)[0]
    scores[0] = -torch.inf  # a does not like itself: no entity does
    expected = torch.softmax(run.model.scale * scores, 0)
    assert [answer.name for answer in found] == ["abcde"[i] for i in scores.argsort(descending=True).tolist() if i != 0]
    for answer in found:
        assert answer.probability == pytest.approx(float(expected["abcde".index(answer.name)]), rel=1e-4)
        assert answer.known == (answer.name in "bcd")
    assert sum(answer.probability for answer in found) == pytest.approx(1)


def test_heads_and_relations_too(run: Run) -> None:
    heads = predict(run, relation="knows", tail="d")
    assert {answer.name for answer in heads if answer.known} == {"c"}
    relations = predict(run, head="c", tail="d")
    assert {answer.name: answer.known for answer in relations} == {"likes": False, "knows": True}
    assert sum(answer.probability for answer in relations) == pytest.approx(1)


def test_only_new_leaves_out_what_is_known(run: Run) -> None:
    found = predict(run, head="a", relation="likes", only_new=True)
    assert [answer.name for answer in found] == ["e"]


def test_a_relation_with_loops_may_answer_with_the_same_entity() -> None:
    looped = train(make_graph([(0, 0, 0), (1, 0, 2)], entities=3, relations=1), dim=4, epochs=1)
    assert {answer.name for answer in predict(looped, head="b", relation="likes")} == {"a", "b", "c"}


def test_wrong_questions_are_answered_kindly(run: Run, world: Graph) -> None:
    with pytest.raises(RelWalkError, match="give two"):
        predict(run, head="a")
    with pytest.raises(RelWalkError, match="give two"):
        predict(run, head="a", relation="likes", tail="b")
    with pytest.raises(RelWalkError, match="k is 0"):
        predict(run, head="a", relation="likes", k=0)
    with pytest.raises(UnknownName, match="Did you mean 'France'"):
        world.entities.id("Frnace")
    with pytest.raises(UnknownName, match="Did you mean 'France'"):
        world.entities.id("france")
    with pytest.raises(UnknownName, match="'likes'"):
        predict(run, head="a", relation="like")


def test_labels_answer_where_names_do_not() -> None:
    graph = make_graph(TRAIN)
    from relwalk.graph.vocabulary import Vocabulary

    labelled = Vocabulary("entity", graph.entities.names, ("Anna", "Berta", "Berta", None, "Emil"))
    assert labelled.id("Anna") == 0
    assert labelled.id("d") == 3
    assert (labelled.label(0), labelled.label(3)) == ("Anna", "d")
    with pytest.raises(UnknownName, match="'b', 'c'"):
        labelled.id("Berta")


def test_answers_print_themselves(run: Run) -> None:
    text = str(predict(run, head="a", relation="likes", k=2))
    assert text.splitlines()[0] == "a likes ?"
    assert len(text.splitlines()) == 5  # and what the numbers are
    assert "%" in text


def questions(graph: Graph, count: int, seed: int = 0) -> list[Query]:
    draw = random.Random(seed)
    found: list[Query] = []
    for _ in range(count):
        query = [
            draw.choice(graph.entities.names),
            draw.choice(graph.relations.names),
            draw.choice(graph.entities.names),
        ]
        query[draw.randrange(3)] = None
        found.append(tuple(query))
    return found


@pytest.fixture(scope="module")
def world_run() -> Run:
    return train(read_graph("world"), dim=8, epochs=1, hidden=False)  # no score is near zero


@pytest.mark.parametrize("only_new", [False, True])
@pytest.mark.parametrize("batch", [None, 1, 7])
def test_many_questions_are_answered_as_one_would_be(world_run: Run, batch: int | None, only_new: bool) -> None:
    asked = questions(world_run.graph, 40)
    found = list(predict_many(world_run, iter(asked), k=5, only_new=only_new, batch=batch))
    assert [(a.head, a.relation, a.tail) for a in found] == asked  # in their order
    for (head, relation, tail), answers in zip(asked, found, strict=True):
        alone = predict(world_run, head=head, relation=relation, tail=tail, k=5, only_new=only_new)
        assert [(a.name, a.known) for a in answers] == [(a.name, a.known) for a in alone]
        assert [a.score for a in answers] == pytest.approx([a.score for a in alone], rel=1e-5)
        assert [a.probability for a in answers] == pytest.approx([a.probability for a in alone], rel=1e-5)


def test_windows_of_questions_do_not_mix(world_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = questions(world_run.graph, 25)
    whole = list(predict_many(world_run, asked, k=3))
    monkeypatch.setattr(prediction, "WINDOW", 4)
    assert [[a.name for a in answers] for answers in predict_many(world_run, asked, k=3)] == [
        [a.name for a in answers] for answers in whole
    ]
    assert list(predict_many(world_run, [])) == []


def test_known_relations_are_those_of_the_triples(world_run: Run) -> None:
    graph = world_run.graph
    for h, _, t in graph.triples[:: len(graph.triples) // 50].tolist():
        found = predict(world_run, head=graph.entities.names[h], tail=graph.entities.names[t], k=99)
        linked = graph.triples[(graph.triples[:, 0] == h) & (graph.triples[:, 2] == t), 1]
        assert {a.name for a in found if a.known} == {graph.relations.names[r] for r in linked}


def test_equal_scores_come_in_the_order_of_the_graph(run: Run) -> None:
    level = Run(None, run.record, run.graph, copy.deepcopy(run.model))
    with torch.no_grad():
        level.model.entity.weight.zero_()
    assert [a.name for a in predict(level, head="a", relation="likes", k=3)] == ["b", "c", "d"]
    both = list(predict_many(level, [("a", "likes", None), (None, "likes", "e")], k=2))
    assert [[a.name for a in answers] for answers in both] == [["b", "c"], ["a", "b"]]
    assert both[0][0].probability == pytest.approx(1 / 4)


def test_answers_follow_the_weights(run: Run) -> None:
    """What is kept between queries is made again when the weights change."""
    run = train(run.graph, dim=6, epochs=3, relation_bias=False)  # scores then grow with the square of all vectors
    changed = Run(None, run.record, run.graph, copy.deepcopy(run.model))
    before = predict(changed, head="a", relation="likes")
    with torch.no_grad():
        changed.model.entity.weight.mul_(2)
    after = {a.name: a.score for a in predict(changed, head="a", relation="likes")}
    assert after == pytest.approx({a.name: 4 * a.score for a in before}, rel=1e-4)
    assert predict(run, head="a", relation="likes") == before


def test_wrong_batches_are_answered_kindly(run: Run) -> None:
    with pytest.raises(RelWalkError, match="give two"):
        list(predict_many(run, [("a", None, None)]))
    with pytest.raises(RelWalkError, match="batch is 0"):
        predict_many(run, [("a", "likes", None)], batch=0)
    with pytest.raises(RelWalkError, match="k is 0"):
        predict_many(run, [], k=0)
    broken = Run(None, run.record, run.graph, copy.deepcopy(run.model))
    with torch.no_grad():
        broken.model.entity.weight[1] = torch.nan
    with pytest.raises(RelWalkError, match="not numbers"):
        predict(broken, head="a", relation="likes")


def test_relations_with_loops_are_found(five: Graph) -> None:
    assert five.has_loops.tolist() == [False, False]
    assert make_graph([(0, 1, 0), (1, 0, 2)]).has_loops.tolist() == [False, True]
